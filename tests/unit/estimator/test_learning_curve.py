"""What a fitted classifier says of fewer and more labels."""

from __future__ import annotations

import numpy as np
import pytest

from g3nn.base.errors import G3NNWarning, InputError
from g3nn.estimator import G3NNClassifier, load_model
from g3nn.queries.learning_curve import REPEATS
from g3nn.training.plan import Plan
from g3nn.training.progress import Interrupted


@pytest.fixture(scope="module")
def fitted(graph, quick):
    return quick(epochs=15, ensemble=1).fit(graph.X, graph.y, graph.edges, val=graph.val)


@pytest.fixture(scope="module")
def curve(fitted):
    return fitted.learning_curve()


def test_it_begins_where_the_fit_is(graph, fitted, curve):
    unlabelled = graph.y < 0
    certainty = fitted.predict_proba()[unlabelled].max(1).mean()
    assert curve.known == (graph.y >= 0).sum() - len(graph.val)
    assert curve.score[curve.labels == curve.known] == pytest.approx(certainty, abs=1e-4)
    assert curve.judged == len(graph.val)


def test_it_is_measured_on_some_labels_and_judged_by_all_others(graph, curve):
    known = curve.known
    assert [one.labels for one in curve.trained] == [round(share * known) for share in (0.25, 0.5, 0.75)]
    assert curve.labels.tolist() == [6, 12, 18, known, known + 10, 2 * known, 4 * known]
    assert curve.labels[curve.measured].tolist() == [one.labels for one in curve.trained]
    for one in curve.trained:
        assert len(graph.val) + known - one.labels <= one.judged <= len(graph.val) + known
        assert 0 <= one.wrong < 2 / 3


def test_networks_are_those_of_the_fit_and_see_no_other_label(graph, quick, monkeypatch):
    clf, tried, fit = quick(epochs=3, ensemble=1), [], Plan.fit
    clf.fit(graph.X, graph.y, graph.edges, val=graph.val)

    def watched(plan, task, *given):
        tried.append((plan.spec.name, plan.training.epochs, plan.training.keep, plan.seeds, task))
        return fit(plan, task, *given)

    monkeypatch.setattr(Plan, "fit", watched)
    found = clf.learning_curve()
    assert len(tried) == REPEATS * len(found.trained)
    assert {one[:3] for one in tried} == {("sbm-gcn", 3, "last")}
    assert len({one[3] for one in tried}) == REPEATS
    for *_, task in tried:
        assert set(graph.y[task.train]) == {0, 1, 2}
        assert not np.isin(task.train, graph.val).any()
        assert not len(task.val)
    nested = [set(one[-1].train.tolist()) for one in tried[::REPEATS]]
    assert nested[0] < nested[1] < nested[2]


def test_it_is_trained_once(fitted, curve, monkeypatch):
    monkeypatch.setattr(Plan, "fit", None)
    assert fitted.learning_curve() is curve
    asked = fitted.learning_curve([100, 50])
    assert asked.labels.tolist() == [50, 100]
    assert asked.score[0] < asked.score[1]


def test_it_is_forgotten_with_new_labels(graph, quick):
    clf = quick(epochs=3, ensemble=1).fit(graph.X, graph.y, graph.edges, val=graph.val)
    clf.learning_curve()
    new = np.flatnonzero(graph.y < 0)[:5]
    clf.update(new, graph.truth[new])
    assert clf.learning_curve_ is None
    assert clf.learning_curve().known == (graph.y >= 0).sum() + 5 - len(graph.val)


def test_what_is_asked_is_checked_before_anything_is_trained(graph, quick, monkeypatch):
    clf = quick(epochs=1, ensemble=1).fit(graph.X, graph.y, graph.edges, val=graph.val)
    monkeypatch.setattr(Plan, "fit", None)
    with pytest.raises(InputError, match="labels: got 'many'"):
        clf.learning_curve("many")


def test_an_interrupt_leaves_the_fit_as_it_was(graph, quick, monkeypatch):
    clf, fit, times = quick(epochs=3, ensemble=1), Plan.fit, []
    clf.fit(graph.X, graph.y, graph.edges, val=graph.val)
    before = clf.predict_proba()

    def interrupted(*given):
        times.append(1)
        if len(times) == 2:
            raise Interrupted
        return fit(*given)

    monkeypatch.setattr(Plan, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clf.learning_curve()
    assert clf.learning_curve_ is None
    np.testing.assert_array_equal(clf.predict_proba(), before)
    assert clf.learning_curve().measured.any()


def test_the_page_says_it_once_it_was_asked(fitted, curve, tmp_path):
    fitted.report(tmp_path / "after.html")
    words = str(curve.gain())
    assert f"T{words[1:]}; in brackets" in (tmp_path / "after.html").read_text(encoding="utf-8")


def test_a_loaded_model_says_what_to_do(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    with pytest.raises(InputError, match=r"a model that was loaded.*Fit again, and ask before the model is saved"):
        load_model(tmp_path / "model").learning_curve()


def test_tags_have_none(graph):
    tags = np.where(graph.y[:, None] < 0, np.nan, np.eye(3)[graph.y])
    clf = G3NNClassifier("gcn", epochs=1, ensemble=1, device="cpu").fit(graph.X, tags, graph.edges)
    with pytest.raises(InputError, match="learning_curve: got tags"):
        clf.learning_curve()


def test_one_label_of_each_class_still_has_an_answer(graph, quick):
    y = np.full(len(graph.truth), -1)
    for k in range(3):
        y[np.flatnonzero(graph.truth == k)[0]] = k
    with pytest.warns(G3NNWarning, match="validate on"):
        clf = quick(model="auto", effort="quick", epochs=3).fit(graph.X, y, graph.edges)
    found = clf.learning_curve()
    assert found.labels.tolist() == [3, 6, 12, 13]
    assert not found.measured.any()
    assert np.all(found.high - found.low > 0.3)
    assert found.gain().score > 0
