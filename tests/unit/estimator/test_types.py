"""Estimators on graphs with types of edges and kinds of nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import g3nn
from g3nn.base.errors import InputError
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
