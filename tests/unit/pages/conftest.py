from __future__ import annotations

import pytest

from g3nn.pages import model_graph


@pytest.fixture(autouse=True)
def few_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reasons take longer than everything else on a page."""
    monkeypatch.setattr(model_graph, "MOST_EXPLAINED", 1)
