"""Classes: how they are read and split, and how answers are measured."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, f1_score

from g3nn.base.errors import Problems
from g3nn.graph.outcomes import Classes, Labels, Targets

LOG_PROB = torch.tensor(
    [
        [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]],
        [[0.1, 0.2, 0.7], [0.3, 0.4, 0.3], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]],
    ],
    dtype=torch.float64,
).log()
LABELS = np.array([0, 1, 2, -1])


def read(y, n=None):
    problems = Problems()
    return Classes.read(y, len(y) if n is None else n, problems), problems.found


@pytest.mark.parametrize(
    ("given", "classes", "codes"),
    [
        (["b", None, "a"], ["a", "b"], [1, -1, 0]),
        (np.array(["b", "a", "b"]), ["a", "b"], [1, 0, 1]),
        (np.array([np.nan, 2.0, -1.0, 0.0]), [0, 2], [-1, 1, -1, 0]),
        ([True, None, False], [False, True], [1, -1, 0]),
        (np.array([True, False]), [False, True], [1, 0]),
        ([np.int64(5), float("nan"), -1, np.float32(4.0)], [4, 5], [1, -1, -1, 0]),
        (pa.chunked_array([["x", None], ["y"]]), ["x", "y"], [0, -1, 1]),
        (torch.tensor([1, 0, -1]), [0, 1], [1, 0, -1]),
        (torch.tensor([1, 0, -1], dtype=torch.bfloat16), [0, 1], [1, 0, -1]),
        (["a\0", "a", None, "a\0"], ["a", "a\0"], [1, 0, -1, 1]),
        ([2**53 + 1, 2.0**53, 2**63 - 1], [2**53, 2**53 + 1, 2**63 - 1], [1, 0, 2]),
    ],
)
def test_labels_of_any_kind(given, classes, codes):
    labels, problems = read(given)
    assert problems == []
    assert labels.names.tolist() == classes
    assert labels.values.tolist() == codes


@pytest.mark.parametrize(
    ("given", "wrong", "advice"),
    [
        ([0.5, 1.0], "values such as 0.5", "G3NNRegressor"),
        (["a", 1], "strings and whole numbers mixed", ""),
        ([True, "a"], "booleans and strings mixed", ""),
        (["a", None, "a"], "2 labels of 1 classes", "nothing to tell apart"),
        ([-1, 1, 1], "2 labels of 1 classes", "If -1 is a class, write 0 and 1"),
        ([-1, None], "0 labels of 0 classes", ""),
        ([(1, 2), (3, 4)], "values such as (1, 2)", "a column of 0 and 1 for each tag"),
        (np.array([2**64 - 1, 0], dtype=np.uint64), f"values such as {2**64 - 1}", ""),
        ([2**63, 0], f"values such as {2**63}", ""),
        ([1e300, 2e300], "values such as 1e+300", ""),
        (np.array([1, 2], dtype="M8[ns]"), "values such as datetime.datetime(1970, 1, 1, 0, 0)", ""),
        (["a\ud800", "b"], "names with halves of characters ('a\\ud800')", ""),
    ],
)
def test_other_values_are_refused(given, wrong, advice):
    labels, (problem,) = read(given)
    assert labels is None
    assert problem.given == wrong
    assert advice in problem.advice


def test_long_names_take_the_room_of_their_letters():
    labels, _ = read(["a", "b" * 20_000, "c"])
    assert labels.names[[0, 2] * 10_000].nbytes < 1e6


def test_one_label_for_each_node():
    assert read(5, n=2)[1][0].given == "shape ()"
    assert "3 nodes" in read([0, 1], n=3)[1][0].allowed
    assert read(np.zeros((2, 1)))[1][0].given == "shape (2, 1)"


def test_labels_to_judge_by_are_classes_of_the_fit():
    problems = Problems()
    assert Classes.encode(["b", "a"], np.array(["a", "b"]), problems).tolist() == [1, 0]
    assert problems.found == []
    Classes.encode([0, 9, 8, [1]], np.array([0, 1]), problems)
    assert problems.found[0].given == "8, 9, [1]"


def held_out(counts, share):
    """How many nodes of each class are held out."""
    codes, problems = np.repeat(np.arange(len(counts)), counts), Problems()
    labels = Labels(np.array(list("abc")[: len(counts)]), codes)
    val = Classes.hold_out(labels, share, np.random.RandomState(0), problems)
    return np.bincount(codes[val], minlength=len(counts)).tolist(), problems.found


@pytest.mark.parametrize(
    ("counts", "share", "expected"),
    [([10, 50, 100], 0.2, [2, 10, 20]), ([2, 3, 40], 0.01, [1, 1, 1]), ([2, 3, 40], 0.99, [1, 2, 39])],
)
def test_a_share_of_each_class_is_held_out_but_never_all_of_it(counts, share, expected):
    assert held_out(counts, share) == (expected, [])


def test_the_only_label_of_a_class_stays_for_training():
    labels = Labels(np.array(["a", "b"]), np.array([0, 1, 1, 1, -1]))
    problems = Problems()
    held = Classes.hold_out(labels, 0.5, np.random.RandomState(0), problems)
    assert (labels.values[held].tolist(), problems.found) == ([1, 1], [])
    assert Classes.hold_out(Labels(labels.names, np.array([0, 1])), 0.5, np.random.RandomState(0), problems).size == 0


def test_chosen_validation_nodes_are_labelled_and_leave_something_to_train_on():
    labels, problems = Labels(np.array(["a", "b"]), np.array([0, 0, 1, -1])), Problems()
    Classes.check_validation(labels, np.array([1]), problems)
    assert problems.found == []
    Classes.check_validation(labels, np.array([2, 3]), problems)
    Classes.check_validation(labels, np.zeros(0, dtype=int), problems)
    given = [problem.given for problem in problems.found]
    assert given == ["1 nodes without a label", "every label of class 'b'", "no node"]


def targets_of(labels: np.ndarray, columns: int) -> Targets:
    return Classes(columns).targets(labels, np.zeros(0, dtype=int), "cpu", torch.float64)


def validation(answer: torch.Tensor, labels: np.ndarray, nodes: list[int]) -> torch.Tensor:
    K = answer.shape[2]
    return Classes(K).validation(answer, targets_of(labels, K), torch.tensor(nodes))


def test_loss_and_accuracy_of_a_hand_computed_example():
    loss, accuracy = validation(LOG_PROB, LABELS, [0, 1, 2])
    expected = [-math.log(0.7 * 0.8 * 0.5) / 3, -math.log(0.1 * 0.4 * 0.2) / 3]
    assert loss.tolist() == pytest.approx(expected, rel=1e-12)
    assert accuracy.tolist() == pytest.approx([1.0, 1 / 3])
    assert validation(LOG_PROB, LABELS, [2, 1])[1].tolist() == [1.0, 0.5], "the given nodes alone"


def test_the_loss_is_that_of_torch():
    expected = [torch.nn.functional.nll_loss(rows[:3], torch.from_numpy(LABELS[:3])).item() for rows in LOG_PROB]
    assert validation(LOG_PROB, LABELS, [0, 1, 2])[0].tolist() == pytest.approx(expected, rel=1e-12)


def test_calibrated_loss_is_the_lowest_over_temperatures():
    torch.manual_seed(0)
    scores = torch.randn(2, 40, 3, dtype=torch.float64)
    labels = torch.multinomial((4 * scores[0]).softmax(1), 1).squeeze(1).numpy()
    nodes, log_prob = list(range(5, 40)), scores.log_softmax(2)
    calibrated = Classes(3).calibrated_loss(log_prob, targets_of(labels, 3), torch.tensor(nodes))
    fine = [validation((scores / t).log_softmax(2), labels, nodes)[0] for t in np.logspace(-1, 1, 241)]
    lowest = torch.stack(fine).amin(0)
    assert (calibrated >= lowest - 1e-12).all()
    torch.testing.assert_close(calibrated, lowest, rtol=0.01, atol=0)
    assert (calibrated <= validation(log_prob, labels, nodes)[0]).all()


def test_calibrated_loss_does_not_depend_on_how_certain_an_answer_is():
    """An answer whose temperature is one step of the grid away from another's has the same loss."""
    torch.manual_seed(0)
    log_prob = (2 * torch.randn(1, 300, 4, dtype=torch.float64)).log_softmax(2)
    targets = targets_of(torch.multinomial(log_prob[0].exp(), 1).squeeze(1).numpy(), 4)
    sharper = (log_prob * 10 ** (1 / 12)).log_softmax(2)
    losses = [Classes(4).calibrated_loss(answer, targets, torch.arange(300)) for answer in (log_prob, sharper)]
    torch.testing.assert_close(*losses)


def test_conformal_scores_and_sets_of_a_hand_computed_example():
    outcome = Classes(2)
    scores = outcome.conformal_scores(np.log([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]), np.array([0, 1, 1]))
    np.testing.assert_allclose(scores, [0.1, 0.6, 0.3])
    answer = np.log([[0.75, 0.25], [0.55, 0.45]])
    # Of three scores, alpha = 0.5 takes the second smallest, 0.3, and alpha = 0.25 the largest, 0.6.
    np.testing.assert_array_equal(outcome.conformal(answer, scores, 0.5), [[True, False], [True, False]])
    np.testing.assert_array_equal(outcome.conformal(answer, scores, 0.25), [[True, False], [True, True]])


def test_a_certain_and_wrong_answer_has_a_finite_measured_loss():
    with np.errstate(divide="ignore"):
        answer = np.log(np.array([[1.0, 0.0]]))
    measures = Classes(2).evaluate(answer, np.array([1]), np.ones((1, 2), dtype=bool), np.arange(2), True)
    assert 700 < measures["nll"] < np.inf
    assert (measures["accuracy"], measures["brier"], measures["ece"]) == (0.0, 2.0, 1.0)


def test_measures_of_each_class_are_those_of_scikit_learn():
    truth, given = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 0, 0])
    answer = np.log(0.1 + 0.6 * np.eye(4)[given])
    measures = Classes(4).evaluate(answer, truth, np.ones((6, 4), dtype=bool), np.array(list("abcd")), True)
    assert measures["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, given))
    assert measures["f1_macro"] == pytest.approx(f1_score(truth, given, average="macro"))
    first, third, last = (measures["classes"][name] for name in "acd")
    own = {"precision": 0.5, "recall": 2 / 3, "f1": 4 / 7, "support": 3, "predicted": 4, "coverage": 1.0}
    assert first == pytest.approx({**own, "average_precision": 0.5, "auc": 0.5})
    assert (third["precision"], third["recall"], third["f1"], third["support"], third["predicted"]) == (0, 0, 0, 1, 0)
    assert last == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0, "predicted": 0}
    assert list(measures["classes"]) == ["a", "b", "c", "d"]
