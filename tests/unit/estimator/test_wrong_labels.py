"""Wrong labels: each is judged without itself, and where many are wrong, models train on what they probably are."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

import g3nn
from g3nn.base.errors import InputError
from g3nn.estimator import G3NNClassifier, G3NNRegressor, load_model
from g3nn.estimator.effort import EFFORTS
from g3nn.estimator.panel import Candidate
from g3nn.queries import wrong_labels
from g3nn.queries.wrong_labels import JudgedLabels, judged_labels
from g3nn.training.plan import Plan
from g3nn.training.progress import Course

pytestmark = [
    pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning"),
    pytest.mark.usefixtures("few_models"),
]

FAST = {"effort": "quick", "epochs": 25, "ensemble": 1, "denoise": False, "device": "cpu"}


MODELS = [Candidate("gcn", "elbo", {}), Candidate("mlp", "elbo", {})]


@pytest.fixture(scope="module")
def clean():
    return g3nn.synthetic(nodes=300, classes=3, degree=6, features=12, signal=1.2, labels_per_class=15, val=105, seed=5)


@pytest.fixture(scope="module")
def flipped(clean):
    """Three labels of ten are wrong; and which."""
    rng, labelled = np.random.default_rng(1), np.union1d(clean.train, clean.val)
    wrong = rng.choice(labelled, 45, replace=False)
    labels = clean.labels.copy()
    labels[wrong] = (labels[wrong] + rng.integers(1, 3, 45)) % 3
    return replace(clean, labels=labels), wrong


def known(task):
    y = np.full(task.num_nodes, -1)
    for part in (task.train, task.val):
        y[part] = task.labels[part]
    return y


def both_judged(task, models=MODELS, seed=0, **how):
    return judged_labels(
        task, [one.plan({}, (seed,), "cpu") for one in models], seed, Course(), **{"epochs": 40, **how}
    )


def judged(*args, **how):
    return both_judged(*args, **how)[0]


def fitted(task, **changes):
    return G3NNClassifier(**{**FAST, **changes}).fit(task.features, known(task), task.edges, val=task.val)


@pytest.fixture(scope="module")
def correcting(flipped):
    """Not to be changed."""
    return fitted(flipped[0])


@pytest.mark.slow
def test_wrong_labels_are_found_and_counted(clean, flipped):
    task, wrong = flipped
    found = judged(task)
    truly = np.isin(found.nodes, wrong)
    assert roc_auc_score(truly, found.wrong) > 0.9
    assert found.wrong.sum() == pytest.approx(len(wrong), rel=0.35)
    assert found.many
    assert (found.answer == clean.labels[found.nodes]).mean() > 1 - truly.mean() + 0.1


def test_right_labels_stay_as_they_are(clean):
    found = judged(clean)
    assert found.wrong.mean() < 0.04
    assert not found.many


@pytest.mark.slow
def test_a_label_has_no_part_in_its_own_judgement(flipped, monkeypatch):
    """What models say about a node before they are pooled does not move when its label changes; what they say about
    nodes of other folds does. So it is in both passes."""
    task, _ = flipped
    node, labelled = int(task.train[0]), np.union1d(task.train, task.val)
    labels, passes, pool = task.labels.copy(), [], wrong_labels._ByFolds._judged
    labels[node] = (labels[node] + 1) % 3

    def listening(self, answers, *folds):
        passes.append(np.stack(answers))
        return pool(self, answers, *folds)

    monkeypatch.setattr(wrong_labels._ByFolds, "_judged", listening)
    for given in (task.labels, labels):
        judged(replace(task, labels=given), MODELS[:1], epochs=10, twice=True)
    fold = wrong_labels._folds(len(labelled), 0)
    own = fold[labelled == node].item()
    same = fold == own
    of_one, of_other = np.split(np.array([passes[place] for place in (0, 6, 7, 13)]), 2)
    for one, other in zip(of_one, of_other, strict=True):
        np.testing.assert_array_equal(one[own][:, same], other[own][:, same])
        assert not np.array_equal(one, other)
    assert not np.array_equal(of_one[0], of_one[1])


@pytest.mark.slow
def test_a_second_pass_finds_more_labels_that_are_wrong_in_the_same_way(monkeypatch):
    """A third of the labels are the next class: models that trained on these labels repeat some of them."""
    task = g3nn.synthetic(nodes=500, classes=4, degree=8, features=16, signal=1.5, labels_per_class=60, val=160, seed=2)
    wrong, labels = np.random.default_rng(2).permutation(np.union1d(task.train, task.val))[:140], task.labels.copy()
    labels[wrong] = (labels[wrong] + 1) % 4
    monkeypatch.setattr(JudgedLabels, "many", False)
    once, again = (judged(replace(task, labels=labels), MODELS[:1], twice=twice) for twice in (False, True))
    first, second = (roc_auc_score(np.isin(found.nodes, wrong), found.wrong) for found in (once, again))
    assert second > first + 0.02


@pytest.mark.slow
def test_a_fold_has_no_part_in_what_the_labels_of_the_others_are(flipped):
    """That is what is trained on where the fold validates."""
    task, _ = flipped
    node, labels = int(task.train[0]), task.labels.copy()
    labels[node] = (labels[node] + 1) % 3
    found, changed = (
        both_judged(replace(task, labels=given), MODELS[:1], epochs=10, twice=True)[1]
        for given in (task.labels, labels)
    )
    own = next(place for place, one in enumerate(found) if node not in one.nodes)
    assert [len(one.nodes) for one in found] == [120] * 5
    np.testing.assert_array_equal(found[own].wrong, changed[own].wrong)
    assert not np.array_equal(found[own - 1].wrong, changed[own - 1].wrong)


def test_models_without_skill_expect_hardly_a_wrong_label():
    """Features and edges say next to nothing about the labels, all of which are right."""
    task = g3nn.synthetic(nodes=200, classes=4, degree=3, features=6, signal=0.3, labels_per_class=10, val=60, seed=0)
    assert judged(task, MODELS[:1], epochs=10, twice=True).wrong.mean() < 0.01


@pytest.fixture(scope="module")
def many_labels():
    """With right labels, and with three of ten wrong: as many as folds take."""
    task = g3nn.synthetic(nodes=500, classes=3, degree=6, features=12, signal=1.2, labels_per_class=80, val=60, seed=5)
    rng, labels = np.random.default_rng(1), task.labels.copy()
    wrong = rng.choice(np.union1d(task.train, task.val), 90, replace=False)
    labels[wrong] = (labels[wrong] + rng.integers(1, 3, 90)) % 3
    return task, replace(task, labels=labels)


@pytest.mark.slow
def test_nothing_is_validated_on_labels_that_it_was_trained_on(many_labels, monkeypatch):
    clean, task = many_labels
    networks, tables, fit, train = [], [], Plan.fit, Candidate.train

    def listening(self, given, *args, apart=()):
        networks.extend([task for task, _ in apart] or [given])
        return fit(self, given, *args, apart=apart)

    def listening_too(self, given, *args):
        tables.append(given)
        return train(self, given, *args)

    monkeypatch.setattr(Plan, "fit", listening)
    monkeypatch.setattr(Candidate, "train", listening_too)
    monkeypatch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], views=1, models=2, kept=2, replicas=3))
    classifier = fitted(task, ensemble=3, label_noise=True)
    labelled = np.union1d(task.train, task.val)
    tried = [one for one in networks if one.val.size and not np.intersect1d(one.train, one.val).size]
    assert tried
    for one in tried:
        np.testing.assert_array_equal(np.union1d(one.train, one.val), labelled)
        np.testing.assert_array_equal(one.labels[one.val], task.labels[one.val])
        right = [(labels == clean.labels)[one.train].mean() for labels in (one.labels, task.labels)]
        assert right[0] > right[1] + 0.1
    folds = np.unique(np.concatenate([one.val for one in tried]))
    assert len(folds) == pytest.approx(0.6 * len(labelled))
    tried = [part for parts in tables for part, _ in parts if not np.array_equal(part.train, labelled)]
    assert len(tried) % 3 == 0
    for one in tried:
        assert not np.intersect1d(one.train, one.val).size
        np.testing.assert_array_equal(one.labels[one.val], task.labels[one.val])
    np.testing.assert_array_equal(np.unique(np.concatenate([one.val for one in tried])), folds)
    assert np.isin(task.val, classifier.fitted_.task.val).all()


@pytest.mark.slow
def test_a_named_model_of_many_replicas_is_saved_and_loaded(many_labels, tmp_path):
    _, task = many_labels
    classifier = fitted(task, model="gcn", ensemble=5, epochs=5, label_noise=True)
    assert classifier.fitted_.corrected
    classifier.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict_proba(), classifier.predict_proba())


@pytest.mark.slow
def test_a_corrected_fit_can_go_on(many_labels, monkeypatch):
    _, task = many_labels
    monkeypatch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], views=1, models=2, kept=1))
    classifier = fitted(task, epochs=5, label_noise=True)
    classifier.set_params(label_noise="auto")
    assert classifier.fitted_.corrected
    # With a limit of time labels are taken as given, and other nodes validate.
    assert classifier.continue_fit(effort="quick", budget=5).predict_proba().shape == (500, 3)
    assert not classifier.fitted_.corrected


@pytest.mark.slow
def test_tags_and_estimators_as_prior_keep_their_validation_nodes(many_labels):
    from sklearn.linear_model import LogisticRegression

    _, task = many_labels
    given = fitted(task, model="sbm-gcn", prior=LogisticRegression(), epochs=3, label_noise=True)
    assert given.fitted_.answerer.networks[0].sharpness == 1
    tags = np.stack([task.labels == 0, task.labels == 1], axis=1).astype(float)
    tags[np.setdiff1d(np.arange(500), np.union1d(task.train, task.val))] = np.nan
    classifier = G3NNClassifier(**{**FAST, "epochs": 5}, model="gcn", label_noise=True)
    classifier.fit(task.features, tags, task.edges, val=task.val)
    assert classifier.fitted_.answerer.networks[0].sharpness == 1


@pytest.mark.slow
def test_few_labels_are_not_shared_out(flipped):
    """A fold of them would be too small to validate on, so the nodes to validate on stay what they were."""
    task, _ = flipped
    assert np.array_equal(fitted(task, model="gcn", label_noise=True, epochs=3).fitted_.task.val, task.val)


def test_models_that_know_nothing_correct_nothing():
    """Four labels of five are of one class, and that is all that models know."""
    rng = np.random.default_rng(0)
    seen = (rng.random(400) < 0.2).astype(np.int64)
    unseen = np.log([[0.8, 0.2]]) + 0.01 * rng.standard_normal((400, 2))
    fold, places = np.arange(400) % 5, np.arange(400)
    found = JudgedLabels.of(
        places, np.zeros(400, np.int64), fold, unseen - np.logaddexp.reduce(unseen, 1)[:, None], seen
    )
    assert not found.many
    assert found.wrong.mean() < 0.01


def test_a_class_with_one_label_keeps_it():
    rng = np.random.default_rng(1)
    seen = np.append(rng.integers(0, 2, 99), 2)
    unseen = np.log(np.where(np.eye(3)[np.append(seen[:99], 0)] > 0, 0.98, 0.01))
    found = JudgedLabels.of(np.arange(100), np.zeros(100, np.int64), np.arange(100) % 5, unseen, seen)
    assert found.answer[-1] == 2
    assert found.wrong[-1] == 0


@pytest.mark.slow
def test_the_default_trains_on_what_labels_probably_are(clean, flipped, correcting):
    task, _ = flipped
    believing = fitted(task, label_noise=False)
    assert correcting.fitted_.corrected
    assert not believing.fitted_.corrected
    labelled, right = np.union1d(task.train, task.val), (correcting.predict() == clean.labels)[task.test].mean()
    given, taught = ((one == clean.labels)[labelled].mean() for one in (task.labels, correcting.fitted_.known_labels))
    assert taught > given + 0.1
    assert believing.fitted_.known_labels is believing.fitted_.task.labels
    # Answers claim what holds for true labels, not for those that were given.
    claimed = correcting.predict_proba()[task.test].max(1).mean()
    assert claimed == pytest.approx(right, abs=0.12)
    # Before the last training models knew fewer labels, and wrong ones; but their score is that on true labels, too.
    assert believing.fitted_.val_score + 0.1 < correcting.fitted_.val_score < right


@pytest.mark.slow
def test_with_right_labels_nothing_changes(clean):
    one, other = fitted(clean), fitted(clean, label_noise=False)
    assert one.fitted_.labels is not None
    assert not one.fitted_.corrected
    assert other.fitted_.labels is None
    np.testing.assert_array_equal(one.predict_proba(), other.predict_proba())


@pytest.mark.slow
def test_the_audit_lists_labels_with_the_most_suspicious_first(flipped, correcting):
    _, wrong = flipped
    table = correcting.audit(5).labels
    assert table.dtype.names == ("rank", "node", "given", "answer", "probability")
    assert (np.diff(table["probability"]) <= 0).all()
    assert table["rank"].tolist() == list(range(1, len(table) + 1))
    assert np.isin(table["node"][:20], wrong).mean() > 0.8
    assert table["given"].tolist() == known(flipped[0])[table["node"]].tolist()
    doubted = correcting.suggest_labels(10)
    assert np.isin([one.number for one in doubted], table["node"][:15]).all()
    assert all(one.label != one.instead for one in correcting.suggest_labels(200))
    assert f"labelled {doubted[0].label}" in doubted[0].reason


@pytest.mark.slow
def test_labels_are_judged_when_asked_for(flipped):
    classifier = fitted(flipped[0], model="gcn")
    assert classifier.fitted_.labels is None
    table = classifier.audit_labels()
    assert roc_auc_score(np.isin(table["node"], flipped[1]), table["probability"]) > 0.85


@pytest.mark.slow
def test_saved_and_loaded(correcting, tmp_path):
    correcting.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(), correcting.predict_proba())
    assert (again.audit_labels() == correcting.audit_labels()).all()
    assert again.fitted_.corrected


def test_new_labels_are_judged_by_what_was_answered_before(flipped, correcting):
    task, _ = flipped
    classifier = copy.deepcopy(correcting)
    sure = classifier.predict_proba()[task.test].max(1).argsort()[-2:]
    nodes = task.test[sure]
    right, wrong = classifier.predict()[nodes].tolist()
    classifier.update(nodes, [right, (wrong + 1) % 3])
    table = {row["node"]: row["probability"] for row in classifier.audit_labels()}
    assert table[nodes[1]] > 0.5 > table[nodes[0]]


@pytest.mark.slow
def test_tags_flip_and_numbers_have_outliers(clean):
    tags = np.stack([clean.labels == 0, clean.labels == 1], axis=1).astype(float)
    labelled = np.union1d(clean.train, clean.val)
    wrong = np.random.default_rng(0).choice(labelled, 20, replace=False)
    seen = tags.copy()
    seen[wrong, 0] = 1 - seen[wrong, 0]
    seen[np.setdiff1d(np.arange(300), labelled)] = np.nan
    classifier = G3NNClassifier(**FAST, model="gcn").fit(clean.features, seen, clean.edges)
    found = classifier._judged_labels()
    flippedly = np.isin(found.nodes, wrong) & (found.columns == 0)
    assert roc_auc_score(flippedly, found.wrong) > 0.9
    assert "= True" in str(classifier.audit_labels()["given"].tolist()) or "= 1" in str(
        classifier.audit_labels()["given"].tolist()
    )
    values = clean.features[:, 0] + clean.features[:, 1] + 0.1 * np.random.default_rng(1).normal(size=300)
    values = np.asarray(values, dtype=float)
    values[wrong] += np.where(np.arange(20) % 2, 12.0, -12.0)
    values[np.setdiff1d(np.arange(300), labelled)] = np.nan
    how = {**FAST, "epochs": 150}
    regressor = G3NNRegressor(**how, model="mlp").fit(clean.features, values, clean.edges)
    table = regressor.audit_labels()
    assert roc_auc_score(np.isin(table["node"], wrong), table["probability"]) > 0.95


def test_what_is_allowed():
    with pytest.raises(InputError, match="label_noise: got 'maybe'"):
        G3NNClassifier(label_noise="maybe").fit(np.eye(4), [0, 1, 0, -1], [[0, 1], [1, 2]])


def test_weights_follow_what_labels_probably_are():
    parts = ([1, 3], [0, 0], [0, 1], [[0.0, 0.0]] * 2, [0, 1], [0, 0], [0.9, 0.6], [0.1, 0.6], np.eye(2))
    judged = JudgedLabels(*map(np.array, parts))
    task = g3nn.synthetic(nodes=30, classes=2, degree=3, features=3, labels_per_class=3, val=6, seed=0)
    corrected, weights = judged.corrected(task, None)
    assert corrected.labels[[1, 3]].tolist() == [0, 0]
    assert weights[[0, 1, 3]].tolist() == [1.0, 0.9, 0.6]
    numbers = replace(judged, table=np.zeros((0, 0)))
    assert (numbers.corrected(task, np.full(30, 2.0))[0].labels == task.labels).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["classes", "tags", "numbers"])
def test_the_page_says_what_was_judged(clean, kind, tmp_path):
    labelled = np.union1d(clean.train, clean.val)
    y = np.full(300, -1)
    y[labelled] = clean.labels[labelled]
    if kind != "classes":
        flags = np.stack([clean.labels == 0, clean.labels == 1], axis=1).astype(float)
        y = flags if kind == "tags" else np.asarray(clean.features[:, 0], dtype=float)
        y[np.setdiff1d(np.arange(300), labelled)] = np.nan
    made = G3NNRegressor if kind == "numbers" else G3NNClassifier
    estimator = made(**{**FAST, "epochs": 5}, model="gcn", label_noise=True).fit(clean.features, y, clean.edges)
    estimator.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert estimator.fitted_.corrected
    assert "was judged by models that had not seen it" in page
    assert "trained on what all labels probably are" in page


def test_before_a_fit():
    with pytest.raises(NotFittedError):
        G3NNClassifier().audit_labels()
