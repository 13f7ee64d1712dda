from __future__ import annotations

from typing import Any

import pytest

from g3nn.cli import fit_tables
from g3nn.estimator import estimator_for
from g3nn.queries import GraphAudit


@pytest.fixture(scope="module", autouse=True)
def _judged_quickly(labels_judged_quickly: None, edges_judged_quickly: None) -> None:
    """Judging labels and edges takes longer than the fits of these files."""


@pytest.fixture
def short_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the tests of what is written need edges that were audited in earnest: they share one fit."""
    in_earnest = GraphAudit.fit

    def fit(*words: Any, **options: Any) -> GraphAudit:
        return in_earnest(*words, epochs=3, **options)

    monkeypatch.setattr(GraphAudit, "fit", fit)


@pytest.fixture
def few_epochs(monkeypatch: pytest.MonkeyPatch) -> int:
    """For `g3nn fit`, which leaves their number to the estimator: where it does not matter how good the answers are."""
    short = 30
    monkeypatch.setattr(
        fit_tables, "estimator_for", lambda kind, given: estimator_for(kind, {"epochs": short, **given})
    )
    return short
