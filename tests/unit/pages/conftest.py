from __future__ import annotations

import pytest

from g3nn.pages import model_graph


@pytest.fixture(scope="module", autouse=True)
def _judged_quickly(labels_judged_quickly: None, edges_judged_quickly: None) -> None:
    """A page shows a judgement, however it was made."""


@pytest.fixture(autouse=True)
def few_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reasons take longer than everything else on a page."""
    monkeypatch.setattr(model_graph, "MOST_EXPLAINED", 1)
