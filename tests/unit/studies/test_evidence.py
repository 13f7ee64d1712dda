from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

import g3nn
from g3nn.studies.evidence import MOST_EPOCHS, degrees, evidence, kept_epochs
from g3nn.studies.records import Evidence
from g3nn.training import FitResult


@pytest.fixture(scope="module")
def result(learnable) -> FitResult:
    return g3nn.fit(learnable, "sbm-gcn", trials=2, epochs=30, patience=5, device="cpu")


@pytest.fixture(scope="module")
def found(result, learnable) -> list[Evidence | None]:
    return evidence(result, learnable)


def test_scores_are_those_of_the_test_nodes(result, found, learnable):
    labels = learnable.labels[learnable.test]
    for t, one in enumerate(found):
        answers = result.probabilities[t, learnable.test]
        assert one.test_nodes == len(learnable.test)
        assert one.nll == pytest.approx(-np.log(answers[np.arange(len(labels)), labels]).mean(), rel=1e-5)
        assert one.brier == pytest.approx(((answers - np.eye(3)[labels]) ** 2).sum(1).mean(), rel=1e-5)
        assert 0 <= one.ece <= 1


def test_the_confusion_holds_the_accuracy(result, found, learnable):
    for t, one in enumerate(found):
        confusion = np.array(one.confusion)
        assert confusion.shape == (3, 3)
        np.testing.assert_array_equal(confusion.sum(1), np.bincount(learnable.labels[learnable.test], minlength=3))
        assert confusion.trace() / confusion.sum() == pytest.approx(result.test_accuracy[t])


def test_bins_hold_every_test_node_once(result, found, learnable):
    for kind in ["reliability", "degrees"]:
        for t, one in enumerate(found):
            bins = getattr(one, kind)
            assert sum(part.nodes for part in bins) == len(learnable.test)
            right = sum(part.nodes * part.accuracy for part in bins)
            assert right / len(learnable.test) == pytest.approx(result.test_accuracy[t])


def test_degree_bins_are_what_they_say(result, found, learnable):
    degree = degrees(learnable)[learnable.test]
    right = result.probabilities[0, learnable.test].argmax(1) == learnable.labels[learnable.test]
    for part in found[0].degrees:
        inside = (degree >= part.low) & (degree <= part.high)
        assert part.nodes == inside.sum() > 0
        assert part.accuracy == pytest.approx(right[inside].mean())
    ends = [(part.low, part.high) for part in found[0].degrees]
    assert set(ends) <= {(0, 0), (1, 1), (2, 2), (3, 4), (5, 8), (9, degree.max())}


def test_degrees_count_both_ends_of_an_edge(make_task):
    task = replace(make_task(), edges=np.array([[0, 0, 1], [1, 2, 2]]))
    assert degrees(task).tolist() == [2, 2, 2] + [0] * 11


def test_without_edges_there_is_one_bin_of_degrees(result, edgeless):
    (part,) = evidence(result, edgeless)[0].degrees
    assert (part.low, part.high, part.nodes) == (0, 0, len(edgeless.test))


def test_curves_are_the_history_at_the_kept_epochs(result, found):
    for t, one in enumerate(found):
        assert set(one.curves) == set(result.history_names)
        rows = np.array(one.epochs) - 1
        for k, name in enumerate(result.history_names):
            np.testing.assert_array_equal(one.curves[name], result.history[rows, k, t])
        assert one.epochs[-1] == result.epochs[t]
        assert result.best_epoch[t] in one.epochs


def test_kept_epochs():
    for last, best in [(1, 1), (59, 30), (61, 2), (2000, 1777)]:
        kept = kept_epochs(last, best)
        assert len(kept) <= MOST_EPOCHS
        assert {1, best, last} <= set(kept)
        assert list(kept) == sorted(set(kept))
        assert len(kept) == last or last >= MOST_EPOCHS
        others = [epoch for epoch in kept if epoch != best]
        steps = np.diff(others)
        assert last < MOST_EPOCHS or steps.max() <= 2 * steps.min() + 1


def test_it_survives_json(found):
    assert [Evidence.from_json(json.dumps(asdict(one), allow_nan=False)) for one in found] == found


def test_a_trial_that_never_began_has_none(learnable):
    with pytest.warns(g3nn.G3NNWarning, match="1 of 2 trials"):
        result = g3nn.fit(learnable, "sbm-gcn", trials=2, epochs=3, device="cpu", lr=(0.01, 1e30))
    first, second = evidence(result, learnable)
    assert first is not None
    assert second is None


def test_what_is_not_finite_is_left_out(result, learnable):
    history = result.history.copy()
    history[0, 0, 0] = np.inf
    (first, _) = evidence(replace(result, history=history), learnable)
    curve = first.curves[result.history_names[0]]
    assert curve[0] is None
    assert None not in curve[1:]


def test_a_probability_of_zero_is_a_finite_loss(result, learnable):
    answers = result.answers.clone()
    answers[0] = torch.tensor(np.eye(3)[(learnable.labels + 1) % 3]).log()
    one = evidence(replace(result, answers=answers), learnable)[0]
    assert 80 < one.nll < 100
    assert one.brier == 2.0
