from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from g3nn.base.errors import InputError, Problem
from g3nn.studies.suite import Cell, DatasetRow, Grid, Protocol
from g3nn.studies.suite_file import load_suite

Refused = Callable[..., list[Problem]]


@pytest.fixture
def refused(tmp_path: Path) -> Refused:
    """Writes the files of a suite and returns the problems that are found with them."""

    def read(**files: str | bytes) -> list[Problem]:
        for name, content in files.items():
            content = content if isinstance(content, bytes) else content.encode()
            (tmp_path / f"{name}.toml").write_bytes(content)
        with pytest.raises(InputError) as caught:
            load_suite(str(tmp_path), to_run=True)
        return list(caught.value.problems)

    return read


def test_a_whole_suite(small_suite):
    assert (small_suite.name, small_suite.title, small_suite.source) == ("small", "A small suite", "nowhere")
    assert small_suite.protocol == Protocol(trials=4, selection_seeds=1, finalists=2, finalist_seeds=2)
    assert small_suite.objectives == ("released", "elbo")
    assert small_suite.fixed == {"epochs": 5, "lr": 0.01}
    partition = ({"p0": 0.9, "p1": 0.1}, {"p0": 0.5, "p1": 0.6})
    assert small_suite.grids == (
        Grid(("gcn", "mlp")),
        Grid(("sbm-gcn",), axes={"hidden": (4, 8), "partition": partition}),
        Grid(("sbm-gcn",), ("elbo",), ("citeseer",), axes={"lr": (0.01, 0.1)}),
    )
    assert small_suite.cells[0] == Cell("A", "cora", "standard", "gcn", "Table A, GCN", 0.8, 0.01)
    assert small_suite.cells[1].underline
    assert small_suite.cells[-1] == Cell("B", "cora", "missing-edge", "mlp")


def test_published_means_rest_on_as_many_trials_as_ours_unless_told(small_suite, small_text, tmp_path):
    (tmp_path / "more.toml").write_text(f"published_trials = 100\n{small_text}", encoding="utf-8")
    assert (small_suite.published_trials, load_suite(str(tmp_path / "more.toml")).published_trials) == (4, 100)


def test_files_of_a_folder_are_one_suite(small_text, tmp_path):
    head, *tables = re.split(r"^(?=\[\[tables\]\])", small_text, flags=re.MULTILINE)
    rows = 'datasets = [{ dataset = "cora", classes = 7, nodes = 2708, edges = 5278, mean_two_hop = 35.8 }]'
    for name, text in {"suite": head, "table1": rows, "table2": tables[0], "table3": tables[1]}.items():
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not part of it", encoding="utf-8")
    suite = load_suite(str(tmp_path))
    assert [cell.table for cell in suite.cells] == ["A"] * 4 + ["B"]
    assert suite.datasets == (DatasetRow("cora", 7, 2708, 5278, 35.8),)


def test_a_table_of_several_settings_and_datasets(small_text, tmp_path):
    table = """
[[tables]]
name = "C"
setting = ["missing-edge", "reduced-label"]
dataset = ["cora", "citeseer"]
trials = 2
cells = [{ model = "mlp" }, { model = "gcn", dataset = "pubmed" }]
"""
    (tmp_path / "more.toml").write_text(small_text + table, encoding="utf-8")
    suite = load_suite(str(tmp_path / "more.toml"), to_run=True)
    new = suite.cells[5:]
    assert [(cell.setting, cell.model, cell.dataset) for cell in new] == [
        (setting, *rest)
        for setting in ("missing-edge", "reduced-label")
        for rest in (("mlp", "cora"), ("mlp", "citeseer"), ("gcn", "pubmed"))
    ]
    assert {suite.trials(cell) for cell in new} == {2}
    assert {suite.trials(cell) for cell in suite.cells[:5]} == {4}
    assert {suite.with_trials(3).trials(cell) for cell in suite.with_trials(3).cells} == {3}


CHANGES = {
    "unknown key": ("title =", "titel =", "small.toml, titel", "unknown key", "'title'"),
    "objectives": ('["released", "elbo"]\n\n', '["released", "elbow"]\n', "objectives", "elbow", "'elbo'"),
    "no objectives": ('objectives = ["released", "elbo"]\n\n', "", ", objectives", "nothing", "a list of names"),
    "protocol value": ("trials = 4", "trials = 0", "protocol, trials", "0", "at least 1"),
    "seeds in both": ("trials = 4", "trials = 4\nfirst_seed = 1001", "protocol, trials", "1001", "1000 to 1001"),
    "fixed name": ("epochs = 5", "epoch = 5", "fixed, epoch", "unknown option", "'epochs'"),
    "fixed list": ("lr = 0.01\n", "lr = [0.01, 0.1]\n", "fixed, lr", "[0.01, 0.1]", "one value"),
    "axis name": ("hidden = [4, 8]", "hiden = [4, 8]", "axes, hiden", "unknown option", "'hidden'"),
    "axis value": ("hidden = [4, 8]", "hidden = [4, 0]", "axes, hidden", "0", "at least 1"),
    "axis of one value": ("hidden = [4, 8]", "hidden = 4", "axes, hidden", "4", "a list of values"),
    "nested axis": ("hidden = [4, 8]", "hidden = [[4], [8]]", "axes, hidden", "[[4], [8]]", "a list of values"),
    "channel": ("hidden = [4, 8]", 'hidden = [{ channels = "flip" }]', "axes, channels", "'flip'", "'flips'"),
    "option of a channel": ("hidden = [4, 8]", "hidden = [{ wrong = 0.1 }]", "axes, wrong", "sbm-gcn", "one of the"),
    "value of a channel": (
        "hidden = [4, 8]",
        'hidden = [{ channels = "flips+edges", wrong = 2 }]',
        "axes, wrong",
        "2",
        "between 0 and 0.99",
    ),
    "axis table": ("p0 = 0.5, p1 = 0.6", "p0 = 0.5, p1 = 1", "axes, p1", "1", "strictly between"),
    "unknown axis": ('axes = ["lr"]', 'axes = ["lrr"]', "small.toml, grids 3, axes", "lrr", "'lr'"),
    "grid model": ('models = ["gcn", "mlp"]', 'models = ["gcn", "mpl"]', "small.toml, grids 1, models", "mpl", "'mlp'"),
    "grid objective": ('["elbo"]', '["laplacian"]', "grids 3, objectives", "laplacian", "released or elbo"),
    "grid dataset": (
        'datasets = ["citeseer"]',
        'datasets = "citeseer"',
        "grids 3, datasets",
        "'citeseer'",
        "a list of",
    ),
    "grid setting": ('datasets = ["citeseer"]', 'settings = ["standart"]', "grids 3, settings", "", "'standard'"),
    "table name": ('name = "B"', "name = 2", "small.toml, tables 2, name", "2", "text"),
    "table without settings": ('"missing-edge"', "[]", "tables 2, setting", "[]", "text, or a list of names"),
    "table of numbers": ('"missing-edge"', "[3]", "tables 2, setting", "[3]", "text, or a list of names"),
    "table dataset": ('name = "B"', 'name = "B"\ndataset = 3', "tables 2, dataset", "3", "text, or a list of names"),
    "table trials": ('name = "B"', 'name = "B"\ntrials = 0', "tables 2, trials", "0", "at least 1"),
    "table of many trials": ('name = "B"', 'name = "B"\ntrials = 2000', "protocol, trials", "2000", "1000 to 1001"),
    "table setting": ('"missing-edge"', '"missing-edges"', "tables 2, setting", "'missing-edges'", "'missing-edge'"),
    "cell model": ('"mlp", dataset', '"mpl", dataset', "tables 2, cells 1, model", "'mpl'", "'mlp'"),
    "cell dataset": ('"mlp", dataset = "cora"', '"mlp", dataset = "cara"', "cells 1, dataset", "'cara'", "'cora'"),
    "cell key": ("published = 0.7 }", "pubished = 0.7 }", "cells 3, pubished", "unknown key", "'published'"),
    "cell value": ("published = 0.7 }", "published = 70 }", "tables 1, cells 3, published", "70", "between 0 and 1"),
    "cell flag": ("underline = true", 'underline = "yes"', "tables 1, cells 2, underline", "'yes'", "true or false"),
    "cell without dataset": (', dataset = "cora" }]', " }]", "tables 2, cells 1, dataset", "nothing", "text"),
    "cell without model": ('{ model = "mlp", ', "{ ", "tables 2, cells 1, model", "nothing", "text"),
    "cells": ('cells = [{ model = "mlp", dataset = "cora" }]', "cells = 3", "tables 2, cells", "3", "a list of tables"),
    "cell twice": (
        '{ model = "gcn", dataset = "citeseer"',
        '{ model = "gcn", dataset = "cora"',
        "cells",
        "twice",
        "once",
    ),
    "no grid under one objective": (
        '"sbm-gcn"]\naxes = ["hidden"',
        '"sbm-gcn"]\nobjectives = ["released"]\naxes = ["hidden"',
        "grids",
        "cora standard sbm-gcn elbo",
        "a grid",
    ),
    "not TOML": ("[fixed]", "[fixed", "small.toml", "line", "a TOML file"),
}


def test_each_mistake_is_named_with_its_place_and_remedy(refused, small_text):
    for change in CHANGES:
        before, after, argument, given, remedy = CHANGES[change]
        assert before in small_text
        problems = refused(small=small_text.replace(before, after, 1))
        whole = "," not in argument
        (problem,) = [
            one for one in problems if (one.argument if whole else one.argument[-len(argument) :]) == argument
        ]
        assert given in problem.given
        assert remedy in f"{problem.allowed} {problem.advice}"


def test_an_axis_of_another_model_is_refused(refused, small_text):
    text = small_text.replace('models = ["gcn", "mlp"]', 'models = ["gcn", "mlp"]\naxes = ["partition"]')
    found = {(problem.argument, problem.given) for problem in refused(small=text)}
    assert found == {(f"axes, {name}", f"for {model}") for name in ("p0", "p1") for model in ("gcn", "mlp")}


def test_a_fixed_option_is_one_of_every_model(refused, small_text):
    problems = refused(small=small_text.replace("epochs = 5", "learn_p = true"))
    assert [(one.argument, one.given) for one in problems] == [("fixed, learn_p", f"for {m}") for m in ("gcn", "mlp")]


def test_an_option_stands_on_one_axis_of_a_grid(refused, small_text):
    text = small_text.replace("[[grids]]", "rate = [{ lr = 1, eta = 2 }]\n\n[[grids]]", 1)
    (problem,) = refused(small=text.replace('axes = ["lr"]', 'axes = ["lr", "rate"]'))
    assert (problem.argument, problem.given) == ("small.toml, grids 3, axes", "lr on lr and rate")


def test_finalists_have_at_least_the_seeds_of_the_others(refused, small_text):
    (problem,) = refused(small=small_text.replace("selection_seeds = 1", "selection_seeds = 3"))
    assert (problem.argument, problem.given) == ("protocol, finalist_seeds", "2")
    assert "selection_seeds (3)" in problem.allowed


def test_a_wrong_value_on_a_shared_axis_is_named_once(refused, small_text):
    text = small_text.replace("lr = [0.01, 0.1]", "lr = [-1]").replace(
        'models = ["gcn", "mlp"]', 'models = ["gcn", "mlp"]\naxes = ["lr"]'
    )
    (problem,) = refused(small=text)
    assert (problem.argument, problem.given) == ("axes, lr", "-1")


def test_all_mistakes_of_all_files_are_named_at_once(refused):
    suite = """
    titel = "x"
    objectives = ["elbow"]
    [protocol]
    trails = 3
    [fixed]
    lr = -1
    [axes]
    hiden = [16]
    [[grids]]
    models = ["gnc"]
    """
    table = """
    [[tables]]
    name = "1"
    setting = "standart"
    cells = [{ model = "gcn", dataset = "cora", publised = 0.8 }]
    [[tables]]
    name = "2"
    setting = "standard"
    cells = [{ model = "gcn", dataset = "coar" }, { model = "gcn", dataset = "cora" }]
    """
    text = str(InputError(refused(suite=suite, table=table, torn="[[")))
    assert text.startswith("10 problems:")
    for near in ("title", "elbo", "trials", "hidden", "gcn", "standard", "published", "cora"):
        assert f"Did you mean {near!r}?" in text
    for place in ("fixed, lr", "torn.toml", "suite.toml, grids 1, models", "table.toml, tables 2, cells 1, dataset"):
        assert place in text


def test_what_is_said_once_is_not_said_in_two_files(refused, small_text):
    (problem,) = refused(a=small_text, b="title = 'again'")
    assert (problem.argument, problem.given) == ("b.toml, title", "a second time")


def test_a_suite_has_objectives_grids_and_tables(refused):
    found = [problem.argument.rpartition(", ")[2] for problem in refused(empty="")]
    assert found == ["objectives", "grids", "tables"]


def test_a_folder_without_files_is_no_suite(refused):
    assert [problem.given for problem in refused()] == ["nothing"] * 3


def test_bytes_that_are_no_text(refused):
    (problem,) = refused(small=b"title = '\xff'")
    assert (problem.argument, problem.allowed) == ("small.toml", "a TOML file in UTF-8")


def test_objectives_count_once(small_text, tmp_path):
    text = small_text.replace('["released", "elbo"]', '["released", "elbo", "released"]', 1)
    (tmp_path / "twice.toml").write_text(text, encoding="utf-8")
    assert load_suite(str(tmp_path)).objectives == ("released", "elbo")
