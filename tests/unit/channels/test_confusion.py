"""The table of confusions, found from predictions that have not seen the labels."""

from __future__ import annotations

import numpy as np
import pytest

from g3nn.channels import fit_confusion


def example(m: int, table: np.ndarray, seed: int = 0, sure: float = 3.0):
    """Calibrated probabilities r (m, K), and labels that were seen through a table."""
    rng = np.random.default_rng(seed)
    scores = sure * rng.normal(size=(m, len(table)))
    r = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    true = np.array([rng.choice(len(table), p=row) for row in r])
    seen = np.array([rng.choice(len(table), p=table[k]) for k in true])
    return r, true, seen


def flips(classes: int, wrong: float) -> np.ndarray:
    same = np.eye(classes)
    return (1 - wrong) * same + wrong / (classes - 1) * (1 - same)


def test_rows_are_distributions_and_the_search_never_gets_worse():
    for seed in range(5):
        r, _, seen = example(60, flips(4, 0.3), seed)
        found = fit_confusion(r, seen, strength=3.0)
        assert np.allclose(found.table.sum(1), 1.0)
        assert (found.table > 0).all()
        assert len(found.course) > 2
        assert found.course[-1] == pytest.approx(value(found.table, found.right, r, seen, 3.0, 0.9), rel=1e-7)
        assert (np.diff(found.course) >= -1e-10).all()


def value(table, right, r, seen, strength, expected):
    """The objective, written anew."""
    common = flips(len(table), 1 - right)
    kl = sum((m * np.log(m / t)).sum() for m, t in zip(common, table, strict=True))
    evidence = sum(np.log(sum(r[i, k] * table[k, s] for k in range(len(table)))) for i, s in enumerate(seen))
    return evidence - strength * kl + 5 * (expected * np.log(right) + (1 - expected) * np.log(1 - right))


def test_it_ends_at_a_maximum():
    r, _, seen = example(80, flips(3, 0.25), seed=1)
    found = fit_confusion(r, seen, strength=5.0, start_wrong=0.2)
    best = value(found.table, found.right, r, seen, 5.0, 0.8)
    rng = np.random.default_rng(2)
    for size in (1e-1, 1e-2):
        for _ in range(30):
            table = found.table * np.exp(size * rng.normal(size=found.table.shape))
            right = 1 / (1 + (1 / found.right - 1) * np.exp(size * rng.normal()))
            other = value(table / table.sum(1, keepdims=True), right, r, seen, 5.0, 0.8)
            assert other <= best + 1e-6


def test_a_known_table_is_found():
    table = np.array([[0.9, 0.1, 0.0], [0.0, 0.6, 0.4], [0.05, 0.05, 0.9]])
    r, true, seen = example(6000, table, seed=3)
    found = fit_confusion(r, seen)
    assert np.abs(found.table - table).max() < 0.05
    b = found.posterior(r, seen)
    assert np.allclose(b.sum(1), 1.0)
    assert (b.argmax(1) == true).mean() > max((seen == true).mean(), (r.argmax(1) == true).mean())


def test_few_labels_share_what_they_know():
    """A class without labels is as often wrong as the others; without any label the start remains."""
    r, _, seen = example(400, flips(3, 0.4), seed=4)
    some = seen != 2
    lone = fit_confusion(r[some], seen[some])
    assert lone.table[2, 2] < 0.85
    none = fit_confusion(r[:0], seen[:0], start_wrong=0.2)
    assert np.allclose(none.table, flips(3, 0.2))
    assert none.right == pytest.approx(0.8)


def test_a_great_strength_gives_one_share_for_all():
    r, _, seen = example(500, flips(3, 0.3), seed=5, sure=100.0)
    found = fit_confusion(r, seen, strength=1e7)
    assert np.ptp(np.diag(found.table)) < 1e-3
    agree = (r.argmax(1) == seen).sum()
    assert found.right == pytest.approx((agree + 5 * 0.9) / (len(seen) + 5), abs=5e-3)


def test_log_prob_is_that_of_what_was_seen():
    r, _, seen = example(50, flips(4, 0.3), seed=6)
    found = fit_confusion(r, seen)
    assert np.allclose(np.exp(found.log_prob(np.log(r), seen)), (r @ found.table)[np.arange(50), seen])
    total = sum(np.exp(found.log_prob(np.log(r), np.full(50, s))) for s in range(4))
    assert np.allclose(total, 1.0)


def test_one_class_cannot_be_confused():
    found = fit_confusion(np.ones((3, 1)), np.zeros(3, dtype=np.int64))
    assert found.table.tolist() == [[1.0]]
    assert found.posterior(np.ones((3, 1)), np.zeros(3, dtype=np.int64)).tolist() == [[1.0]] * 3
