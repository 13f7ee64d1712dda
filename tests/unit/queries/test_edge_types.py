"""What types of edges say about labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from g3nn.base.errors import Problems
from g3nn.graph.relations import read_relations
from g3nn.graph.task import NodeTask
from g3nn.queries import edge_types

PAPERS, PEOPLE, VENUES = 120, 20, 6


@pytest.fixture(scope="module")
def papers():
    """Authors write about one topic, editors about any, and what an author likes to publish in tells the topic too."""
    rng = np.random.default_rng(0)
    topic = rng.integers(0, 2, PAPERS)
    author, editor = rng.integers(0, PEOPLE // 2, PAPERS) * 2 + topic, rng.integers(0, PEOPLE, PAPERS)
    people = np.arange(PEOPLE)
    pairs = np.stack(
        [
            np.concatenate([np.arange(PAPERS), np.arange(PAPERS), PAPERS + people]),
            np.concatenate([PAPERS + author, PAPERS + editor, PAPERS + PEOPLE + people % 2]),
        ]
    )
    n = PAPERS + PEOPLE + VENUES
    kinds = ["paper"] * PAPERS + ["person"] * PEOPLE + ["venue"] * VENUES
    types = ["by"] * PAPERS + ["edited by"] * PAPERS + ["likes"] * PEOPLE
    relations = read_relations(tuple(pairs), n, False, Problems(), types=types, kinds=kinds)
    labels = np.full(n, -1)
    labels[:PAPERS] = topic
    once = np.unique(pairs, axis=1)
    return NodeTask.build(np.ones((n, 1)), once, labels, range(30), range(30, 60), relations=relations)


def test_types_are_told_by_what_they_say(papers):
    found = {one.name: one for one in edge_types(papers)}
    assert next(iter(found)) == "by"
    assert found["by"].evidence > 0.3
    assert found["edited by"].evidence < 0.02
    # It says which persons are alike, of whom some have no labelled paper.
    assert 0 < found["likes"].evidence < np.log(2)
    assert found["by"][1:5] == (PAPERS, ("paper",), ("person",), True)


def test_without_types_there_is_nothing_to_say(papers):
    assert edge_types(replace(papers, relations=None)) == []
