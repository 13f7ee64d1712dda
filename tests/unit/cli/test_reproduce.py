from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from g3nn.studies.store import Store
from g3nn.studies.suite import Cell, Grid, Protocol, Suite


@pytest.fixture(autouse=True)
def asked(monkeypatch, tmp_path) -> list[str]:
    """The names of suites that were asked for. Each is one short training, in a folder of its own."""
    names: list[str] = []

    def load(name: str, to_run: bool) -> Suite:
        assert to_run
        names.append(name)
        grid, cell = Grid(("mlp",), ("elbo",), (), (), {}), Cell("1", "cora", "standard", "mlp", published=0.5)
        fixed = {"epochs": 2, "patience": 2, "hidden": 4}
        return Suite(name, f"Suite {name}", "nowhere", Protocol(trials=1), ("elbo",), (grid,), (cell,), fixed=fixed)

    monkeypatch.setattr(import_module("g3nn.cli.bench"), "load_suite", load)
    monkeypatch.chdir(tmp_path)
    return names


@pytest.mark.parametrize(("words", "name"), [((), "paper"), (("--quick",), "quick")])
def test_trains_prints_and_writes(run_command, asked, words, name):
    ran = run_command("reproduce", *words, "--device", "cpu")
    assert ran.code == 0
    assert asked == [name]
    assert "mlp" in ran.out
    assert ran.out.endswith(f"report in g3nn-{name}.html\n")
    assert sorted(path.name for path in Path().iterdir()) == [f"g3nn-{name}.html", f"g3nn-{name}.sqlite"]
    assert f"Suite {name}" in Path(f"g3nn-{name}.html").read_text(encoding="utf-8")
    with Store.read(f"g3nn-{name}.sqlite") as store:
        assert len(store.records()) == 1


def test_it_goes_on_where_it_was(run_command):
    first, second = (run_command("reproduce", "--device", "cpu") for _ in range(2))
    assert (first.code, second.code) == (0, 0)
    assert second.out == first.out
    assert (first.err != "", second.err) == (True, "")


def test_files_of_the_callers_choice(run_command, tmp_path):
    (tmp_path / "a").mkdir()
    ran = run_command("reproduce", "--store", "a/runs.sqlite", "--device", "cpu")
    assert ran.code == 0
    assert (tmp_path / "a" / "runs.html").exists()
    ran = run_command("reproduce", "--store", "a/runs.sqlite", "--out", "page.html", "--device", "cpu")
    assert ran.code == 0
    assert (tmp_path / "page.html").exists()


def test_all_problems_before_any_training(run_command, tmp_path):
    (tmp_path / "runs.sqlite").write_text("not a store", encoding="utf-8")
    words = ("--store", "runs.sqlite", "--out", "nowhere/page.html", "--device", "cup", "--executor", "rai")
    ran = run_command("reproduce", *words)
    assert (ran.code, ran.out) == (2, "")
    for name in ("store", "out", "device", "executor"):
        assert f"- --{name}: " in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["runs.sqlite"]


def test_an_interrupt_ends_it_without_a_page(run_command, monkeypatch, tmp_path):
    def run(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("g3nn.studies.run"), "run", run)
    ran = run_command("reproduce")
    assert (ran.code, ran.out) == (130, "")
    assert "the same command goes on" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_help(run_command):
    ran = run_command("reproduce", "--help")
    assert ran.code == 0
    assert "--quick" in ran.out
