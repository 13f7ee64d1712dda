"""The suite of wrong labels: what it holds, and a tiny one from the trainings to the page."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec

import numpy as np
import pytest
from typer.testing import CliRunner

import g3nn.graph.datasets
from g3nn.base.errors import InputError
from g3nn.cli import app
from g3nn.graph.datasets import DATASETS, GRAPHS, LABEL_NOISE, load, load_noisy, settings_of
from g3nn.queries import wrong_labels
from g3nn.studies import executors, run
from g3nn.studies import suite_page as views
from g3nn.studies.comparison import compare
from g3nn.studies.executors import LocalExecutor
from g3nn.studies.job import Job, run_job
from g3nn.studies.records import Point
from g3nn.studies.run import schedule
from g3nn.studies.single_job import LABELS_AUC, LABELS_EXPECTED, label_figures
from g3nn.studies.store import Store
from g3nn.studies.suite import CLEANED, ESTIMATOR, Suite
from g3nn.studies.suite_file import load_suite
from g3nn.studies.tables import render

LABELS = ["gcn", "appnp", "gcn, forward", CLEANED, ESTIMATOR, "g3nn, given"]
QUICK = {"model": "gcn", "epochs": 3, "ensemble": 1}
NO_TEXAS = "there is no texas.npz. Set G3NN_GRAPHS to the folder with these files and run again."
needs_cleanlab = pytest.mark.skipif(find_spec("cleanlab") is None, reason="needs cleanlab")

TINY = """
objectives = ["elbo"]
selects = true
[protocol]
trials = 2
selection_seeds = 1
finalists = 1
finalist_seeds = 1
[fixed]
epochs = 2
[axes]
flips = [{ channels = "flips", wrong = 0.1 }, { channels = "flips", wrong = 0.3 }]
few = [{ model = "gcn", epochs = 2, ensemble = 1 }]
given = [{ model = "gcn", epochs = 2, ensemble = 1, label_noise = false }]
[[grids]]
models = ["gcn", "appnp", "gcn-cleanlab"]
[[grids]]
models = ["gcn"]
variants = ["forward"]
axes = ["flips"]
[[grids]]
models = ["g3nn"]
axes = ["few"]
[[grids]]
models = ["g3nn"]
variants = ["given"]
axes = ["given"]
[[tables]]
name = "one"
setting = ["uniform-0", "uniform-30", "pair-30"]
dataset = ["cora", "texas"]
cells = [
    { model = "gcn" },
    { model = "appnp" },
    { model = "gcn", variant = "forward" },
    { model = "gcn-cleanlab" },
    { model = "g3nn" },
    { model = "g3nn", variant = "given" },
]
"""


@pytest.fixture(scope="module", autouse=True)
def _hardly_judged(labels_judged_quickly, edges_judged_quickly):
    """What is recorded of a judgement is tested here, however good it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wrong_labels, "EPOCHS", 5)
        yield


@pytest.fixture
def tiny(tmp_path) -> Suite:
    file = tmp_path / "tiny.toml"
    file.write_text(TINY, encoding="utf-8")
    return load_suite(str(file), to_run=True)


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite("label-noise", to_run=True)


def test_every_model_is_in_every_place(suite):
    places = {(cell.dataset, cell.setting) for cell in suite.cells}
    assert places == {(dataset, setting) for dataset in (*DATASETS, *GRAPHS) for setting in LABEL_NOISE}
    assert all(setting in settings_of(dataset) for dataset, setting in places)
    for place in places:
        cells = [cell for cell in suite.cells if (cell.dataset, cell.setting) == place]
        assert [cell.label for cell in cells] == LABELS, place
        assert {suite.trials(cell) for cell in cells} == {10 if place[0] in DATASETS else 3}


def test_what_each_model_is_chosen_from(suite):
    entries = suite.entries({"dataset": "texas", "setting": "pair-30"})
    options = {entry.cell.label: [dict(point.options) for point in suite.points(entry)] for entry in entries}
    assert options[ESTIMATOR] == [{}]
    assert options["g3nn, given"] == [{"label_noise": False}]
    assert options[CLEANED] == options["gcn"] == options["appnp"]
    assert [(one["hidden"], one["channels"], one["wrong"]) for one in options["gcn, forward"]] == [
        (hidden, "flips", wrong) for hidden in (16, 64) for wrong in (0.1, 0.3, 0.5)
    ]


@pytest.mark.parametrize(
    ("before", "after", "argument", "remedy"),
    [
        ('channels = "flips", wrong = 0.1', 'channels = "edges"', "axes, channels", "a model with a likelihood"),
        ('models = ["gcn", "appnp", "gcn-cleanlab"]', 'models = ["gcn-cleanlap"]', "grids 1, models", "'gcn-cleanlab'"),
        ("[fixed]\nepochs = 2", "[fixed]\nteleport = 0.1", "fixed, teleport", "one of the options"),
        ("label_noise = false", "label_noize = false", "axes, label_noize", "label_noise"),
    ],
)
def test_names_are_checked(tmp_path, before, after, argument, remedy):
    assert before in TINY
    file = tmp_path / "own.toml"
    file.write_text(TINY.replace(before, after), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_suite(str(file), to_run=True)
    found = [problem for problem in caught.value.problems if problem.argument.endswith(argument)]
    assert found
    assert remedy in f"{found[0].allowed} {found[0].advice}"


def test_each_seed_has_labels_of_its_own(graph, tiny, store):
    jobs = schedule(tiny, store, {"dataset": "cora", "model": "gcn", "setting": "pair-30"}, 32).jobs
    plain = [job for job in jobs if job.stage == "trial"]
    assert [job.seeds for job in plain] == [(0,), (1,)]
    one, other = map(executors.task_for, plain)
    assert not np.array_equal(one.labels, other.labels)
    assert np.array_equal(other.labels, load("cora", "pair-30", seed=1).labels)


@pytest.mark.slow
def test_the_estimator_finds_wrong_labels(graph):
    noisy = load_noisy("cora", "uniform-30", 3)
    point = Point("cora", "uniform-30", ESTIMATOR, "elbo", QUICK)
    (record,) = run_job(Job("trial", (point,), (3,)), "cpu", noisy.task)
    assert record.error == ""
    known = np.full(120, -1)
    for part in (graph.train, graph.val):
        known[part] = noisy.task.labels[part]
    fitted = g3nn.G3NNClassifier(**QUICK, random_state=3, device="cpu")
    fitted.fit(graph.features, known, graph.edges, val=graph.val)
    assert record.test_accuracy == (fitted.predict() == graph.labels)[graph.test].mean()
    assert record.val_accuracy == (fitted.predict() == known)[graph.val].mean()
    labels = fitted.audit_labels()
    doubts = np.zeros(120)
    doubts[labels["node"]] = labels["probability"]
    assert record.evidence.figures == label_figures(doubts, point, 3, noisy.task)


def test_what_is_not_there_is_left_out_with_a_note(graph, tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    part = {"setting": "pair-30", "model": "gcn,gcn-cleanlab", "variant": ""}
    report = run.run(tiny, tmp_path / "runs.sqlite", LocalExecutor("cpu"), part)
    assert (report.trainings, report.failures) == (2, ())
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note")]
    assert sorted(notes) == [
        f"note: 1 cell is left out: {NO_TEXAS}",
        "note: 2 cells are left out: there is no cleanlab. Install it with pip install 'g3nn[peers]' and run again.",
    ]
    for nothing in ({"dataset": "texas"}, {"model": CLEANED}):
        assert run.run(tiny, tmp_path / "runs.sqlite", LocalExecutor("cpu"), nothing).trainings == 0


@pytest.mark.slow
@needs_cleanlab
def test_from_the_trainings_to_the_page(graph, tiny, tmp_path):
    store, page = tmp_path / "runs.sqlite", tmp_path / "page.html"
    call = CliRunner().invoke
    arguments = [str(tmp_path / "tiny.toml"), "--store", str(store)]
    done = call(app, ["bench", "run", *arguments, "--device", "cpu"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert re.findall("note: .*", done.output) == [f"note: 18 cells are left out: {NO_TEXAS}"]
    with Store.read(store) as stored:
        comparison = compare(tiny, stored)
        assert {record.status for record in stored.records()} <= {"limit", "stopped"}
    cells = [cell for cell in comparison.cells if cell.dataset == "cora"]
    assert {cell.trials for cell in cells} == {2}
    ours = [cell for cell in cells if cell.selected]
    assert [(cell.label, cell.setting) for cell in ours] == [
        (ESTIMATOR, setting) for setting in ("uniform-0", "uniform-30", "pair-30")
    ]
    for cell in ours:
        assert list(cell.peers) == [label for label in LABELS if label != ESTIMATOR]
    for cell in cells:
        if cell.label in (ESTIMATOR, CLEANED):
            clean = cell.setting == "uniform-0"
            assert set(cell.figures) == ({LABELS_EXPECTED} if clean else {LABELS_AUC, LABELS_EXPECTED})
    text = render(comparison)
    figures = r"\(NLL .*, labels AUC 0\.\d+, labels expected 0\.\d+\)"
    assert re.search(rf"cora uniform-30: g3nn, 0\.\d+ {figures}; p-values against gcn .*, g3nn, given", text)
    assert re.search(rf"cora uniform-30: gcn-cleanlab, 0\.\d+ {figures}\n", text)
    assert call(app, ["bench", "report", *arguments, "--out", str(page)], catch_exceptions=False).exit_code == 0
    assert "Accuracy against noise" in page.read_text(encoding="utf-8")
    again = call(app, ["bench", "run", *arguments, "--device", "cpu", "--json"], catch_exceptions=False)
    assert json.loads(again.stdout)["trainings"] == 0


def test_accuracy_against_the_amount_of_noise(tiny, store, make_record):
    """Labels without noise are the amount 0 of both kinds."""
    for entry in tiny.entries({"dataset": "cora", "model": "appnp"}):
        (point,) = tiny.points(entry)
        store.append([make_record(point, "trial", seed, test_accuracy=0.9) for seed in range(2)])
    panels = {panel["title"]: panel["lines"] for panel in views.rates(compare(tiny, store).cells)}
    assert {title: line["rates"] for title, (line,) in panels.items()} == {
        "Uniform on Cora": [0, 30],
        "Pair on Cora": [0, 30],
    }
