"""Commands that need no training do not load torch: they would take seconds longer. Nor is a command loaded only to be
listed or completed."""

from __future__ import annotations

import ast
import os
import platform
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import g3nn
from g3nn import cli

RESULTS = Path(__file__).parents[3] / "results"
HEAVY = ("torch", "numba", "sklearn", "torch_geometric")
ARRAYS = ("numpy", "pyarrow", "g3nn.graph.outcomes", "g3nn.studies.suite_page", "g3nn.pages")

ENDED = "=== that was it ==="
CODE = """
import sys
from g3nn.cli import main

for words in {commands}:
    sys.argv = ["g3nn", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (words, end.code)
    print("{ENDED}")
print([name for name in {modules} if name in sys.modules], file=sys.stderr)
"""


def run_all(folder: Path, *commands: tuple[str, ...], **environment: str) -> tuple[list[str], set[str]]:
    """What each of the commands prints, one after the other in one process, and what they loaded together."""
    code = CODE.format(commands=commands, modules=HEAVY + ARRAYS, ENDED=ENDED)
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, env=os.environ | environment
    )
    assert ran.returncode == 0, ran.stderr
    *printed, after = ran.stdout.split(f"{ENDED}\n")
    assert after == ""
    assert len(printed) == len(commands)
    assert all(printed)
    return printed, set(ast.literal_eval(ran.stderr))


def run(folder: Path, *words: str, **environment: str) -> tuple[str, set[str]]:
    """What the command prints, and what it loaded."""
    (printed,), loaded = run_all(folder, words, **environment)
    return printed, loaded


@pytest.mark.slow
def test_without_torch(tmp_path):
    commands = [
        ("bench", "--help"),
        ("bench", "suites"),
        ("bench", "table", "paper", "--store", f"{RESULTS}/paper.sqlite", "--format", "json"),
        ("bench", "table", "beyond", "--store", f"{RESULTS}/beyond.sqlite"),
        ("bench", "report", "paper", "--store", f"{RESULTS}/paper.sqlite", "--out", "page.html"),
    ]
    assert run_all(tmp_path, *commands)[1].isdisjoint(HEAVY)


def test_help_loads_nothing(tmp_path):
    commands = [("--version",), ("--help",), ("fit", "--help"), ("predict", "--help")]
    assert run_all(tmp_path, *commands)[1] == set()


@pytest.mark.slow
def test_training_and_tables_of_trainings_come_without_scikit_learn(tmp_path):
    _, loaded = run_all(tmp_path, ("train", "--help"), ("bench", "run", "--help"), ("datasets",))
    assert "torch" in loaded
    assert "sklearn" not in loaded


@pytest.mark.slow
def test_an_estimator_is_made_without_what_a_fit_needs():
    parts = ("numba", "torch_geometric", "sklearn.ensemble", "sklearn.linear_model", "sklearn.metrics")
    code = f"import sys, g3nn; g3nn.G3NNClassifier(); print([name for name in {parts} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def complete(folder: Path, line: str) -> list[str]:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1), "_G3NN_COMPLETE": "complete_bash"}
    out, loaded = run(folder, **words)
    assert loaded.isdisjoint(HEAVY)
    return out.split()


def test_completion(tmp_path):
    assert complete(tmp_path, "g3nn pre") == ["predict"]
    assert complete(tmp_path, "g3nn fit --dr") == ["--drop-unknown-edges", "--dry-run"]
    assert complete(tmp_path, "g3nn bench ta") == ["table"]


def test_completion_is_installed_for_the_shell(tmp_path):
    home = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script, _ = run(tmp_path, "--show-completion", "bash", **home)
    assert "_G3NN_COMPLETE=complete_bash" in script
    run(tmp_path, "--install-completion", "bash", **home)
    (written,) = (tmp_path / ".bash_completions").iterdir()
    assert written.name == "g3nn.sh"
    assert written.read_text().strip() == script.strip()


def test_version(run_command):
    ran = run_command("--version")
    first, python, *rest = ran.out.splitlines()
    assert (ran.code, ran.err, first) == (0, "", f"g3nn {g3nn.__version__}")
    assert python.startswith(f"python {platform.python_version()} on ")
    told = dict(line.split(" ", 1) for line in rest)
    assert {"torch", "torch_geometric", "numba", "pyarrow"} <= set(told)
    assert told["numpy"] == np.__version__


def test_the_version_of_what_is_not_installed(run_command, monkeypatch):
    monkeypatch.setattr(cli, "PACKAGES", ("numpy", "nothing-of-this-name"))
    assert run_command("--version").out.endswith("\nnothing-of-this-name is not installed\n")


def test_help_keeps_brackets_and_is_not_cut(run_command, monkeypatch):
    overview = " ".join(run_command("--help").out.split())
    assert [text for text in cli.COMMANDS.values() if text not in overview] == []
    assert "[required]" in run_command("fit", "--help").out
    app = cli.command("fit")
    option = next(one for one in app.params if one.name == "seed")
    monkeypatch.setattr(option, "help", "Any of [red] and [0, 1).")
    monkeypatch.setattr(cli, "command", lambda _: app)
    assert "Any of [red] and [0, 1)." in run_command("fit", "--help").out


def test_the_overview_says_what_the_command_says():
    for name in cli.COMMANDS:
        words = cli.command(name).help.split("\n\n")[0].split()
        assert " ".join(words) == cli.COMMANDS[name]


@pytest.mark.parametrize("words", ["--version", "--help", "bench suites"])
def test_output_that_cannot_be_written(words):
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "g3nn", *words.split()], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (ran.returncode, ran.stderr) == (2, "error: standard output: No space left on device\n")


def test_a_reader_who_has_read_enough():
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run([sys.executable, "-m", "g3nn", "--version"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (ran.returncode, ran.stderr) == (1, "")


INTERRUPTED = """
import signal, sys
from importlib.abc import MetaPathFinder

class Interrupt(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "{module}":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["g3nn", "bench", "suites"]
from importlib.metadata import EntryPoint
EntryPoint("g3nn", "{entry}", "console_scripts").load()()
"""


@pytest.mark.parametrize("module", ["g3nn.cli", "typer", "g3nn.base.errors", "g3nn.cli.bench", "jinja2"])
def test_control_c_while_the_command_is_loaded(module):
    settings = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
    code = INTERRUPTED.format(module=module, entry=settings["project"]["scripts"]["g3nn"])
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "interrupted\n")


def test_an_unknown_command(run_command):
    ran = run_command("trian")
    assert (ran.code, ran.out) == (2, "")
    assert "train" in ran.err
