from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import load, save
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import g3nn
from g3nn.base.errors import G3NNError, InputError
from g3nn.estimator.saving import _packed, _unpacked
from g3nn.graph.outcomes import OUTCOMES, Classes
from g3nn.model.tabular import NAMED, CrossFitted, Linear, Trees, cross_fit
from g3nn.model.tabular.models import base_rate

BOOSTED = {"max_iter": 15, "min_samples_leaf": 5}
FITTING = [
    ("classes", HistGradientBoostingClassifier(**BOOSTED)),
    ("classes", make_pipeline(StandardScaler(), LogisticRegression())),
    ("tags", HistGradientBoostingClassifier(**BOOSTED)),
    ("tags", LogisticRegression()),
    ("real", HistGradientBoostingRegressor(**BOOSTED)),
    ("real", Ridge()),
    ("counts", HistGradientBoostingRegressor(loss="poisson", **BOOSTED)),
    ("counts", PoissonRegressor(alpha=0.1)),
    ("counts", LinearRegression()),
]
LINEAR = [(name, NAMED["linear-model"](outcome)) for name, outcome in OUTCOMES.items()]


def fitted(estimator, table, **options):
    return CrossFitted.fit(estimator, table.X, table.labels, table.train, table.outcome, **options)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "estimator"), [*FITTING, *LINEAR], ids=str)
def test_answers_tell_labels_that_no_model_has_seen(name, estimator, table):
    """Of training nodes and of others, better than what is the same for all nodes."""
    given = table(name)
    _, answers = fitted(estimator, given)
    n, columns = len(given.X), given.outcome.columns
    assert answers.shape == (n, 2 * columns if given.outcome.learner == "regressor" else columns)
    assert np.isfinite(answers).all()
    level = np.bincount(given.labels)[None] if name == "classes" else np.nanmean(given.labels, 0, keepdims=True)
    level = np.repeat(level / (level.sum() if name == "classes" else 1), n, axis=0)
    spread = given.outcome.spread_around(level, given.labels)
    same = given.outcome.around(level, spread)
    for part in (given.train, np.setdiff1d(np.arange(n), given.train)):
        loss, score = given.outcome.loss_and_score(answers[part], given.labels[part])
        alike, _ = given.outcome.loss_and_score(same[part], given.labels[part])
        assert loss < alike - 0.1
        assert score > 0.3


@pytest.mark.slow
@pytest.mark.parametrize(("name", "estimator"), FITTING, ids=str)
def test_no_label_reaches_the_answer_of_its_own_node(name, estimator, table, monkeypatch):
    """Other labels in one fold change all means but those of this fold."""
    given = table(name)
    folds = np.arange(90) % 5
    own = cross_fit._folds
    monkeypatch.setattr(cross_fit, "_folds", lambda values, *rest: np.where(own(values, *rest) < 0, -1, folds))
    _, before = fitted(estimator, given)
    changed = given.labels.copy()
    changed[given.train[folds == 2]] = np.flip(changed[given.train[folds == 2]], axis=0)
    unknown = np.isnan(given.labels) != np.isnan(changed)
    _, after = fitted(estimator, given._replace(labels=np.where(unknown, given.labels, changed)))
    same = np.isclose(before, after, rtol=1e-12, atol=1e-12)[:, : given.outcome.columns]
    if given.outcome.name == "counts":  # the mean of a log-rate depends on the spread, that of the count does not
        before, after = (given.outcome.moments(answers)[0] for answers in (before, after))
        same = np.isclose(before, after, rtol=1e-9, atol=1e-9)
    known = ~np.isnan(given.labels.reshape(120, -1)[:90])
    assert same[:90][folds == 2][np.broadcast_to(known, same[:90].shape)[folds == 2]].all()
    assert not same[:90][folds == 3].all()
    assert not same[90:].all()


@pytest.mark.parametrize(("name", "estimator"), FITTING, ids=str)
def test_a_model_that_was_saved_answers_the_same(name, estimator, table):
    given = table(name)
    model, answers = fitted(estimator, given)
    arrays: dict[str, np.ndarray] = {}
    record = json.loads(json.dumps(_packed(model, "prior", arrays)))
    loaded = _unpacked(record, load(save({key: np.ascontiguousarray(array) for key, array in arrays.items()})))
    assert isinstance(loaded, CrossFitted)
    np.testing.assert_array_equal(loaded.answers(given.X), model.answers(given.X))
    np.testing.assert_array_equal(loaded.answers(given.X)[90:], answers[90:])
    assert loaded.outcome == given.outcome


def test_nothing_but_the_training_labels_is_looked_at(table):
    given = table("classes")
    hidden = given._replace(labels=np.where(np.arange(120) < 90, given.labels, -1))
    np.testing.assert_array_equal(fitted(FITTING[0][1], given)[1], fitted(FITTING[0][1], hidden)[1])


@pytest.mark.parametrize("estimator", [FITTING[0][1], FITTING[1][1], LogisticRegression()], ids=str)
def test_sparse_features_give_the_same(estimator, table):
    given = table("classes")
    X = given.X * (np.abs(given.X) > 0.5)
    _, dense = fitted(estimator, given._replace(X=X))
    model, sparse = fitted(estimator, given._replace(X=sp.csr_array(X)))
    np.testing.assert_allclose(sparse, dense, atol=1e-6)
    np.testing.assert_allclose(model.answers(sp.csr_array(X))[90:], sparse[90:], atol=1e-12)


def test_folds_have_equal_shares_of_each_class():
    values = np.repeat([0, 1, 2], [50, 25, 3])
    fold = cross_fit._folds(values, 5, True, 0)
    assert [np.bincount(fold[values == k], minlength=5).tolist() for k in (0, 1)] == [[10] * 5, [5] * 5]
    assert np.bincount(fold[values == 2]).max() == 1
    assert (cross_fit._folds(values, 5, True, 1) != fold).any()
    numbers = cross_fit._folds(np.array([0.5, np.nan, 2.0, 1.0]), 5, False, 0)
    assert sorted(numbers.tolist()) == [-1, 0, 1, 2]


@pytest.mark.parametrize("estimator", [FITTING[0][1], LogisticRegression()], ids=str)
def test_a_class_with_one_label_has_a_small_probability_where_it_was_not_seen(estimator, table):
    given = table("classes")
    labels = given.labels % 2
    labels[7] = 2
    model, answers = fitted(estimator, given._replace(labels=labels))
    assert np.isfinite(answers).all()
    np.testing.assert_allclose(np.exp(answers).sum(1), 1.0)
    # 89 other labels in 5 folds: 71 or 72 are seen, and with one more for each class 74 or 75.
    assert 1e-3 / 76 < np.exp(answers[7, 2]) < 1e-3 / 73
    with_it = [2 in fold.places for fold in model.models[0]]
    assert sum(with_it) == (4 if isinstance(estimator, LogisticRegression) else 0)


def test_one_label_of_each_class_is_enough():
    X = np.eye(3)
    model, answers = CrossFitted.fit(LogisticRegression(), X, np.arange(3), np.arange(3), Classes(3))
    assert (answers.argmax(1) != np.arange(3)).all()
    np.testing.assert_allclose(np.exp(model.answers(X)).sum(1), 1.0)


def test_a_tag_of_which_one_value_is_known_has_a_smoothed_probability(table):
    given = table("tags", columns=2)
    given.labels[:90, 1] = np.where(np.arange(90) < 10, 1.0, np.nan)
    _, answers = fitted(LogisticRegression(), given)
    np.testing.assert_allclose(1 / (1 + np.exp(-answers[:, 1])), 9 / 10)
    assert answers[:, 0].std() > 1


def test_the_spread_of_numbers_is_that_of_unseen_labels(table):
    """The noise has deviation 15."""
    given = table("real", columns=1)
    _, answers = fitted(LinearRegression(), given)
    mean, deviation = given.outcome.moments(answers)
    missed = np.sqrt(np.nanmean((given.labels - mean)[:90] ** 2))
    np.testing.assert_allclose(deviation, missed)
    assert 10 < missed < 20


def test_counts_keep_the_means_of_the_model(table):
    given = table("counts", columns=1)
    known = given.labels[:90, 0]
    model, answers = fitted(PoissonRegressor(), given)
    by_fold = [fold.mean(given.X) for fold in model.models[0]]
    np.testing.assert_allclose(given.outcome.moments(answers)[0][90:], np.mean(by_fold, axis=0)[90:])
    log_variance = answers[0, 1]
    assert log_variance == pytest.approx(float(np.log(model.spread[0])))
    losses = []
    for moved in (-0.1, 0.0, 0.1):
        around = given.outcome.around(given.outcome.moments(answers)[0][:90], np.exp([log_variance + moved]))
        losses.append(given.outcome.loss_and_score(around, known[:, None])[0])
    assert losses[1] == min(losses)


def test_means_that_no_count_can_have_are_moved_to_the_nearest(table):
    given = table("counts", columns=1)
    mean = given.outcome.moments(given.outcome.around(np.array([[-3.0], [1e300]]), np.array([0.1])))[0]
    np.testing.assert_allclose(mean[:, 0], [np.nanmean(given.labels[:90]) / 100, 2.0**53])
    model, _ = fitted(PoissonRegressor(), given)
    assert np.isfinite(model.answers(np.full((1, 6), 1e6) * np.sign(model.models[0][0].model.coef.T))).all()


def test_constant_columns_and_those_that_tell_least_are_left_out(table, monkeypatch):
    """Of six useful and useless columns among constant ones the two best stay, by the labels of each fold."""
    monkeypatch.setattr(cross_fit, "_MOST_FOR_TREES", 2)
    given = table("classes")
    X = np.ones((120, 20))
    X[:, 10:16] = given.X
    X[90:, 3] = 5.0
    for form in (X, sp.csr_array(X)):
        model, answers = fitted(HistGradientBoostingClassifier(**BOOSTED), given._replace(X=form))
        assert all(set(fold.model.columns.tolist()) <= {10, 11} for fold in model.models[0])
        assert given.outcome.loss_and_score(answers, given.labels)[1] > 0.8


@pytest.mark.parametrize("estimator", [HistGradientBoostingClassifier(**BOOSTED), LogisticRegression()], ids=str)
def test_features_that_never_change_give_the_frequencies(estimator, table):
    given = table("classes")
    _, answers = fitted(estimator, given._replace(X=np.ones((120, 2))))
    shares = np.bincount(given.labels[:90]) / 90
    np.testing.assert_allclose(np.exp(answers[90:]), np.tile(shares, (30, 1)), atol=0.02)


@pytest.mark.parametrize("estimator", [Ridge(), make_pipeline(StandardScaler(), Ridge())], ids=str)
def test_each_fold_learns_from_the_others_with_their_weights(estimator, table):
    given = table("real", columns=1)
    weights = np.random.default_rng(0).uniform(0.1, 10, 90)
    model, _ = fitted(estimator, given, weights=weights, folds=4, seed=2)
    fold = cross_fit._folds(given.labels[:90, 0], 4, False, 2)
    name = "sample_weight" if isinstance(estimator, Ridge) else "ridge__sample_weight"
    for k, own in enumerate(model.models[0]):
        seen = np.flatnonzero((fold >= 0) & (fold != k))
        theirs = clone(estimator).fit(given.X[seen], given.labels[seen, 0], **{name: weights[seen]})
        np.testing.assert_allclose(own.mean(given.X)[:, 0], theirs.predict(given.X))


def test_a_seed_decides_everything_unless_the_estimator_has_its_own(table):
    given = table("classes")
    estimator = HistGradientBoostingClassifier(early_stopping=True, **BOOSTED)
    (_, one), (_, again), (_, other) = (fitted(estimator, given, seed=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    assert estimator.random_state is None
    own = HistGradientBoostingClassifier(early_stopping=True, random_state=8, **BOOSTED)
    assert (fitted(own, given, seed=4)[1] != one).any()


def test_an_estimator_that_fails_is_named_with_its_message(table):
    with pytest.raises(InputError, match=r"prior: got LogisticRegression, whose fit failed .*'C' parameter"):
        fitted(LogisticRegression(C=-1.0), table("classes"))
    with pytest.raises(InputError, match=r"prior: got HistGradientBoostingRegressor.*requires strictly positive y"):
        fitted(HistGradientBoostingRegressor(loss="gamma"), table("counts"))


def test_a_model_that_is_read_wrongly_is_not_used(table, monkeypatch):
    monkeypatch.setattr(cross_fit, "converted", lambda estimator: Linear.constant(6, np.full(3, 1 / 3)))
    with pytest.raises(G3NNError, match="LogisticRegression of this scikit-learn predicts otherwise"):
        fitted(LogisticRegression(), table("classes"))


@pytest.mark.parametrize("name", OUTCOMES)
def test_an_answer_has_the_mean_that_it_was_made_around(name, table):
    given = table(name)
    mean = np.random.default_rng(0).dirichlet(np.ones(3), 10) + (5 if given.outcome.learner == "regressor" else 0)
    answer = given.outcome.around(mean, np.array([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(given.outcome.moments(answer)[0], mean)


def test_boosting_stays_trees(table):
    model, _ = fitted(FITTING[0][1], table("classes"), folds=3)
    assert [type(fold.model) for fold in model.models[0]] == [Trees] * 3


def test_parts_have_a_model_each_that_has_not_seen_what_they_hold_back():
    """Ridge on one column: the model of a part is the regression on its own training nodes."""
    task = g3nn.synthetic_values(nodes=80, degree=3, features=1, labelled=0.6, val=20, seed=1)
    labelled = np.union1d(task.train, task.val)
    folds = np.array_split(labelled, 2)
    parts = [(replace(task, train=np.setdiff1d(labelled, fold), val=fold), None) for fold in folds]
    outcome = task.outcome_model()
    model = CrossFitted.apart(Ridge(), task.features, parts, outcome)
    held = []
    for place, (part, _) in enumerate(parts):
        alone = Ridge().fit(task.features[part.train], task.labels[part.train, 0]).predict(task.features[part.val])
        mean, _ = outcome.moments(model.answers(task.features[part.val], place))
        np.testing.assert_allclose(mean[:, 0], alone, rtol=1e-5, atol=1e-6)
        held.append(task.labels[part.val, 0] - alone)
    _, deviation = outcome.moments(model.answers(task.features))
    np.testing.assert_allclose(deviation, np.sqrt(np.mean(np.concatenate(held) ** 2)), rtol=0.05)


@pytest.mark.parametrize("name", ["classes", "real"])
def test_the_base_rate_is_the_same_for_all_nodes_and_is_saved(name, table):
    given = table(name)
    model, answers = fitted(base_rate(type(given.outcome)), given)
    unseen = answers[len(given.train) :]
    np.testing.assert_allclose(unseen, np.tile(unseen[:1], (len(unseen), 1)))
    arrays: dict[str, np.ndarray] = {}
    loaded = _unpacked(json.loads(json.dumps(_packed(model, "m", arrays))), arrays)
    np.testing.assert_array_equal(loaded.answers(given.X), model.answers(given.X))
