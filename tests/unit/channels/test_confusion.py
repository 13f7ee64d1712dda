"""The table of confusions, found from predictions that have not seen the labels."""

from __future__ import annotations

import numpy as np
import pytest

from g3nn.model.channels.confusion import Confusion, fit_confusion, skill, wrong_share


def example(m: int, table: np.ndarray, seed: int = 0, sure: float = 4.0):
    """Calibrated log-probabilities (m, K), true classes, and labels that were seen through a table."""
    rng = np.random.default_rng(seed)
    scores = sure * rng.normal(size=(m, len(table)))
    log_prob = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    true = np.array([rng.choice(len(table), p=row) for row in np.exp(log_prob)])
    return log_prob, true, np.array([rng.choice(len(table), p=table[k]) for k in true])


def flips(classes: int, wrong: float) -> np.ndarray:
    same = np.eye(classes)
    return (1 - wrong) * same + wrong / (classes - 1) * (1 - same)


def test_no_round_of_em_makes_it_worse_and_rows_are_distributions():
    for seed in range(5):
        log_prob, _, seen = example(80, flips(4, 0.3), seed)
        found, _ = fit_confusion(log_prob, seen)
        assert np.allclose(found.table.sum(1), 1.0)
        assert (found.table > 0).all()
        assert len(found.course) > 2
        assert (np.diff(found.course) >= -1e-9).all()


def test_beliefs_are_those_of_bayes_and_the_evidence_is_their_norm():
    log_prob, _, seen = example(20, flips(3, 0.2))
    table = np.array([[0.9, 0.1, 0.0], [0.0, 0.6, 0.4], [0.05, 0.05, 0.9]])
    joint = np.exp(log_prob) * table.T[seen]
    confusion = Confusion(table)
    np.testing.assert_allclose(confusion.posterior(log_prob, seen), joint / joint.sum(1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(confusion.log_prob(log_prob, seen), np.log(joint.sum(1)), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [0.1, 0.3])
def test_how_many_labels_are_wrong_and_where_they_go(wrong):
    pair = (1 - wrong) * np.eye(5) + wrong * np.roll(np.eye(5), 1, axis=1)
    for table in (flips(5, wrong), pair):
        log_prob, true, seen = example(4000, table, seed=2)
        found, _ = fit_confusion(log_prob, seen)
        assert np.abs(found.table - table).max() < 0.05
        doubt = 1 - found.posterior(log_prob, seen)[np.arange(4000), seen]
        assert doubt.sum() == pytest.approx((seen != true).sum(), rel=0.2)


def test_most_labels_of_a_class_are_never_wrong():
    log_prob, true, _ = example(400, np.eye(2), seed=5)
    found, _ = fit_confusion(log_prob, 1 - true)
    assert (np.diag(found.table) > 0.5).all()


def test_right_labels_are_hardly_doubted():
    log_prob, _, seen = example(2000, np.eye(4), seed=3)
    assert wrong_share(log_prob, seen) < 0.01


def test_temperature_undoes_what_wrong_labels_did_to_a_model():
    """A model that was trained on wrong labels predicts them, and is unsure everywhere."""
    log_prob, _, seen = example(4000, flips(4, 0.3), seed=4)
    unsure = log_prob / 3 - np.logaddexp.reduce(log_prob / 3, axis=1, keepdims=True)
    _, temperature = fit_confusion(unsure, seen)
    assert temperature == pytest.approx(1 / 3, rel=0.15)


def alternating():
    """log r (200, 2), which name both classes in turn, the surest first; and what they name."""
    named, sure = np.arange(200) % 2, np.linspace(0.99, 0.6, 200)
    return np.log(np.where(named[:, None] == np.arange(2), sure[:, None], 1 - sure[:, None])), named


def test_the_surest_predictions_count_and_the_lower_end_of_what_they_say():
    log_prob, named = alternating()
    unsure = np.arange(200) >= 150
    assert wrong_share(log_prob, np.where(unsure, 1 - named, named)) == 0.002
    contradicted = np.arange(200) % 10 == 0
    expected = 0.1 - np.sqrt(0.1 * 0.9 / 50)
    assert wrong_share(log_prob, np.where(contradicted, 1 - named, named)) == pytest.approx(expected)


def test_predictions_without_skill_do_not_contradict_labels():
    """They name every class as often as labels do, and agree with them by chance."""
    log_prob, _ = alternating()
    seen = np.arange(200) // 2 % 2
    assert skill(log_prob, seen, 0.0) == pytest.approx(0)
    assert wrong_share(log_prob, seen) == 0.002


def test_skill_is_that_on_true_labels():
    log_prob, named = alternating()
    assert skill(log_prob, named, 0.0) == 1
    # One label of ten is wrong, and every prediction is right.
    seen = np.where(np.arange(200) % 10 == 0, 1 - named, named)
    assert skill(log_prob, seen, 0.1) == pytest.approx(1)
    assert skill(log_prob, seen, 0.0) < skill(log_prob, seen, 0.1)


def test_a_handful_of_rare_labels_shows_no_skill():
    """Predictions know every label. Five of two hundred are rare, and then forty."""
    for rare, expected in ((np.arange(200) % 40 == 0, 0), (np.arange(200) % 5 == 0, 1)):
        log_prob = np.log(np.where(rare[:, None] == np.arange(2), 0.99, 0.01))
        assert skill(log_prob, rare.astype(np.int64), 0.0) == expected
