"""Which classes are rare, and thresholds for a wanted recall or precision."""

from __future__ import annotations

import numpy as np
import pytest

from g3nn.base.errors import InputError
from g3nn.graph.rare import in_words, rare_classes, threshold


@pytest.mark.parametrize(
    ("counts", "rare"),
    [([98, 2], [1]), ([91, 9], [1]), ([90, 10], []), ([80, 9, 9, 2], [3, 1, 2]), ([9] * 11, []), ([100, 0], [])],
)
def test_rare_classes_have_few_labels_but_some(counts, rare):
    assert rare_classes(np.repeat(np.arange(len(counts)), counts), len(counts)) == rare


def drawn(n: int, seed: int, rate: float = 0.2, signal: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of a class, and whether nodes have it."""
    rng = np.random.default_rng(seed)
    has = rng.random(n) < rate
    return 1 / (1 + np.exp(2 - rng.normal(size=n) - signal * has)), has


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9])
def test_a_threshold_is_that_of_a_search_over_all(share):
    p, has = drawn(200, 0, signal=3.0)
    found = {asked: threshold("a", p, has, asked, share) for asked in ("recall", "precision")}
    recalls, precisions = [], []
    for one in p[has]:
        hits = (has & (p >= one)).sum()
        recalls += [one] if hits / (has.sum() + 1) >= share else []
        precisions += [one] if hits / ((p >= one).sum() + 1) >= share else []
    assert found["recall"].probability == max(recalls)
    assert found["precision"].probability == min(precisions)
    for one in found.values():
        chosen = p >= one.probability
        assert (one.positives, one.chosen, one.hits) == (has.sum(), chosen.sum(), (has & chosen).sum())
        assert (one.recall, one.precision) == (chosen[has].mean(), has[chosen].mean())
        assert one.recall_interval[0] < one.recall <= one.recall_interval[1]
        assert one.precision_interval[0] < one.precision <= one.precision_interval[1]
    assert found["recall"].recall > share
    assert found["precision"].precision > share


def test_new_nodes_of_the_class_are_found_as_often_as_asked_for():
    """By 12 nodes of the class; taking the recall on these as it is would miss too many."""
    rates, plain = [], []
    for seed in range(600):
        p, has = drawn(412, seed, rate=0.5)
        known = np.flatnonzero(has)[:12]
        fresh = np.flatnonzero(has)[12:]
        rows = np.concatenate([known, np.flatnonzero(~has)])
        found = threshold("a", p[rows], has[rows], "recall", 0.8)
        rates.append((p[fresh] >= found.probability).mean())
        plain.append((p[fresh] >= np.sort(p[known])[2]).mean())
    assert 0.8 < np.mean(rates) < 0.87
    assert np.mean(plain) < 0.79


def test_what_few_nodes_cannot_support_is_refused():
    p, has = np.linspace(0.9, 0.1, 40), np.arange(40) < 8
    assert threshold("a", p, has, "recall", 0.8).recall == 1.0
    with pytest.raises(
        InputError, match=r"recall: got 0.9, with 8 validation nodes of the class 'a'; expected at most 0.88"
    ):
        threshold("a", p, has, "recall", 0.9)
    with pytest.raises(InputError, match=r"precision: got 0.9, .* at most 0.88\. Ask for less, or label more nodes"):
        threshold("a", p, has, "precision", 0.9)
    with pytest.raises(InputError, match=r"with 0 validation nodes .* at most 0.00"):
        threshold("a", p, np.zeros(40, dtype=bool), "recall", 0.1)


def test_how_well_a_class_is_recognised_in_words():
    row = {"recall": 0.5, "precision": 0.75, "support": 12, "predicted": 8, "average_precision": 0.61, "auc": 0.9}
    recall, precision, ranked, rough = in_words(row, 600)
    assert "0.50 (6 of 12; 95 % interval 0.25 to 0.75)" in recall
    assert "0.75 (6 of 8; " in precision
    assert ranked == "average precision 0.610, by chance 0.020; AUC 0.900"
    assert rough == "rough: fewer than 30 nodes of this class"
    assert len(in_words({**row, "support": 30, "predicted": 20}, 600)) == 3
    assert "unknown, since none is predicted" in in_words({**row, "recall": 0.0, "predicted": 0}, 600)[1]
    assert in_words(None, 0) == in_words({"support": 0}, 5) == ["no node can say how well it is recognised"]
