"""The suite of few labels: what it holds, and a tiny one from the trainings to the table."""

from __future__ import annotations

import json
import re
from importlib import resources

import numpy as np
import pytest
from typer.testing import CliRunner

from g3nn.cli import app
from g3nn.graph.datasets import DATASETS, GRAPHS, SCARCE, load
from g3nn.studies import executors
from g3nn.studies import suite_page as views
from g3nn.studies.comparison import compare
from g3nn.studies.run import schedule
from g3nn.studies.single_job import COVERAGE
from g3nn.studies.store import Store
from g3nn.studies.suite import ESTIMATOR, Suite
from g3nn.studies.suite_file import load_suite
from g3nn.studies.tables import render

PEERS = ["label-propagation", "mlp", "gcn", "appnp", "grand"]
SETTINGS = ("labels-1", "labels-3-missing-edge")
SHORTER = (
    ("trials = 10", "trials = 2"),
    ("epochs = 200", "epochs = 4"),
    ("hidden = [64]", 'hidden = [64]\nquick = [{ effort = "quick", epochs = 4 }]'),
    ('objective = "none"', 'objective = "none", effort = "quick", epochs = 4'),
    ('models = ["g3nn"]\n\n', 'models = ["g3nn"]\naxes = ["quick"]\n\n'),
)
"""What makes the suite of the package a tiny one."""


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite("scarce", to_run=True)


@pytest.fixture
def tiny(tmp_path) -> str:
    text = resources.files("g3nn.studies").joinpath("suites/scarce/suite.toml").read_text(encoding="utf-8")
    for before, after in SHORTER:
        assert before in text
        text = text.replace(before, after)
    file = tmp_path / "tiny.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_every_model_is_in_every_place_with_one_point(suite):
    places = {(cell.dataset, cell.setting) for cell in suite.cells}
    assert places == {(dataset, setting) for dataset in (*DATASETS, *GRAPHS) for setting in SCARCE}
    for dataset, setting in places:
        entries = suite.entries({"dataset": dataset, "setting": setting})
        assert [entry.cell.label for entry in entries] == [*PEERS, ESTIMATOR, "g3nn, networks"]
        assert {suite.trials(entry.cell) for entry in entries} == {10 if dataset in DATASETS else 5}
        points = [suite.points(entry) for entry in entries]
        assert {len(own) for own in points} == {1}
        assert [dict(own[0].options) for own in points[5:]] == [{}, {"objective": "none"}]
        assert {own[0].options["keep"] for own in points[:5]} == {"last"}
        assert {own[0].options["epochs"] for own in points[1:5]} == {200}


def test_nothing_is_selected_and_each_seed_has_labels_of_its_own(graph, suite, store):
    jobs = schedule(suite, store, {"dataset": "cora", "model": "gcn", "setting": "labels-3"}, 32).jobs
    assert [(job.stage, job.seeds) for job in jobs] == [("trial", (seed,)) for seed in range(10)]
    tasks = [executors.task_for(job) for job in jobs]
    assert len({tuple(task.train) for task in tasks}) == 10
    assert np.array_equal(tasks[4].train, load("cora", "labels-3", seed=4).train)


def test_few_labels_are_no_noise(graph, suite, store, make_record):
    for entry in suite.entries({"dataset": "cora", "model": "gcn"}):
        store.append([make_record(suite.points(entry)[0], "trial", 0, test_accuracy=0.9)])
    assert views.rates(compare(suite, store).cells) == []


@pytest.mark.slow
def test_a_run_that_stopped_goes_on(graph, tiny, tmp_path):
    store, call = tmp_path / "runs.sqlite", CliRunner().invoke
    part = ["--only", "dataset=cora", "--only", f"setting={','.join(SETTINGS)}"]
    arguments = ["bench", "run", tiny, "--store", str(store), "--device", "cpu", "--json"]

    def ran(*only: str) -> int:
        done = call(app, [*arguments, *part, *only], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        assert (told["failures"], told["diverged"]) == ([], 0)
        return int(told["trainings"])

    assert ran("--only", "model=mlp,g3nn") == 2 * 3 * 2
    assert ran() == 2 * 4 * 2
    assert ran() == 0
    with Store.read(store) as stored:
        records = stored.records(evidence=True)
        comparison = compare(load_suite(tiny), stored, {"dataset": "cora", "setting": ",".join(SETTINGS)})
    assert len({(record.point.setting, record.split) for record in records}) == 2 * 2
    for record in records:
        assert (record.stage, record.val_loss, record.val_accuracy) == ("trial", None, None)
        assert record.seconds > 0
        assert 0 <= record.evidence.ece <= 1
        assert set(record.evidence.figures) == ({COVERAGE} if record.point.model == ESTIMATOR else set())
        if record.point.setting == "labels-1" and record.point.model == ESTIMATOR:
            # Nothing can be excluded without a label that was left out.
            assert record.evidence.figures == {COVERAGE: 1.0}
    ours = [cell for cell in comparison.cells if cell.selected]
    assert [(cell.label, cell.setting) for cell in ours] == [(ESTIMATOR, setting) for setting in SETTINGS]
    assert all(list(cell.peers) == [*PEERS, "g3nn, networks"] for cell in ours)
    told = render(comparison)
    assert re.search(r"cora labels-1: g3nn, 0\.\d+ \(NLL .*, ECE .*, coverage .*\); p-values against", told)
