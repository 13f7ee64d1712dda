from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from number_graph import known_numbers
from sklearn.metrics import f1_score, log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.utils import get_tags

import g3nn
from g3nn.base.errors import InputError
from g3nn.estimator import G3NNClassifier, Nodes, load_model

pytestmark = pytest.mark.filterwarnings("ignore:.*new nodes have no edge")

QUICK = {"model": "tags-gcn", "epochs": 60, "ensemble": 2, "device": "cpu"}
NAMES = ["red", "green", "blue"]


def quick(**changes):
    return G3NNClassifier(**{**QUICK, **changes})


@pytest.fixture(scope="module")
def task():
    options = {"nodes": 300, "columns": 3, "degree": 8, "features": 5, "labelled": 0.3, "val": 60, "explained": 0.5}
    return g3nn.synthetic_values("tags", seed=2, **options)


@pytest.fixture(scope="module")
def fitted(task):
    """Not to be changed."""
    return quick().fit(
        task.features, pa.table(dict(zip(NAMES, known_numbers(task).T, strict=True))), task.edges, val=task.val
    )


def test_answers_are_an_indicator_and_its_probabilities(fitted, task):
    p = fitted.predict_proba()
    assert p.shape == (300, 3)
    assert ((p > 0) & (p < 1)).all()
    np.testing.assert_array_equal(fitted.predict(), (p > 0.5).astype(int))
    assert fitted.classes_.tolist() == NAMES
    assert (fitted.predict_entropy() <= 3 * np.log(2) + 1e-9).all()
    assert get_tags(fitted).classifier_tags.multi_label


def test_columns_without_names_have_their_numbers_in_a_table(task):
    quick = G3NNClassifier("gcn", epochs=2, ensemble=1, device="cpu")
    table = quick.fit(task.features, task.labels, task.edges, val=task.val).answer_table()
    assert {"prob_0", "prob_1", "prob_2"} <= set(table.column_names)
    assert {tag for row in table["given"].to_pylist() for tag in row} == {"0", "1", "2"}


def test_measures_are_those_of_scikit_learn(fitted, task):
    truth = task.labels[task.test]
    found, p = fitted.evaluate(task.test, truth), fitted.predict_proba()[task.test]
    assert found["accuracy"] == pytest.approx(((p > 0.5) == truth).mean())
    assert found["f1_micro"] == pytest.approx(f1_score(truth, p > 0.5, average="micro"))
    assert found["f1_macro"] == pytest.approx(f1_score(truth, p > 0.5, average="macro"))
    assert found["nll"] == pytest.approx(log_loss(truth.ravel(), p.ravel()))
    assert found["brier"] == pytest.approx(((p - truth) ** 2).mean())
    # Better than the share of each tag for everybody.
    share = np.nanmean(known_numbers(task), axis=0)
    assert found["nll"] < log_loss(truth.ravel(), np.tile(share, len(truth)))


def test_entries_may_be_unknown_and_the_split_is_by_itself(task):
    y = known_numbers(task)
    y[task.train[:20], 0] = np.nan
    classifier = quick(epochs=5).fit(task.features, y, task.edges)
    known = np.flatnonzero(~np.isnan(y).all(1))
    assert np.isin(classifier.val_nodes_, known).all()
    assert len(classifier.val_nodes_) == round(0.2 * len(known))


def test_new_nodes_saving_and_other_graphs(fitted, task, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert isinstance(loaded, G3NNClassifier)
    edges = np.array([300, 301]), np.array([0, 300])
    for question in ((), (task.features[:3],), (task.features[:3], edges), (Nodes(task.features[:9], None),)):
        np.testing.assert_array_equal(loaded.predict_proba(*question), fitted.predict_proba(*question))
    assert loaded.classes_.tolist() == NAMES
    assert fitted.predict(task.features[:3], edges).shape == (3, 3)


@pytest.mark.slow
def test_the_panel(task):
    classifier = G3NNClassifier(epochs=6, ensemble=1, device="cpu")
    classifier.fit(task.features, known_numbers(task), task.edges, val=task.val)
    networks = [entry for entry in classifier.panel_ if not entry.simple]
    assert [entry.model for entry in networks][:5] == ["mlp", "gcn", "sbm-gcn", "tags-gcn", "tags-gcn"]
    assert [bool(entry.options.get("refine")) for entry in networks][:5] == [False] * 4 + [True]
    chosen = next(entry for entry in classifier.panel_ if entry.chosen)
    assert np.isfinite(chosen.val_loss)


def test_grid_search(task):
    known = np.concatenate([task.train, task.val])
    nodes = Nodes(task.features, task.edges)[known]
    search = GridSearchCV(quick(epochs=4, ensemble=1), {"hidden": [4, 8]}, cv=2, error_score="raise")
    assert search.fit(nodes, task.labels[known].astype(int)).best_params_["hidden"] in (4, 8)


@pytest.mark.slow
def test_edges_are_judged_by_one_tag_of_each_end(fitted, task):
    p = fitted.edge_proba(task.edges[:, :9])
    assert ((p > 0) & (p < 1)).all()


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (np.arange(600.0).reshape(300, 2) / 7, "G3NNRegressor"),
        (np.tile([[0, 2], [1, 1]], (150, 1)), "in one column"),
        (np.tile(np.array([["a", 0], ["b", 1]], dtype=object), (150, 1)), "outcome 'classes'"),
        (np.tile([[0, 1], [0, 0]], (150, 1)), "Leave out tags that no node has"),
        (np.linspace(0, 1, 300), "G3NNRegressor"),
        ([["a"], ["b", "c"]] * 150, "a column of 0 and 1 for each tag"),
        (np.tile([[0.0, np.inf], [1, 1]], (150, 1)), "values such as inf"),
    ],
)
def test_what_are_no_tags_is_refused(task, y, said):
    with pytest.raises(InputError, match="y: got") as caught:
        quick(model="gcn").fit(task.features, y, task.edges)
    assert said in str(caught.value)


def test_models_for_classes_alone_are_refused(task):
    with pytest.raises(InputError, match="likelihood: got 'blsm' for outcome 'tags'"):
        quick(model="blsm-gcn").fit(task.features, known_numbers(task), task.edges, val=task.val)


def test_there_are_no_sets_of_tags(fitted):
    with pytest.raises(InputError, match="predict_proba gives the probability of each tag"):
        fitted.predict_set()
