"""Types of edges and kinds of nodes on the page of a model."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from pages import Tags, data_of, numbers, own_text

from g3nn.base.errors import G3NNWarning
from g3nn.estimator import G3NNClassifier
from g3nn.pages import model_graph, write_model_report

FILMS, PEOPLE = 40, 20
WILD = "<b>with</b>, often"
KINDS = np.array(["film"] * FILMS + ["person"] * PEOPLE)
TYPES = ["by"] * FILMS + [WILD] * (FILMS // 2) + ["like"] * 10
RNG = np.random.default_rng(0)


def pairs():
    """Each film by one person; the first ones with the same person, so that two types join a pair; films like films."""
    people = FILMS + RNG.integers(0, PEOPLE, FILMS)
    films, half = np.arange(FILMS), FILMS // 2
    sides = [films, people], [films[:half], people[:half]], [films[:10], films[1:11]]
    return np.concatenate([np.stack(ends) for ends in sides], axis=1)


EDGES = pairs()


def fitted(**how):
    y = np.full(FILMS + PEOPLE, None, dtype=object)
    y[:30] = [("art", "law")[i % 2] for i in range(30)]
    features = np.random.default_rng(1).normal(size=(FILMS + PEOPLE, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        classifier = G3NNClassifier("sbm-gcn", epochs=3, ensemble=1, device="cpu", label_noise=False)
        return classifier.fit(features, y, EDGES, **how)


@pytest.fixture(scope="module")
def typed():
    return fitted(edge_types=TYPES, node_kinds=KINDS)


@pytest.fixture
def page_of(tmp_path):
    def write(estimator, **parts):
        write_model_report(estimator, tmp_path / "page.html", **parts)
        return own_text(tmp_path / "page.html")

    return write


def test_every_edge_has_its_types_and_every_node_its_kind(typed, page_of):
    graph = data_of(page_of(typed))["graph"]
    types, kinds = graph["types"], graph["kinds"]
    assert types["names"] == ["by", WILD, "like"]
    ends = zip(*(numbers(graph[end], np.uint16).tolist() for end in ("source", "target")), strict=True)
    shown = dict(zip(map(frozenset, ends), numbers(types["at"], np.uint32).tolist(), strict=True))
    wanted = {}
    for *both, name in zip(*EDGES.tolist(), TYPES, strict=True):
        wanted.setdefault(frozenset(both), []).append(types["names"].index(name))
    assert {pair: types["sets"][place] for pair, place in shown.items()} == wanted
    assert [0, 1] in types["sets"]
    np.testing.assert_array_equal(np.array(kinds["names"])[numbers(kinds["at"], np.uint16)], KINDS)


def test_the_table_of_types(typed, page_of):
    page = page_of(typed)
    table = data_of(page)["types"]
    assert list(table["columns"]) == ["type", "edges", "between", "directed"]
    rows = [["by", 40, "film to person", "yes"], [WILD, 20, "film to person", "yes"]]
    assert table["rows"] == [*rows, ["like", 10, "film and film", "no"]]
    text = Tags(page).text
    assert "60 nodes of 2 kinds joined by 50 edges of 3 types." in text
    assert "Worth:" not in text
    assert "<b>with" not in page


def test_the_table_says_how_many_edges_of_each_type_are_suspicious(typed, page_of):
    audit = typed.audit_edges(5)
    data = data_of(page_of(typed, audit=audit))
    assert list(data["types"]["columns"]) == ["type", "edges", "between", "directed", "suspicious"]
    shown = {row[0]: row[-1] for row in data["types"]["rows"]}
    wanted = {name: 0 for name in shown}
    for types, probability in zip(audit.edges["type"], audit.edges["probability"], strict=True):
        for name in wanted:
            wanted[name] += bool(probability < 0.5 and (f", {name}," in f", {types},"))
    assert shown == wanted
    assert sum(shown.values()) >= data["graph"]["suspects"] > 0
    assert {name: count for name, _, count in audit.types.tolist()} == wanted
    assert audit.types["edges"].tolist() == [
        row[1] for name in audit.types["type"] for row in data["types"]["rows"] if row[0] == name
    ]


def test_an_audit_has_types_and_suggests_no_edge_between_kinds_that_none_joins(typed):
    audit = typed.audit_edges(100)
    assert set(audit.edges["type"]) >= {"like", "by"}
    kinds = {tuple(sorted((KINDS[row["source"]], KINDS[row["target"]]))) for row in audit.missing}
    assert kinds == {("film", "person"), ("film", "film")}
    for row in audit.missing:
        both = {KINDS[row["source"]], KINDS[row["target"]]}
        assert row["type"] == ("like" if both == {"film"} else "")
    assert "<caption>Types</caption>" in audit._repr_html_()
    assert "type" in audit.to_frame()[0].columns


def test_what_types_say(typed, page_of):
    page = page_of(typed, evidence={"by": 0.25, "like": 0.5})
    table = data_of(page)["types"]
    assert list(table["columns"])[-1] == "evidence"
    assert [row[-1] for row in table["rows"]] == [0.25, None, 0.5]
    assert "Evidence: how much more likely" in Tags(page).text


def test_types_of_one_kind_and_kinds_with_one_type(page_of):
    types = data_of(page_of(fitted(edge_types=TYPES)))
    assert list(types["types"]["columns"]) == ["type", "edges", "directed"]
    assert types["graph"]["kinds"] is None
    kinds = data_of(page_of(fitted(edge_types=["a"] * len(TYPES), node_kinds=KINDS)))
    assert kinds["graph"]["kinds"]["names"] == ["film", "person"]
    assert kinds["graph"]["types"] is None
    ((name, edges, between, _),) = kinds["types"]["rows"]
    assert (name, edges, between) == ("a", 50, "film and person")


@pytest.mark.parametrize("directed", [False, True])
def test_a_plain_graph_says_nothing_of_types(page_of, directed):
    """A directed one has a single type."""
    estimator = fitted()
    if directed:
        estimator = G3NNClassifier("sbm-gcn", epochs=1, ensemble=1, device="cpu", label_noise=False, directed=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", G3NNWarning)
            estimator.fit(np.eye(60), np.array([("art", "law")[i % 2] for i in range(60)]), EDGES)
    page = page_of(estimator)
    data = data_of(page)
    assert (estimator.task_.relations is None) == (not directed)
    assert (data["types"], data["graph"]["types"], data["graph"]["kinds"]) == (None, None, None)
    assert {len(one) for why in data["graph"]["why"].values() for one in why["neighbours"]} <= {2}
    assert "type" not in Tags(page).text


def test_nodes_of_kinds_without_labels_come_last_and_some_are_listed(typed, page_of, monkeypatch):
    assert sorted(data_of(page_of(typed))["graph"]["uncertain"][FILMS:]) == [*range(FILMS, FILMS + PEOPLE)]
    monkeypatch.setattr(model_graph, "LISTED_NODES", 20)
    graph = data_of(page_of(typed))["graph"]
    kinds = KINDS[graph["uncertain"]].tolist()
    assert kinds == ["film"] * 15 + ["person"] * 5
    assert KINDS[graph["start"]] == "film"


def test_reasons_have_the_type_of_the_edge(typed, page_of):
    ((node, why),) = data_of(page_of(typed))["graph"]["why"].items()
    wanted = {
        other: ", ".join(typed.task_.relations.between(np.array([[int(node)], [other]])))
        for other, *_ in why["neighbours"]
    }
    assert why["neighbours"]
    assert {other: type for other, _, type in why["neighbours"]} == wanted
    assert all(wanted.values())
