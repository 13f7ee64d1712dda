"""What an estimator shows of itself: its page, its figures, and what a notebook says."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from number_graph import known_numbers
from pages import Tags, data_of, own_text

import g3nn
from g3nn.base.errors import G3NNWarning, InputError

QUICK = {"model": "gcn", "epochs": 4, "ensemble": 2, "device": "cpu"}


@pytest.fixture(scope="module")
def classifier(learnable):
    y = np.full(60, None, dtype=object)
    for part in (learnable.train, learnable.val):
        y[part] = np.array(["<b>art</b>", "law", "tea"], dtype=object)[learnable.labels[part]]
    return g3nn.G3NNClassifier(**QUICK).fit(learnable.features, y, learnable.edges, val=learnable.val)


@pytest.fixture(scope="module")
def regressor():
    task = g3nn.synthetic_values("real", nodes=60, columns=1, degree=4, features=4, labelled=0.4, val=15)
    return g3nn.G3NNRegressor(**QUICK).fit(task.features, known_numbers(task)[:, 0], task.edges, val=task.val)


@pytest.mark.slow
def test_an_estimator_writes_its_page(classifier, regressor, tmp_path):
    for number, estimator in enumerate((classifier, regressor)):
        path = tmp_path / f"{number}.html"
        estimator.report(path, nodes=pd.DataFrame({"name": [f"Ann {i}" for i in range(60)]}), title="Sixty nodes")
        page = own_text(path)
        data = data_of(page)
        assert "<title>Sixty nodes" in page
        suspicious = (estimator.audit(1).edges["probability"] < 0.5).sum()
        assert (data["graph"]["title"], len(data["graph"]["suspicious"])) == ("name", suspicious)


def test_a_page_without_edges_says_so_without_a_warning(tmp_path):
    with pytest.warns(G3NNWarning):
        estimator = g3nn.G3NNClassifier(**QUICK).fit(np.eye(40), ["a", "b"] * 20, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error", G3NNWarning)
        estimator.report(str(tmp_path / "page.html"))
    assert "The graph has no edges." in Tags(own_text(tmp_path / "page.html")).text


@pytest.mark.slow
def test_a_model_that_looks_at_no_features_has_a_page(learnable, tmp_path):
    y = np.where(np.isin(np.arange(60), [*learnable.train, *learnable.val]), learnable.labels, -1)
    estimator = g3nn.G3NNClassifier(**{**QUICK, "model": "label-propagation"})
    estimator.fit(learnable.features, y, learnable.edges, val=learnable.val).report(tmp_path / "page.html")
    why = data_of(own_text(tmp_path / "page.html"))["graph"]["why"]
    assert not any(one["features"] for one in why.values())
    assert any(one["neighbours"] for one in why.values())


def test_no_work_is_done_for_a_page_that_cannot_be_written(classifier, tmp_path, monkeypatch):
    monkeypatch.setattr(type(classifier), "audit", lambda *_: pytest.fail("the edges were judged"))
    with pytest.raises(InputError, match=r"path: .*a folder that exists"):
        classifier.report(tmp_path / "nowhere" / "page.html")


def test_a_notebook_shows_what_was_fitted(classifier):
    before = g3nn.G3NNClassifier(**QUICK)
    assert "nodes," not in before._repr_html_()
    assert "G3NNClassifier" in before._repr_mimebundle_()["text/html"]
    html = classifier._repr_mimebundle_()["text/html"]
    assert html == classifier._repr_html_() or "sk-top-container" in html
    assert f"60 nodes, {classifier.task_.num_edges} edges" in Tags(html).text
    assert f"{classifier.fitted_.val_score:.3f}" in Tags(html).text
    assert "sk-top-container" in html


def test_the_panel_is_a_list_a_frame_and_a_table(classifier):
    frame = classifier.panel_.to_frame()
    assert frame[["model", "chosen", "epochs"]].values.tolist() == [["gcn", True, 4]]
    assert classifier.panel_ == list(classifier.fitted_.panel)
    assert "gcn" in Tags(classifier.panel_._repr_html_()).text


@pytest.mark.slow
def test_an_audit_is_two_frames_and_two_tables(classifier):
    audit = classifier.audit(3)
    edges, missing = audit.to_frame()
    assert (len(edges), len(missing)) == (classifier.task_.num_edges, 3)
    assert list(edges.columns) == ["rank", "source", "target", "probability"]
    np.testing.assert_array_equal(edges["probability"], audit.edges["probability"])
    text = Tags(audit._repr_html_()).text
    assert f"the first 10 of {len(edges)}" in text
    assert f"{missing['probability'][0]:.4g}" in text


def test_reliability_is_drawn_with_its_intervals(classifier, regressor):
    _, points = classifier.plot_reliability().data
    assert (np.array(points.error_y.array) >= 0).all()
    assert len(points.error_y.arrayminus) == len(points.y)
    _, coverage = regressor.plot_reliability().data
    assert (np.diff(coverage.y) >= 0).all()


def test_a_model_that_learned_the_validation_nodes_is_not_judged_by_them(learnable):
    y = np.where(np.isin(np.arange(60), [*learnable.train, *learnable.val]), learnable.labels, -1)
    estimator = g3nn.G3NNClassifier(**QUICK, refit=True).fit(learnable.features, y, learnable.edges, val=learnable.val)
    with pytest.raises(InputError, match="refit=False"):
        estimator.plot_reliability()


def test_learning_curves_are_drawn(classifier):
    lines = {line.name: line for line in classifier.plot_history().data}
    mean = np.nanmean(classifier.history_[:, classifier.history_names_.index("val_loss")], axis=1)
    np.testing.assert_allclose(lines["val_loss"].y, mean)


def test_the_graph_is_drawn_in_the_colours_of_the_answers(classifier, regressor):
    edges, *groups = classifier.plot_graph().data
    assert len(edges.x) == 3 * classifier.task_.num_edges
    answers = classifier.predict()
    assert {group.name: len(group.x) for group in groups} == {
        name.replace("<", "&lt;").replace(">", "&gt;"): (answers == name).sum() for name in np.unique(answers)
    }
    assert sum(np.sum(group.marker.line.width) for group in groups) == 27
    _, nodes = regressor.plot_graph().data
    np.testing.assert_allclose(nodes.marker.color, regressor.predict())
