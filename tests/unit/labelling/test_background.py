"""When the learner learns again."""

from __future__ import annotations

import pytest

from g3nn.labelling.background import MOST_NEW, Background
from g3nn.labelling.tables import Known


@pytest.fixture
def background(tmp_path):
    found = Background(lambda: None, tmp_path, "quick")
    yield found
    found.close()


def labels(count, name="a"):
    return {row: name if row % 2 else "b" for row in range(count)}


@pytest.mark.parametrize(
    ("before", "now", "news"),
    [
        (labels(4), labels(4), False),
        (labels(4), labels(5), True),
        (labels(600), labels(600 + MOST_NEW - 1), False),
        (labels(600), labels(600 + MOST_NEW), True),
        (labels(600), {**labels(600), 7: "c"}, True),
        (labels(600), labels(599), True),
    ],
    ids=["nothing", "one of few", "a few of many", "enough of many", "a new class", "one taken back"],
)
def test_what_is_worth_learning_from(background, before, now, news):
    background._learned = Known(before)
    assert background._is_news(Known(now)) is news


def test_edges_that_were_judged_are_news(background):
    background._learned = Known(labels(600))
    assert background._is_news(Known(labels(600), removed=frozenset({(0, 1)})))
