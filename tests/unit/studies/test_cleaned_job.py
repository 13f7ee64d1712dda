"""A GCN without the labels that cleanlab doubts, and the figures about wrong labels."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from g3nn.graph.datasets import load_noisy
from g3nn.graph.task import NodeTask
from g3nn.studies.job import Job, run_job
from g3nn.studies.records import Point, Record
from g3nn.studies.single_job import LABELS_AUC, LABELS_EXPECTED, label_figures
from g3nn.studies.suite import CLEANED

needs_cleanlab = pytest.mark.skipif(find_spec("cleanlab") is None, reason="needs cleanlab")


def auc(doubts: np.ndarray, wrong: np.ndarray) -> float:
    """The share of pairs, a wrong label and a right one, of which the wrong one is more doubtful."""
    one, other = doubts[wrong][:, None], doubts[~wrong]
    return float(((one > other) + 0.5 * (one == other)).mean())


def test_figures(graph):
    noisy = load_noisy("cora", "uniform-30", 3)
    doubts = np.random.default_rng(0).random(120)
    labelled = np.concatenate([graph.train, graph.val])
    found = label_figures(doubts, Point("cora", "uniform-30", "gcn", "elbo", {}), 3, noisy.task)
    area, expected = auc(doubts[labelled], noisy.wrong[labelled]), doubts[labelled].mean()
    assert found == pytest.approx({LABELS_AUC: area, LABELS_EXPECTED: expected})
    found = label_figures(doubts, Point("cora", "uniform-0", "gcn", "elbo", {}), 3, graph)
    assert found == pytest.approx({LABELS_EXPECTED: expected})
    assert label_figures(doubts, Point("cora", "standard", "gcn", "elbo", {}), 3, graph) == {}


def ran(name: str, setting: str, seed: int, task: NodeTask, stage: str = "trial", **options) -> Record:
    point = Point("cora", setting, name, "elbo", options)
    (record,) = run_job(Job(stage, (point,), (seed,)), "cpu", task)
    assert record.error == ""
    return record


@pytest.mark.slow
@needs_cleanlab
def test_doubtful_labels_are_dropped(graph, monkeypatch):
    from g3nn.studies import single_job

    tasks, fit = [], single_job.fit

    def spied(task, *names, **options):
        tasks.append(task)
        return fit(task, *names, **options)

    monkeypatch.setattr(single_job, "fit", spied)
    noisy = load_noisy("cora", "uniform-30", 3)
    record = ran(CLEANED, "uniform-30", 3, noisy.task, epochs=60)
    *folds, last = tasks
    labelled = np.union1d(graph.train, graph.val)
    answered = [np.setdiff1d(labelled, np.union1d(task.train, task.val)) for task in folds]
    np.testing.assert_array_equal(np.sort(np.concatenate(answered)), labelled)
    assert {nodes.size for nodes in answered} == {task.val.size for task in folds} == {14}
    for task, nodes in zip(folds, answered, strict=True):
        assert np.bincount(task.labels[nodes]).min() >= np.bincount(noisy.task.labels[labelled]).min() // 5
    kept = np.union1d(last.train, last.val)
    assert set(last.train) < set(graph.train)
    assert set(last.val) < set(graph.val)
    assert noisy.wrong[kept].mean() < 0.3
    assert set(record.evidence.figures) == {LABELS_AUC, LABELS_EXPECTED}
    assert record.evidence.figures[LABELS_AUC] > 0.6
    select = ran(CLEANED, "uniform-30", 3, noisy.task, "select", epochs=60)
    assert (select.val_loss, select.test_accuracy, select.evidence) == (record.val_loss, None, None)
    assert select.split == record.split
    assert {task.test.size for task in tasks[6:]} == {0}


@needs_cleanlab
def test_a_class_may_lose_its_labels(graph):
    labels, labelled = graph.labels.copy(), np.union1d(graph.train, graph.val)
    labels[labelled[labels[labelled] == 0][1:]] = 1
    record = ran(CLEANED, "standard", 0, replace(graph, labels=labels), epochs=5)
    assert record.evidence.figures == {}


@needs_cleanlab
def test_a_training_that_diverges_is_a_failed_record(graph):
    point = Point("cora", "standard", CLEANED, "elbo", {"epochs": 5})
    (record,) = run_job(Job("trial", (point,), (0,)), "cpu", replace(graph, val=graph.val[:0], train=graph.train[:3]))
    assert record.status == "failed"
    assert "diverged" in record.error
