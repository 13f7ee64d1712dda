from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.stats as stats
from number_graph import known_numbers
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict

import g3nn
from g3nn.base.errors import InputError
from g3nn.estimator import G3NNRegressor, Nodes, load_model

pytestmark = pytest.mark.filterwarnings("ignore:.*new nodes have no edge")

QUICK = {"model": "near-gcn", "epochs": 60, "ensemble": 2, "device": "cpu", "options": {"refine": True}}


def quick(**changes):
    return G3NNRegressor(**{**QUICK, **changes})


@pytest.fixture(scope="module")
def task():
    return g3nn.synthetic_values(nodes=300, degree=6, features=5, labelled=0.3, val=60, seed=2)


@pytest.fixture(scope="module")
def counts():
    return g3nn.synthetic_values("counts", nodes=300, degree=6, features=5, labelled=0.3, val=60, seed=2)


@pytest.fixture(scope="module")
def fitted(task):
    """Not to be changed."""
    return quick().fit(task.features, known_numbers(task)[:, 0], task.edges, val=task.val)


def test_init_stores_and_nothing_else():
    given = {name: object() for name in inspect.signature(G3NNRegressor.__init__).parameters if name != "self"}
    regressor = G3NNRegressor(**given)
    assert vars(regressor) == given
    assert regressor.get_params(deep=False) == given
    assert G3NNRegressor().outcome == "real"


def test_scikit_learn_conventions():
    regressor = quick(hidden=4, outcome="counts")
    assert clone(regressor).get_params() == regressor.get_params()
    assert regressor.set_params(hidden=5).hidden == 5
    assert is_regressor(regressor)
    assert "near-gcn" in repr(regressor)
    for ask in (regressor.predict, regressor.predict_std, regressor.predict_interval, regressor.audit):
        with pytest.raises(NotFittedError):
            ask()


@pytest.mark.slow
def test_shapes_and_what_a_fit_leaves_behind(fitted, task):
    assert fitted.predict().shape == fitted.predict_std().shape == (300,)
    assert fitted.predict_interval().shape == (2, 300)
    assert (fitted.predict_std() > 0).all()
    assert fitted.target_names_.tolist() == [0]
    assert fitted.model_ == "near-gcn"
    assert fitted.val_nodes_.tolist() == task.val.tolist()
    assert fitted.fitted_.answerer.networks[0].hyperparameters["refine"] is True


def test_it_learns_and_intervals_hold_what_they_promise(fitted, task):
    found = fitted.evaluate(task.test, task.labels[task.test, 0])
    assert found["r2"] > 0.2
    wide = fitted.predict_interval(0.9)
    inside = (wide[0] <= task.labels[:, 0]) & (task.labels[:, 0] <= wide[1])
    # Split conformal, by its own rule: this many of the validation nodes are inside.
    linked = np.isin(task.val, task.edges)
    m = int(linked.sum())
    # But for the one that is the end of its own interval, up to rounding.
    promised = min(int(np.ceil((m + 1) * 0.9)), m)
    assert promised - 1 <= inside[task.val[linked]].sum() <= promised
    narrow = fitted.predict_interval(0.5)
    assert (narrow[0] >= wide[0]).all()
    assert (narrow[1] <= wide[1]).all()


def test_measures_are_those_of_scikit_learn_and_scipy(fitted, task):
    values, answers = task.labels[task.test, 0], fitted.predict()[task.test]
    found = fitted.evaluate(task.test, values)
    low, high = fitted.predict_interval(0.9)[:, task.test]
    assert found["rmse"] == pytest.approx(root_mean_squared_error(values, answers))
    assert found["mae"] == pytest.approx(mean_absolute_error(values, answers))
    assert found["r2"] == pytest.approx(r2_score(values, answers))
    assert found["coverage"] == pytest.approx(((low <= values) & (values <= high)).mean())
    log_prob = stats.norm.logpdf(values, answers, fitted.predict_std()[task.test]).mean()
    assert found["log_prob"] == pytest.approx(log_prob)
    assert found["nodes"] == len(task.test)
    mask = np.isin(np.arange(300), task.test)
    assert fitted.evaluate(mask, values) == found


@pytest.mark.slow
def test_the_scale_and_place_of_values_do_not_matter(fitted, task):
    other = quick().fit(task.features, 1e6 + 1000 * known_numbers(task)[:, 0], task.edges, val=task.val)
    np.testing.assert_allclose(other.predict(), 1e6 + 1000 * fitted.predict(), rtol=1e-4)
    np.testing.assert_allclose(other.predict_std(), 1000 * fitted.predict_std(), rtol=1e-3)


@pytest.mark.slow
def test_new_nodes_with_all_some_and_no_edges(fitted, task):
    n, m = task.num_nodes, 5
    X = task.features[:m]
    all_edges = np.array([[n + j for j in range(m)] * 2, [*range(10, 10 + m), *range(20, 20 + m)]])
    alone, some, linked = (fitted.predict(X, edges) for edges in (None, tuple(all_edges[:, :2]), all_edges))
    assert alone.shape == some.shape == linked.shape == (m,)
    np.testing.assert_allclose(some[2:], alone[2:], rtol=1e-4)
    assert not np.isclose(linked, alone).all()
    # What training did not know is calibrated by validation nodes that are answered as if they were new.
    calibrations = fitted.fitted_.answerer.calibrations
    ratio = fitted.predict_std(X, all_edges) / fitted.predict_std()[10]
    expected = np.sqrt(calibrations["inferred"].scaling.temperature / fitted.temperature_)
    np.testing.assert_allclose(ratio, expected, rtol=0.2)
    assert len({id(part) for part in (calibrations["isolated"], calibrations["new"], calibrations["inferred"])}) == 3
    assert fitted.predict_interval(0.9, X, all_edges).shape == (2, m)


def test_another_graph_is_answered_as_new_nodes_are(fitted, task):
    """The scores that nodes have of their own do not leak to whoever has the same number elsewhere."""
    few = Nodes(task.features[5:25], None)
    np.testing.assert_allclose(fitted.predict(few), fitted.predict(task.features[5:25]), rtol=1e-4)
    same = Nodes(task.features, task.edges)
    np.testing.assert_array_equal(fitted.predict(same[3:9]), fitted.predict()[3:9])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outcome", "changes"),
    [
        ("counts", {}),
        ("real", {"refit": True}),
        ("counts", {"inductive": True}),
        ("real", {"options": {}, "model": "gcn"}),
    ],
)
def test_a_loaded_model_answers_the_same(task, counts, tmp_path, outcome, changes):
    task = task if outcome == "real" else counts
    regressor = quick(outcome=outcome, epochs=8, **changes).fit(
        task.features, known_numbers(task), task.edges, val=task.val
    )
    regressor.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert isinstance(loaded, G3NNRegressor)
    assert loaded.get_params() == regressor.get_params()
    new = np.array([[300, 301], [0, 301]])[:, :1]
    for question in ((), (task.features[:4],), (task.features[:4], new), (Nodes(task.features, task.edges)[5:9],)):
        for name in ("predict", "predict_std"):
            np.testing.assert_array_equal(getattr(loaded, name)(*question), getattr(regressor, name)(*question))
        np.testing.assert_array_equal(
            loaded.predict_interval(0.8, *question), regressor.predict_interval(0.8, *question)
        )
    assert loaded.predict().shape == (300, 1)
    assert loaded.evaluate(task.test, task.labels[task.test]) == regressor.evaluate(task.test, task.labels[task.test])


def test_a_positive_target_has_no_negative_answer_and_that_is_saved_too(task, tmp_path):
    y = np.exp(known_numbers(task)[:, 0] / np.nanstd(task.labels))
    regressor = quick(model="gcn", options={}, epochs=20).fit(task.features, y, task.edges, val=task.val)
    assert regressor.fitted_.task.warps[0].name != "identity"
    regressor.save(tmp_path / "model")
    for model in (regressor, load_model(tmp_path / "model")):
        assert model.predict().min() >= 0
        assert model.predict_interval(0.9).min() >= 0
        np.testing.assert_array_equal(model.predict_interval(0.9), regressor.predict_interval(0.9))
        np.testing.assert_array_equal(model.predict(), regressor.predict())


@pytest.mark.slow
def test_inductive_scores_of_their_own_belong_to_the_right_nodes(task):
    """Shuffling the nodes must not change the answers: scores follow the nodes, not their numbers."""
    order = np.random.default_rng(0).permutation(300)
    place = np.argsort(order)
    y = known_numbers(task)[:, 0]
    one = quick(inductive=True, epochs=20).fit(task.features, y, task.edges, val=task.val)
    other = quick(inductive=True, epochs=20)
    other.fit(task.features[order], y[order], place[task.edges], val=place[task.val])
    known = np.concatenate([task.train, task.val])
    gap = np.abs(other.predict()[place] - one.predict())
    assert np.median(gap[known]) < 0.35 * y[known].std()


@pytest.mark.slow
def test_counts(counts):
    regressor = quick(outcome="counts").fit(counts.features, known_numbers(counts)[:, 0], counts.edges, val=counts.val)
    assert (regressor.predict() > 0).all()
    low, high = regressor.predict_interval(0.9)
    assert (low >= 0).all()
    np.testing.assert_array_equal([low, high], np.round([low, high]))
    found = regressor.evaluate(counts.test, counts.labels[counts.test, 0])
    assert np.isfinite(found["log_prob"])
    # A count varies more than a Poisson with the same mean.
    assert (regressor.predict_std() ** 2 >= regressor.predict() * (1 - 1e-6)).all()


def test_several_columns_with_gaps(task):
    y = np.concatenate([known_numbers(task), -2 * known_numbers(task)], axis=1)
    y[task.train[:5], 0] = np.nan
    regressor = quick(epochs=6, ensemble=1).fit(task.features, y, task.edges, val=task.val)
    assert regressor.predict().shape == regressor.predict_std().shape == (300, 2)
    assert regressor.predict_interval().shape == (2, 300, 2)
    truth = np.concatenate([task.labels, -2 * task.labels], axis=1)[task.test]
    found = regressor.evaluate(task.test, truth)
    assert set(found["columns"]) == {"0", "1"}
    assert found["rmse"] == pytest.approx(np.mean([one["rmse"] for one in found["columns"].values()]))
    assert found["columns"]["1"]["mae"] == pytest.approx(
        mean_absolute_error(truth[:, 1], regressor.predict()[task.test, 1])
    )


@pytest.mark.slow
def test_the_panel_chooses_by_the_held_out_log_probability(task):
    regressor = G3NNRegressor(epochs=8, ensemble=1, device="cpu")
    regressor.fit(task.features, known_numbers(task)[:, 0], task.edges, val=task.val)
    networks = [entry for entry in regressor.panel_ if not entry.simple]
    assert [entry.model for entry in networks][:4] == ["mlp", "gcn", "near-gcn", "near-appnp"]
    chosen = [entry for entry in regressor.panel_ if entry.chosen]
    assert regressor.fitted_.val_loss <= min(entry.val_loss for entry in regressor.panel_) + 1e-9
    # Few given nodes validate together with a fold of the others.
    weight = task.num_edges / (task.num_nodes - len(regressor.fitted_.problem.train))
    assert networks[2].options == {"refine": True, "graph_weight": weight, "epochs": 8}
    assert all(entry.model in regressor.model_ for entry in chosen if entry.weight)


def test_grid_search_and_cross_validation_over_nodes(task):
    known = np.concatenate([task.train, task.val])
    nodes, y = Nodes(task.features, task.edges)[known], task.labels[known, 0]
    plain = quick(model="gcn", options=None, epochs=4, ensemble=1)
    search = GridSearchCV(plain, {"lr": [0.01, 0.05]}, cv=KFold(2), error_score="raise")
    search.fit(nodes, y)
    assert search.best_params_["lr"] in (0.01, 0.05)
    assert cross_val_predict(plain, nodes, y, cv=2).shape == y.shape


@pytest.mark.slow
def test_edges_are_judged_by_groups_of_values_and_that_is_saved_too(fitted, task, tmp_path):
    pairs = task.edges[:, :20]
    p = fitted.edge_proba(pairs)
    assert p.shape == (20,)
    assert ((p > 0) & (p < 1)).all()
    tables = fitted.audit(missing=5)
    assert len(tables.edges) == task.num_edges
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").edge_proba(pairs), p)


def problems_of(**changes):
    task = g3nn.synthetic_values(nodes=40, degree=4, features=3, labelled=0.5, val=5, seed=0)
    given = {"y": known_numbers(task)[:, 0], "edges": task.edges, "val": task.val, **changes.pop("data", {})}
    with pytest.raises(InputError) as caught:
        quick(**changes).fit(task.features, given["y"], given["edges"], val=given["val"])
    return {problem.argument: str(problem) for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("changes", "argument", "said"),
    [
        ({"outcome": "normal"}, "outcome", "real or counts"),
        ({"data": {"y": None}}, "y", "None or NaN"),
        ({"data": {"y": ["a", "b"] * 20}}, "y", "G3NNClassifier"),
        ({"data": {"y": np.arange(40) % 2 == 0}}, "y", "G3NNClassifier"),
        ({"data": {"y": np.ones(40)}}, "y", "nothing to learn in a constant"),
        ({"data": {"y": np.full(40, np.nan)}}, "y", "the same value, or none"),
        ({"data": {"y": np.where(np.arange(40) == 3, np.inf, np.arange(40.0))}}, "y", "1 values such as inf"),
        ({"outcome": "counts"}, "y", "outcome 'real'"),
        ({"outcome": "counts", "data": {"y": np.arange(40) - 1}}, "y", "values such as -1"),
        ({"model": "sbm-gcn"}, "likelihood", "near"),
        ({"model": "gcn"}, "refine", "a model with a likelihood"),
        ({"objective": "released"}, "objective", "elbo or laplacian"),
        ({"options": {"noise": "both"}}, "noise", "shared or node"),
    ],
)
def test_what_cannot_be_used_is_named(changes, argument, said):
    assert said in problems_of(**changes)[argument]


def test_every_problem_is_in_one_message():
    found = problems_of(
        outcome="count", ensemble=0, model="nera-gcn", data={"y": ["a"] * 40, "edges": np.array([[0], [99]])}
    )
    assert set(found) == {"outcome", "ensemble", "model", "y", "edges"}


def test_validation_nodes_without_a_value_are_refused(task):
    with pytest.raises(InputError, match="1 nodes without a label"):
        quick().fit(task.features, known_numbers(task)[:, 0], task.edges, val=[*task.val.tolist(), int(task.test[0])])


def test_levels_and_values_to_judge_by_are_checked(fitted):
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        fitted.predict_interval(1.0)
    with pytest.raises(InputError) as caught:
        fitted.evaluate([0, 1, 999], [1.0, None])
    assert {problem.argument for problem in caught.value.problems} == {"nodes", "y"}


def test_a_column_without_validation_labels_makes_no_answer_nan(task):
    Y = np.full((task.num_nodes, 2), np.nan)
    known = np.concatenate([task.train, task.val])
    Y[known, 0] = task.labels[known, 0]
    Y[task.train[:4], 1] = [1.0, 2.0, 3.0, 5.0]
    how = {"effort": "quick", "epochs": 3, "ensemble": 1, "device": "cpu", "random_state": 1, "label_noise": False}
    how["denoise"] = False
    regressor = G3NNRegressor(**how).fit(task.features, Y, task.edges, val=task.val)
    assert np.isfinite(regressor.predict()).all()
