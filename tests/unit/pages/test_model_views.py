"""What the pages of numbers and tags hold."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from number_graph import known_numbers
from pages import Tags, data_of, numbers, own_text
from sklearn.metrics import d2_tweedie_score, r2_score

import g3nn
from g3nn.pages import model_graph, write_model_report

WILD = "</script><b>bold</b> & 茶"


def fitted(outcome, **changes):
    columns = 3 if outcome == "tags" else 1
    task = g3nn.synthetic_values(outcome, nodes=120, columns=columns, degree=6, features=4, labelled=0.3, val=35)
    y = known_numbers(task)
    common = {"model": "gcn", "epochs": 5, "ensemble": 2, "device": "cpu", **changes}
    if outcome == "tags":
        return g3nn.G3NNClassifier(**common).fit(task.features, y, task.edges, val=task.val), task
    return g3nn.G3NNRegressor(**common, outcome=outcome).fit(task.features, y[:, 0], task.edges, val=task.val), task


@pytest.mark.slow
@pytest.mark.parametrize(("outcome", "score"), [("real", "R²"), ("counts", "share of deviance explained")])
def test_a_page_of_numbers(tmp_path, outcome, score):
    estimator, task = fitted(outcome)
    ids = [WILD, *range(1, 120)]
    test = estimator.evaluate(task.test, task.labels[task.test, 0])
    nodes = pd.DataFrame({"id": pd.Series(ids, dtype=object)})
    write_model_report(estimator, tmp_path / "page.html", nodes=nodes, title=WILD, audit=estimator.audit(5), test=test)
    text = own_text(tmp_path / "page.html")
    data = data_of(text)
    assert "<b>bold" not in text
    assert f"{test['rmse']:.4g}" in text
    ((name, labels, mean, _, rmse, *_),) = data["table"]["rows"]
    known = task.labels[task.train, 0]
    assert (name, labels, mean) == ("value", len(known), pytest.approx(known.mean(), rel=1e-4))
    val = estimator.evaluate(task.val, task.labels[task.val, 0])
    assert rmse == pytest.approx(val["rmse"], rel=1e-4)
    assert data["score"]["title"] == score
    assert list(data["panel"]["columns"])[6] == score
    graph = data["graph"]
    likely = numbers(graph["probability"], np.float32)
    assert (graph["nodes"], graph["edges"], graph["suspects"]) == (120, task.num_edges, (likely < 0.5).sum())
    asked = g3nn.Nodes(task.features, task.edges[:, likely >= 0.5])
    np.testing.assert_allclose(numbers(graph["without"]["mean"], np.float32), estimator.predict(asked), rtol=1e-4)
    assert "scale" in graph["without"]
    assert "label" not in graph["without"]
    np.testing.assert_allclose(numbers(graph["mean"], np.float32), estimator.predict(), rtol=1e-6)
    np.testing.assert_allclose(numbers(graph["deviation"], np.float32), estimator.predict_std(), rtol=1e-6)
    ends = [numbers(graph[name], np.float32) for name in ("low", "high")]
    np.testing.assert_allclose(ends, estimator.predict_interval(0.9), rtol=1e-5, atol=1e-5)
    labels = numbers(graph["label"], np.float32)
    np.testing.assert_allclose(labels[task.val], task.labels[task.val, 0], rtol=1e-6)
    assert np.isnan(labels[task.test]).all()
    doubtful = np.round(estimator.predict_std() / estimator.predict_std().max(), 6)
    degree = np.bincount(task.edges.ravel(), minlength=120)
    assert graph["uncertain"] == np.lexsort((degree, -doubtful)).tolist()
    names, answers, residuals, low, high, inside = zip(*data["residuals"], strict=True)
    assert names == tuple(str(ids[node]) for node in task.val)
    expected = estimator.predict()[task.val]
    np.testing.assert_allclose(answers, expected, rtol=1e-3)
    np.testing.assert_allclose(residuals, task.labels[task.val, 0] - expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose([low, high], estimator.predict_interval(0.9)[:, task.val], rtol=1e-3, atol=1e-3)
    assert np.mean(inside) == pytest.approx(val["coverage"])
    assert data["logarithmic"] is False
    claimed, inside = np.array(data["coverage"]).T
    assert (np.diff(inside) >= 0).all()
    assert claimed[-1] == 0.95
    assert data["curves"]["terms"]
    measure, word = {"real": (r2_score, "R²"), "counts": (partial(d2_tweedie_score, power=1), "D²")}[outcome]
    explained = measure(task.labels[task.val, 0], expected)
    assert data["table"]["rows"][0][6] == pytest.approx(explained, rel=1e-3)
    shown = Tags(text).text
    assert f"Validation {word} {explained:.3f}".replace("-", "−") in shown
    assert "accuracy" not in shown


def test_a_page_of_tags(tmp_path):
    estimator, task = fitted("tags")
    write_model_report(estimator, tmp_path / "page.html")
    data = data_of(own_text(tmp_path / "page.html"))
    rows = data["table"]["rows"]
    assert ([row[0] for row in rows], data["names"]) == ([0, 1, 2], ["0", "1", "2"])
    given, has = estimator.predict()[task.val], task.labels[task.val]
    for t, row in enumerate(rows):
        hits = (given[:, t] * has[:, t]).sum()
        assert row[1] == pytest.approx(task.labels[task.train, t].mean(), rel=1e-3)
        assert row[5] == pytest.approx(hits / has[:, t].sum(), rel=1e-3)
    assert sum(one[2] for one in data["reliability"]) == has.size
    assert (data["graph"]["suspicious"], data["graph"]["probability"]) == ([], None)


def test_every_tag_of_a_node_is_embedded(tmp_path):
    estimator, task = fitted("tags")
    write_model_report(estimator, tmp_path / "page.html")
    graph = data_of(own_text(tmp_path / "page.html"))["graph"]
    p, n = estimator.predict_proba(), task.num_nodes
    tags, shares, labels = (
        numbers(graph[name], kind).reshape(n, 3)
        for name, kind in (("ranked", np.uint16), ("beliefs", np.uint16), ("labels", np.uint8))
    )
    np.testing.assert_allclose(shares / 65535, np.take_along_axis(p, tags, 1), atol=1e-5)
    assert (np.diff(shares.astype(int), axis=1) <= 0).all()
    np.testing.assert_array_equal(labels[task.val], np.take_along_axis(task.labels, tags, 1)[task.val])
    assert (labels[task.test] == 2).all()
    given = estimator.predict()
    np.testing.assert_array_equal(numbers(graph["answered"], np.uint16), given.sum(1))
    wrong = np.zeros(n)
    for part in (task.train, task.val):
        wrong[part] = (given[part] != task.labels[part]).sum(1)
    np.testing.assert_array_equal(numbers(graph["differing"], np.uint16), wrong)
    assert graph["uncertain"] == np.argsort(-estimator.predict_entropy(), kind="stable").tolist()


@pytest.mark.slow
def test_tags_without_suspicious_edges(tmp_path):
    estimator, task = fitted("tags")
    write_model_report(estimator, tmp_path / "page.html", audit=estimator.audit(5))
    graph = data_of(own_text(tmp_path / "page.html"))["graph"]
    kept = numbers(graph["probability"], np.float32) >= 0.5
    assert 0 < kept.sum() < len(kept)
    p = estimator.predict_proba(g3nn.Nodes(task.features, task.edges[:, kept]))
    tags = numbers(graph["without"]["ranked"], np.uint16).reshape(-1, 3)
    shares = numbers(graph["without"]["beliefs"], np.uint16).reshape(-1, 3)
    np.testing.assert_allclose(shares / 65535, np.take_along_axis(p, tags, 1), atol=1e-4)


def test_what_was_learned_is_not_judged(tmp_path):
    estimator, _ = fitted("real", refit=True)
    write_model_report(estimator, tmp_path / "page.html")
    text = own_text(tmp_path / "page.html")
    assert not {"residuals", "coverage"} & set(data_of(text))
    assert "cannot judge it" in text
    assert f"{estimator.fitted_.val_loss:.3f}".replace("-", "−") in Tags(text).text


def test_each_column_has_its_own_figures(tmp_path):
    task = g3nn.synthetic_values("real", nodes=120, columns=2, degree=6, features=4, labelled=0.3, val=35)
    estimator = g3nn.G3NNRegressor(model="gcn", epochs=5, ensemble=1, device="cpu")
    estimator.fit(task.features, known_numbers(task), task.edges, val=task.val)
    write_model_report(estimator, tmp_path / "page.html")
    rows = data_of(own_text(tmp_path / "page.html"))["table"]["rows"]
    columns = estimator.evaluate(task.val, task.labels[task.val])["columns"]
    assert [row[4] for row in rows] == pytest.approx([own["rmse"] for own in columns.values()], rel=1e-4)


@pytest.mark.parametrize("outcome", ["real", "tags"])
def test_of_a_large_graph_a_part_is_embedded(tmp_path, monkeypatch, outcome):
    """The surroundings of listed nodes: beliefs are those of the nodes whose ids are there, in their order."""
    monkeypatch.setattr(model_graph, "MOST_NODES", 60)
    monkeypatch.setattr(model_graph, "LISTED_NODES", 12)
    estimator, task = fitted(outcome)
    write_model_report(estimator, tmp_path / "page.html")
    graph = data_of(own_text(tmp_path / "page.html"))["graph"]
    nodes = np.array(graph["ids"], dtype=int)
    assert (graph["whole"], len(graph["uncertain"])) == (False, 12)
    assert 12 < len(nodes) <= 60
    np.testing.assert_array_equal(
        numbers(graph["degree"], np.uint32), np.bincount(task.edges.ravel(), minlength=120)[nodes]
    )
    if outcome == "real":
        np.testing.assert_allclose(numbers(graph["mean"], np.float32), estimator.predict()[nodes], rtol=1e-6)
    else:
        np.testing.assert_array_equal(numbers(graph["answered"], np.uint16), estimator.predict()[nodes].sum(1))
