"""The suite of richer models is checked without training it: what it holds, what it selects, and what it may see."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import g3nn
from g3nn.graph.task import NodeTask
from g3nn.studies.comparison import compare
from g3nn.studies.job import Job, architecture, run_job
from g3nn.studies.records import Point
from g3nn.studies.suite import Suite, counterpart
from g3nn.studies.suite_file import load_suite
from g3nn.studies.tables import render

PEERS = ("gmnn", "appnp", "gcnii", "grand", "correct-smooth", "label-propagation", "mlp, laplacian")
SETTINGS = ("standard", "missing-edge", "reduced-label")
DATASETS = ("cora", "citeseer", "pubmed")


@pytest.fixture(scope="module")
def beyond() -> Suite:
    return load_suite("beyond")


SIZES = {"epochs": 3, "patience": 3, "order": 2, "layers": 2, "hidden": 8, "steps": 2, "samples": 2, "ensemble": 2}
SHARES = {
    "dropout": 0.5,
    "feature_dropout": 0.5,
    "isolated_share": 0.3,
    "sharpening": 0.5,
    "decay": 0.5,
    "teleport": 0.1,
}


def small(point: Point) -> Point:
    """The same way to build a model, only smaller, and one share for all that are not zero."""
    options = {**point.options, "epochs": 3} | {name: SIZES[name] for name in SIZES if name in point.options}
    options |= {name: share for name, share in SHARES.items() if options.get(name)}
    return replace(point, dataset="", setting="", options=options)


def architectures(suite: Suite) -> list[Point]:
    """One small point of the suite for each way that its models are built."""
    points = (small(point) for entry in suite.entries() for point in suite.points(entry))
    return list({architecture(point): point for point in points}.values())


def test_every_peer_and_several_of_ours_are_in_every_cell(beyond):
    for place in itertools.product(DATASETS, SETTINGS):
        cells = [cell for cell in beyond.cells if (cell.dataset, cell.setting) == place]
        assert {cell.label for cell in cells}.issuperset(PEERS), place
        assert sum(counterpart(cell.model) is not None for cell in cells) >= 4, place


def test_without_edges_at_test_time_validation_has_none_either(beyond):
    for entry in beyond.entries():
        validation = {point.options.get("validation") for point in beyond.points(entry)}
        assert validation == {"isolated" if entry.cell.setting == "missing-edge" else None}


def test_all_are_judged_by_the_same_loss(beyond):
    assert {point.options["calibrated"] for entry in beyond.entries() for point in beyond.points(entry)} == {True}


@pytest.fixture(scope="module")
def blind(learnable) -> NodeTask:
    """The task with other labels at validation and test nodes."""
    labels = learnable.labels.copy()
    for part in (learnable.val, learnable.test):
        labels[part] = (labels[part] + 1) % learnable.num_classes
    return replace(learnable, labels=labels)


@pytest.mark.slow
def test_training_sees_no_label_of_a_validation_or_test_node(beyond, learnable, blind):
    """Every loss of every model is the same whatever those labels are."""
    for point in architectures(beyond):
        seen, unseen = (
            g3nn.fit(task, point.model, point.objective, progress=False, **point.options) for task in (learnable, blind)
        )
        kept = [name not in ("val_loss", "val_accuracy") for name in seen.history_names]
        np.testing.assert_array_equal(seen.history[:, kept], unseen.history[:, kept], err_msg=str(point))


def test_a_job_that_selects_has_no_test_label(beyond, learnable):
    """With the test labels gone, a selecting job says the same."""
    point = Point("cora", "standard", "blsm-gcn", "elbo", {"epochs": 3, "hidden": 4, "calibrated": True})
    job = Job("select", (point,), (1000,))
    hidden = learnable.labels.copy()
    hidden[learnable.test] = -1
    with_labels, without = (run_job(job, "cpu", task)[0] for task in (learnable, replace(learnable, labels=hidden)))
    assert with_labels.val_loss == without.val_loss
    assert with_labels.test_accuracy is None


SELECTING = """
objectives = ["elbo"]
selects = true
[protocol]
trials = 2
[axes]
eta = [2]
[[grids]]
models = ["gcn", "sbm-gcn"]
[[grids]]
models = ["sbm-gcn"]
variants = ["louder"]
axes = ["eta"]
[[tables]]
name = "A"
setting = "standard"
options = { epochs = 7 }
cells = [
    { model = "gcn", dataset = "cora" },
    { model = "sbm-gcn", dataset = "cora" },
    { model = "sbm-gcn", dataset = "cora", variant = "louder" },
]
"""


@pytest.fixture
def selecting(tmp_path) -> Suite:
    file = tmp_path / "selecting.toml"
    file.write_text(SELECTING, encoding="utf-8")
    return load_suite(str(file), to_run=True)


def test_variants_have_grids_of_their_own_and_tables_options_of_theirs(selecting):
    options = {
        entry.cell.label: [dict(point.options) for point in selecting.points(entry)] for entry in selecting.entries()
    }
    assert options == {"gcn": [{"epochs": 7}], "sbm-gcn": [{"epochs": 7}], "sbm-gcn, louder": [{"epochs": 7, "eta": 2}]}


def test_the_generative_model_of_lowest_validation_loss_is_selected(selecting, store, make_record):
    known = {"gcn": (0.1, 0.7), "sbm-gcn": (0.5, 0.9), "sbm-gcn, louder": (0.4, 0.8)}
    for entry in selecting.entries():
        (point,) = selecting.points(entry)
        loss, accuracy = known[entry.cell.label]
        trials = [{"val_loss": loss, "test_accuracy": accuracy + seed / 100} for seed in range(2)]
        store.append([make_record(point, "trial", seed, **numbers) for seed, numbers in enumerate(trials)])
    comparison = compare(selecting, store)
    assert [cell.label for cell in comparison.cells if cell.selected] == ["sbm-gcn, louder"]
    (chosen,) = [cell for cell in comparison.cells if cell.selected]
    assert list(chosen.peers) == ["gcn"]
    assert chosen.peers["gcn"] < 0.05
    assert '"selected": true' in render(comparison, "json")
    assert "sbm-gcn, louder chosen by validation, 0.8050; p-values against gcn 0.005" in render(comparison)
    assert not any(cell.selected for cell in compare(replace(selecting, selects=False), store).cells)
