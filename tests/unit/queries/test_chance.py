"""Types of edges whose ends are no more alike than chance has it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from g3nn.base.errors import Problems
from g3nn.graph.relations import read_relations
from g3nn.graph.task import NodeTask
from g3nn.queries.chance import types_by_chance

N, PEOPLE = 800, 200
TOPIC = np.random.default_rng(0).integers(0, 4, N)


def drawn(rng: np.random.Generator, same: float) -> np.ndarray:
    """4,000 edges, of which a share surely joins nodes of one topic."""
    source = rng.integers(0, N, 4000)
    places = [np.flatnonzero(topic == TOPIC) for topic in range(4)]
    alike = np.array([rng.choice(places[TOPIC[one]]) for one in source])
    target = np.where(rng.random(4000) < same, alike, rng.integers(0, N, 4000))
    return np.stack([source, target])[:, source != target]


def task(edges: dict[str, np.ndarray], features: np.ndarray, n: int = N, kinds: list[str] | None = None) -> NodeTask:
    pairs = np.concatenate([*edges.values()], axis=1)
    types = np.concatenate([[name] * one.shape[1] for name, one in edges.items()])
    relations = read_relations(tuple(pairs), n, False, Problems(), types=types, kinds=kinds)
    labels = np.full(n, -1)
    labels[:N] = TOPIC
    once = np.unique(np.sort(pairs, axis=0), axis=1)
    return NodeTask.build(features, once, labels, range(400), range(400, 600), relations=relations)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def noisy(rng: np.random.Generator) -> np.ndarray:
    return np.eye(4)[TOPIC] + 0.1 * rng.normal(size=(N, 4))


def test_shuffled_edges_are_found_and_others_are_not(rng):
    edges = {"cites": drawn(rng, 0.7), "shuffled": drawn(rng, 0), "weak": drawn(rng, 0.3)}
    edges["also"] = np.stack([edges["cites"][0], rng.permutation(edges["cites"][1])])
    edges["also"] = edges["also"][:, edges["also"][0] != edges["also"][1]]
    assert types_by_chance(task(edges, noisy(rng))) == ("also", "shuffled")


def test_what_labels_show_is_no_chance(rng):
    """Features say nothing about topics here, and one type joins what they say something about."""
    group = rng.integers(0, 4, N)
    same = np.stack([np.arange(N), np.arange(N)])
    for which in range(4):
        here = np.flatnonzero(group == which)
        same[1, here] = rng.permutation(here)
    edges = {"group": same[:, same[0] != same[1]], "topic": drawn(rng, 0.5), "shuffled": drawn(rng, 0)}
    assert types_by_chance(task(edges, np.eye(4)[group])) == ("shuffled",)


def test_nodes_without_features_are_known_by_their_neighbours(rng):
    """Persons have no features, so what they are alike in is what they wrote."""
    author, editor = rng.integers(0, PEOPLE // 4, N) * 4 + TOPIC, rng.integers(0, PEOPLE, N)
    people = np.tile(np.arange(PEOPLE), 8)
    friend = (people + np.repeat(np.arange(4, 36, 4), PEOPLE)) % PEOPLE
    papers = np.arange(N)
    edges = {
        "by": np.stack([papers, N + author]),
        "edited by": np.stack([papers, N + editor]),
        "friends": N + np.stack([people, friend]),
        "met": N + np.stack([people, rng.permutation(friend)]),
    }
    edges["met"] = edges["met"][:, edges["met"][0] != edges["met"][1]]
    features = np.concatenate([noisy(rng), np.zeros((PEOPLE, 4))])
    kinds = ["paper"] * N + ["person"] * PEOPLE
    assert types_by_chance(task(edges, features, N + PEOPLE, kinds)) == ("edited by", "met")


def test_numbers_of_edges_that_go_with_labels_are_no_chance(rng):
    busy = np.flatnonzero(TOPIC == 0)
    edges = {"cites": drawn(rng, 0.7), "logs in": np.stack([rng.choice(busy, 4000), rng.integers(0, N, 4000)])}
    edges["logs in"] = edges["logs in"][:, edges["logs in"][0] != edges["logs in"][1]]
    # Features say nothing about who is busy: only labels do.
    features = np.eye(3)[np.maximum(TOPIC, 1) - 1] + 0.3 * rng.normal(size=(N, 3))
    assert types_by_chance(task(edges, features)) == ()


@pytest.mark.parametrize("case", ["all are", "few", "one type", "no features"])
def test_without_a_type_to_compare_with_all_stay(case, rng):
    cites, shuffled, features = drawn(rng, 0.7), drawn(rng, 0), noisy(rng)
    if case == "all are":
        found = task({"one": shuffled, "another": drawn(rng, 0)}, features)
    elif case == "few":
        found = task({"cites": cites, "shuffled": shuffled[:, :100]}, features)
    elif case == "one type":
        found = task({"shuffled": shuffled}, features)
    else:
        found = task({"cites": cites, "shuffled": shuffled}, np.ones((N, 1)))
    assert types_by_chance(found) == ()


def test_without_types_there_are_none(rng):
    found = task({"cites": drawn(rng, 0.7), "shuffled": drawn(rng, 0)}, noisy(rng))
    assert types_by_chance(replace(found, relations=None)) == ()


def test_a_task_without_types_has_no_edges_of_theirs(rng):
    edges = {"cites": drawn(rng, 0.7), "shuffled": drawn(rng, 0)}
    found = task(edges, noisy(rng))
    alone = task({"cites": edges["cites"]}, found.features)
    left = found.without_types(("shuffled",))
    assert left.relations is None
    assert np.array_equal(left.edges, alone.edges)
    assert found.without_types(()) is found
    with_third = task(edges | {"third": drawn(rng, 0)}, found.features).without_types(("shuffled", "unknown"))
    assert with_third.relations.names == ("cites", "third")
    assert set(with_third.relations.types) == {0, 1}
    joined = with_third.relations.of(0).pairs
    assert set(map(tuple, joined.T)) == set(map(tuple, alone.edges.T))
