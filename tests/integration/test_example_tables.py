"""The real tables of examples/tables are answered well above the trivial answer, as they are and without advice."""

from __future__ import annotations

import runpy
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import quick_judging
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score

import g3nn
from g3nn.estimator import estimator_for
from g3nn.estimator.fitting import EFFORTS

pd = pytest.importorskip("pandas", reason="the tables are made with pandas")
pytest.importorskip("networkx", reason="two of the tables come from networkx")

pytestmark = pytest.mark.usefixtures("labels_judged_quickly", "edges_judged_quickly")

FOLDER = Path(__file__).parents[2] / "examples" / "tables"
make = runpy.run_path(str(FOLDER / "make.py"))

SMALL: dict[str, Any] = {"model": "sbm-gcn", "ensemble": 1, "epochs": 200, "device": "cpu"}


def deviance_explained(truth: np.ndarray, answers: np.ndarray) -> float:
    return d2_tweedie_score(truth, answers, power=1)


MEASURES: dict[str, Callable[..., float]] = {
    "classes": accuracy_score,
    "real": r2_score,
    "counts": deviance_explained,
}


@dataclass(frozen=True)
class Case:
    """floor: of the measure of the outcome, a little below what default settings reach.

    notes: a part of each note that the tables call for. settings: a small model; None for the command as it is.
    """

    outcome: str
    floor: float
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] | None = None


NO_FEATURES = "no column that describes the nodes"
CASES = {
    "airports": Case("classes", 0.90, ("left out as names", "the same value in every row"), SMALL | {"model": "gcn"}),
    "cars": Case("classes", 0.70, ("missing numbers",), SMALL | {"model": "mlp"}),
    "diabetes": Case("real", 0.40, ("147 whole numbers",), SMALL | {"model": "near-gcn"}),
    "digits": Case("classes", 0.93, ("the same value in every row", "stated both ways"), SMALL),
    "doctor-visits": Case("counts", 0.05, ("25 whole numbers",)),
    "karate": Case("classes", 0.80, ("weights of the edges", NO_FEATURES), SMALL),
    "sentiment": Case("classes", 0.55, ("sentences", "labels of -1"), SMALL),
    "survey": Case("classes", 0.87, (), SMALL),
    "users-and-items": Case("classes", 0.80, (NO_FEATURES,)),
    "wine": Case("classes", 0.87),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Callable[[str], tuple[Path, Any]]:
    """Makes an example: its folder and what it was made from. Skips where a package is missing."""
    folder = tmp_path_factory.mktemp("tables")

    def write(name: str) -> tuple[Path, Any]:
        try:
            return make["write"](name, folder), make["EXAMPLES"][name]()
        except SystemExit as missing:
            pytest.skip(str(missing))

    return write


def score(answers: Any, folder: Path, example: Any, outcome: str) -> float:
    """Of the hidden labels, by id: wine's ids are 0.0 in one table and 0 in the others."""
    truth = pd.read_csv(folder / "answers.csv").set_index(example.id)[example.label]
    answered = answers.set_index("id").loc[truth.index, "label" if outcome == "classes" else "mean"]
    return MEASURES[outcome](truth.to_numpy(), answered.to_numpy())


def check_notes(notes: Sequence[str], case: Case) -> None:
    """As many as expected, each with its words."""
    assert len(notes) == len(case.notes), notes
    assert [part for part in case.notes if not any(part in note for note in notes)] == [], notes


def command(name: str) -> list[str]:
    """The words of the command that the README gives."""
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    (found,) = (line for line in lines if line.startswith(f"g3nn fit --nodes tables/{name}/nodes.csv "))
    return shlex.split(found)[1:]


def test_every_example_has_a_case():
    assert list(CASES) == list(make["EXAMPLES"])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.settings is None])
def test_the_plain_command_answers_well(name, tables, run_command, tmp_path, monkeypatch):
    """With fewer and smaller models than usual, all of which are tried."""
    monkeypatch.setitem(EFFORTS, "quick", quick_judging.FEW_MODELS["quick"])
    monkeypatch.setattr(*quick_judging.TREES)
    (folder, example), case, out = tables(name), CASES[name], tmp_path / "answers.parquet"
    words = [word.replace("tables/", f"{folder.parent}/") for word in command(name)]
    ended = run_command(*words, "--effort", "quick", "--ensemble", "1", "--out", str(out))
    assert ended.code == 0, ended.err
    said = [line.removeprefix("note: ") for line in ended.err.splitlines()]
    check_notes([text for text in said if text.startswith(str(folder))], case)
    assert score(pd.read_parquet(out), folder, example, case.outcome) > case.floor


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning")
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.settings is not None])
def test_a_small_model_answers_well(name, tables):
    (folder, example), case = tables(name), CASES[name]
    assert case.settings is not None
    words = command(name)
    columns = {column: words[words.index(f"--{column}") + 1] for column in ("id", "label")}
    graph = g3nn.read_tables(folder / "nodes.csv", folder / "edges.csv", **columns)
    assert graph.outcome == case.outcome
    check_notes(graph.notes, case)
    fitted = estimator_for(graph.outcome, case.settings).fit(graph)
    assert score(fitted.to_frame(), folder, example, case.outcome) > case.floor
