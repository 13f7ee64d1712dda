"""Estimators on graphs with types of edges and kinds of nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import HeteroData

import g3nn
from g3nn import Nodes
from g3nn.base.errors import G3NNWarning, InputError, Problems
from g3nn.base.parse import stated_edges
from g3nn.estimator import G3NNClassifier, problem
from g3nn.estimator.panel import Candidate
from g3nn.estimator.showing import write_results

PAPERS, PEOPLE = 90, 8
OPTIONS = {"device": "cpu", "ensemble": 1, "effort": "quick", "random_state": 0, "validation": 0.5}


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(1)
    topic = rng.integers(0, 2, PAPERS)
    author, editor = rng.integers(0, PEOPLE // 2, PAPERS) * 2 + topic, rng.integers(0, PEOPLE, PAPERS)
    pairs = np.stack([np.tile(np.arange(PAPERS), 2), PAPERS + np.concatenate([author, editor])])
    X = rng.normal(size=(PAPERS + PEOPLE, 3))
    y = np.full(PAPERS + PEOPLE, -1)
    y[:60] = topic[:60]
    given = {
        "edge_types": ["by"] * PAPERS + ["edited by"] * PAPERS,
        "node_kinds": ["paper"] * PAPERS + ["person"] * PEOPLE,
    }
    return X, y, pairs, given, topic


@pytest.fixture(scope="module")
def fitted(graph, few_models):
    X, y, pairs, given, _ = graph
    return G3NNClassifier(**OPTIONS).fit(X, y, pairs, **given)


def test_a_model_of_types_is_saved_and_read(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = g3nn.load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(), fitted.predict_proba())
    assert again.edge_types() == fitted.edge_types()


@pytest.fixture
def paths_alone(monkeypatch):
    """The only candidate is a network on paths."""
    network = Candidate("mlp", "elbo", {"hidden": 8, "epochs": 5}, neighbours="paths")
    monkeypatch.setattr(problem, "with_paths", lambda tried: (network,))
    monkeypatch.setattr(problem, "simple_candidates", lambda *asked: ())


def test_a_network_on_paths_is_saved_and_read(graph, paths_alone, few_models, tmp_path):
    X, y, pairs, given, _ = graph
    fitted = G3NNClassifier(**OPTIONS).fit(X, y, pairs, **given)
    assert any(member.neighbourhood is not None for member in fitted.fitted_.answerer.members)
    fitted.save(tmp_path / "model")
    again = g3nn.load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(), fitted.predict_proba())
    new = {"by": np.array([[len(X)], [PAPERS]])}
    np.testing.assert_array_equal(again.predict_proba(X[:1], new), fitted.predict_proba(X[:1], new))


def test_a_network_on_paths_finds_its_nodes_again_in_a_larger_graph(graph, paths_alone, few_models):
    """Trained without the nodes that have no label, which are numbered among the others."""
    X, y, pairs, given, _ = graph
    y = y.copy()
    y[::2], y[PAPERS:] = -1, 0
    fitted = G3NNClassifier(**OPTIONS, inductive=True).fit(X, y, pairs, **given)
    task, seen = fitted.task_, np.flatnonzero(y >= 0)
    for member in fitted.fitted_.answerer.members:
        for path in member.neighbourhood.paths:
            assert np.isin(path.ends, seen).all()
    inside = np.isin(task.edges, seen).all(axis=0)
    small = replace(task.with_edges(inside).among(seen), relations=task.relations.within(seen))
    (member,) = fitted.fitted_.answerer.members
    places = replace(
        member.neighbourhood,
        paths=tuple(replace(one, ends=np.searchsorted(seen, one.ends)) for one in member.neighbourhood.paths),
    )
    whole = replace(task.with_edges(inside), relations=task.relations.among(task.edges[:, inside]))
    in_large, in_small = (as_dense(one.apply(own)) for one, own in ((member.neighbourhood, whole), (places, small)))
    np.testing.assert_allclose(in_large[seen], in_small, atol=1e-6)


def as_dense(columns):
    return columns.toarray() if sp.issparse(columns) else columns


def test_options_go_to_networks_on_paths_too(graph, few_models, monkeypatch):
    X, y, pairs, given, _ = graph
    monkeypatch.setattr(problem, "simple_candidates", lambda *asked: ())
    fitted = G3NNClassifier(**OPTIONS, objective="released", options={"dropout": 0.25}).fit(X, y, pairs, **given)
    networks = [trial for trial in fitted.fitted_.trials if trial.candidate.neighbours]
    assert networks
    assert {(one.candidate.objective, one.candidate.options["dropout"]) for one in networks} == {("released", 0.25)}


def test_the_type_that_says_something_is_the_first(fitted):
    first, second = fitted.edge_types()
    assert (first.name, second.name) == ("by", "edited by")
    assert first.evidence > second.evidence


def test_reasons_name_the_type(fitted):
    (reason,) = fitted.explain([0])
    assert {one.type for one in reason.neighbours} <= {"by", "edited by", "by, edited by"}
    assert reason.neighbours


def test_new_nodes_have_types_of_edges_too(fitted, graph):
    """They are papers, as all others that are by somebody."""
    X, *_, topic = graph
    writers = PAPERS + np.arange(PEOPLE)
    new = {"by": np.stack([len(X) + np.arange(PEOPLE), writers])}
    found = fitted.predict(np.zeros((PEOPLE, 3)), new)
    assert np.mean(found == np.arange(PEOPLE) % 2) >= 0.75
    assert topic.mean() == pytest.approx(0.5, abs=0.2)


def test_an_unknown_type_is_refused(fitted, graph):
    X = graph[0]
    with pytest.raises(InputError, match=r"sold by.*those of the fit: by, edited by"):
        fitted.predict(X[:1], {"sold by": np.array([[len(X)], [PAPERS]])})


def test_rows_keep_their_whole_numbers_beside_nodes_that_columns_name(few_models, tmp_path):
    rng = np.random.default_rng(0)
    makers = rng.integers(0, 6, 120)
    films = pd.DataFrame(
        {"id": 100 + np.arange(120), "maker": [f"m{one}" for one in makers], "length": rng.random(120)}
    )
    films["score"] = np.where(rng.random(120) < 0.7, np.array(["low", "high"])[makers % 2], None)
    table = g3nn.read_tables(films, id="id", label="score", edges_from=["maker", "maker"])
    fitted = G3NNClassifier(**OPTIONS).fit(table)
    assert {one.node for one in fitted.suggest(50)} <= {str(id) for id in films["id"]}
    assert fitted.evaluate([100], films["score"].fillna("low")[:1].tolist())["accuracy"] in (0, 1)
    write_results(fitted, table, tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / "labels.parquet")
    assert rows["id"].type == pa.int64()
    assert set(rows["id"].to_pylist()) <= set(films["id"])


QUICK = {**OPTIONS, "model": "gcn", "epochs": 3}


@pytest.fixture(scope="module")
def small(graph):
    """Ten papers by two people, with the ids of a frame, and their edges by type."""
    X = graph[0]
    by = np.stack([np.arange(10), 10 + np.arange(10) % 2])
    frame = pd.DataFrame(X[:12], columns=list("abc")).assign(who=[f"n{i}" for i in range(12)])
    return frame, np.array([0, 1] * 5 + [-1] * 2), {"by": by, "cites": by[:, ::3] - [[0], [10]] + [[0], [1]]}


def of_ids(edges):
    return {
        name: pd.DataFrame({"source": [f"n{i}" for i in a], "target": [f"n{j}" for j in b]})
        for name, (a, b) in edges.items()
    }


def fit(small, edges=None, **given):
    frame, y, own = small
    return G3NNClassifier(**QUICK).fit(frame.drop(columns="who"), y, own if edges is None else edges, **given)


def joined(model, edges, n=13):
    """The edges of a new node, with their weights."""
    problems = Problems()
    found = model.fitted_._joining(stated_edges(edges, n, problems), n, None, problems)
    problems.raise_if_any()
    new = (found.pairs >= n - 1).any(axis=0)
    return found.types[new].tolist(), None if found.weights is None else found.weights[new].tolist()


def test_kinds_of_pyg_are_fitted():
    data = HeteroData()
    data["paper"].x, data["paper"].y = torch.randn(10, 3), torch.tensor([True, False] * 5)
    data["person"].num_nodes = 2
    data["paper", "by", "person"].edge_index = torch.tensor([list(range(10)), [0, 1] * 5])
    data["paper", "by", "person"].edge_weight = torch.arange(1.0, 11.0)
    model = G3NNClassifier(**QUICK).fit(data)
    assert model.classes_.tolist() == [False, True]
    assert model.task_.relations.weights.tolist() == list(range(1, 11))
    assert len(model.predict()) == 12


@pytest.mark.parametrize("beside", ["frames", "arrays"])
def test_rows_of_a_frame_have_types_of_edges_beside_them(small, beside):
    frame, y, edges = small
    model = G3NNClassifier(**QUICK).fit(frame, y, of_ids(edges) if beside == "frames" else edges, id="who")
    assert model.task_.relations.names == ("by", "cites")
    assert model.task_.relations.pairs[:, :10].tolist() == edges["by"].tolist()
    new = frame[:1].assign(who="new")
    first = model.predict_proba(new, {"by": np.array([[12], [10]])})
    for rows in (new, {"papers": new}):
        by_id = {"by": pd.DataFrame({"source": ["new"], "target": ["n10"]})}
        np.testing.assert_array_equal(model.predict_proba(rows, by_id), first)


def test_several_files_are_asked_about(small, tmp_path):
    frame, y, edges = small
    model = G3NNClassifier(**QUICK).fit(frame, y, of_ids(edges), id="who")
    for name in ("one", "two"):
        frame[:1].assign(who=name).to_csv(tmp_path / f"{name}.csv", index=False)
    with pytest.warns(G3NNWarning, match="2 of 2 new nodes have no edge"):
        assert len(model.predict([tmp_path / "one.csv", tmp_path / "two.csv"])) == 2


def test_new_edges_weigh_as_those_of_the_fit(small):
    weighed = fit(small, weights=np.arange(1.0, 15.0))
    assert joined(weighed, {"by": np.array([[12], [10]])}) == ([0], [weighed.fitted_.unit])
    matrix = pd.DataFrame({"source": [12], "target": [10], "weight": [3.0]})
    assert joined(weighed, {"by": matrix}) == ([0], [3.0])
    twice = np.array([[12, 12], [10, 10]])
    assert joined(weighed, {"by": twice})[1] == [weighed.fitted_.unit]
    alike = fit(small, weights=False)
    assert joined(alike, {"by": twice}) == joined(alike, {"by": matrix}) == ([0], None)


@pytest.mark.filterwarnings("ignore:edges .data frame.. a column")
def test_edges_of_tables_count_alike_if_asked(small):
    frame, y, edges = small
    links = pd.concat([one.assign(type=name, weight=2.0 + len(name)) for name, one in of_ids(edges).items()])
    model = G3NNClassifier(**QUICK).fit(frame, y, links, id="who", weights=False)
    assert model.task_.weights is model.task_.relations.weights is None
    tables = g3nn.read_tables(frame.assign(y=y).iloc[:10], None, id="who", label="y")
    with pytest.raises(InputError) as error:
        G3NNClassifier(**QUICK).fit(tables, edge_types="type", node_kinds="none")
    assert [one.argument for one in error.value.problems] == ["edge_types", "node_kinds"]


def test_nodes_with_other_types_are_another_graph(small, monkeypatch):
    frame, y, edges = small
    X, pairs = frame.drop(columns="who").to_numpy(), np.concatenate([*edges.values()], axis=1)
    types = ["by"] * 10 + ["cites"] * 4
    model = G3NNClassifier(**QUICK).fit(X, y, pairs, edge_types=types)
    same = model.fitted_._nodes(Nodes(X, pairs, edge_types=types))
    assert np.array_equal(same.answer, model.fitted_.answers.answer)
    monkeypatch.setattr(type(model.fitted_), "_graph", lambda *_: pytest.fail("asked"))
    with pytest.raises(pytest.fail.Exception):
        model.predict(Nodes(X, pairs, edge_types=types[::-1]))
    with pytest.raises(InputError, match="edges: got no types; expected edges with their types: by, cites"):
        model.predict(Nodes(X, pairs))


def test_names_of_columns_beside_nodes_and_arrays(small):
    frame, y, edges = small
    links = pd.concat([pd.DataFrame(one.T, columns=["from", "to"]).assign(rel=name) for name, one in edges.items()])
    X = frame.drop(columns="who")
    kinds = X.assign(k=["paper"] * 10 + ["person"] * 2)
    for nodes in (
        Nodes(kinds, links, edge_types="rel", node_kinds="k"),
        Nodes(X.to_numpy(), links, edge_types="rel", node_kinds="none"),
    ):
        model = G3NNClassifier(**QUICK).fit(nodes, y)
        assert model.task_.relations.names == ("by", "cites")
        np.testing.assert_array_equal(model.predict_proba(nodes), model.predict_proba())
    assert fit((X.assign(who=0), y, edges), edge_types="none").task_.relations is None
    with pytest.raises(InputError, match="node_kinds: got 'k'; expected a kind for each node"):
        G3NNClassifier(**QUICK).fit(X.to_numpy(), y, edges, node_kinds="k")


def test_each_problem_of_edges_is_listed_once(small):
    frame, y, _ = small
    with pytest.raises(InputError) as error:
        G3NNClassifier(**QUICK).fit(frame[["a"]].to_numpy(), y, "abc", weights=["x"])
    assert sorted(one.argument for one in error.value.problems) == ["edges", "weights"]


def test_a_type_by_chance_is_left_out_as_if_it_were_not_there(graph, few_models, monkeypatch, tmp_path):
    X, y, pairs, given, _ = graph
    edges = {"by": pairs[:, :PAPERS], "edited by": pairs[:, PAPERS:].copy()}
    edges["edited by"][1] = PAPERS + (edges["by"][1] - PAPERS + 1) % PEOPLE
    kinds = {"node_kinds": given["node_kinds"]}
    monkeypatch.setattr(problem, "types_by_chance", lambda task: ("edited by",))
    with pytest.warns(G3NNWarning, match=r"edge_types: 'edited by' join nodes by chance.*denoise=False"):
        fitted = G3NNClassifier(**OPTIONS).fit(X, y, edges, **kinds)
    monkeypatch.setattr(problem, "types_by_chance", lambda task: ())
    alone = G3NNClassifier(**OPTIONS).fit(X, y, {"by": edges["by"]}, **kinds)
    np.testing.assert_array_equal(fitted.predict_proba(), alone.predict_proba())
    assert {one.name for one in fitted.edge_types()} == {"by", "edited by"}

    fitted.save(tmp_path / "model")
    again = g3nn.load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(), fitted.predict_proba())
    new = np.array([[len(X)], [PAPERS]])
    noise = np.array([[len(X)], [PAPERS + 1]])
    for model in (fitted, again):
        found = model.predict_proba(X[:1], {"by": new, "edited by": noise})
        np.testing.assert_array_equal(found, alone.predict_proba(X[:1], {"by": new}))


@pytest.mark.parametrize(("options", "asked"), [({}, 1), ({"denoise": False}, 0), ({"model": "gcn"}, 0)])
def test_only_a_search_leaves_types_out(graph, few_models, monkeypatch, options, asked):
    X, y, pairs, given, _ = graph
    calls = []
    monkeypatch.setattr(problem, "types_by_chance", lambda task: calls.append(task) or ())
    G3NNClassifier(**OPTIONS | options).fit(X, y, pairs, **given)
    assert len(calls) == asked


def test_kinds_in_an_array_of_names_are_asked_about_as_those_in_a_list(graph, fitted):
    X, _, pairs, given, _ = graph
    types, kinds = (np.array(values) for values in given.values())
    expected = fitted.predict_proba(Nodes(X, pairs, **given))
    np.testing.assert_array_equal(fitted.predict_proba(Nodes(X, pairs, edge_types=types, node_kinds=kinds)), expected)
    with pytest.raises(InputError, match="node_kinds: got 'book'; expected those of the fit: paper, person"):
        fitted.predict(Nodes(X, pairs, edge_types=types, node_kinds=np.where(kinds == "paper", "book", kinds)))
    with pytest.raises(InputError, match="edge_types: got 'of'; expected those of the fit: by, edited by"):
        fitted.predict(Nodes(X, pairs, edge_types=np.where(types == "by", "of", types), node_kinds=kinds))
