"""An estimator of scikit-learn as the label prior."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from number_graph import known_numbers
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.svm import LinearSVC

import g3nn
from g3nn.base.errors import InputError, Problems
from g3nn.estimator import G3NNClassifier, G3NNRegressor, Nodes, load_model
from g3nn.estimator.members import with_belief_columns
from g3nn.estimator.panel import panel_of
from g3nn.estimator.problem import read_problem
from g3nn.graph.given import Given
from g3nn.graph.outcomes import Classes
from g3nn.model.generative import ModelSpec
from g3nn.model.posteriors import POSTERIORS
from g3nn.model.tabular import CrossFitted

pytestmark = pytest.mark.filterwarnings("ignore:.*(new nodes have no edge|validation nodes serve)")

NEW = np.array([[150, 151, 150], [0, 1, 151]])


@pytest.fixture(scope="module")
def joint(graph, quick):
    """A named model. Not to be changed."""
    return quick(prior=LogisticRegression()).fit(graph.X, graph.y, graph.edges, val=graph.val)


@pytest.fixture(scope="module")
def panel(graph, quick):
    """Not to be changed."""
    classifier = quick(model="auto", effort="quick", epochs=15, prior=LogisticRegression(), denoise=False)
    return classifier.fit(graph.X, graph.y, graph.edges, val=graph.val)


def cross_fitted(task, weights=None, seed=0):
    how = {"seed": seed, "weights": weights}
    return CrossFitted.fit(LogisticRegression(), task.features, task.labels, task.train, task.outcome_model(), **how)


class TestJointModel:
    def test_it_beats_the_prior_alone_where_edges_say_more(self, joint, graph):
        hidden = np.flatnonzero(graph.y < 0)
        alone = (joint.task_.beliefs.argmax(1) == graph.truth)[hidden].mean()
        together = (joint.predict() == graph.truth)[hidden].mean()
        assert alone > 0.6
        assert together > alone + 0.05

    def test_the_prior_is_cross_fitted_on_the_training_labels(self, joint):
        (network,) = joint.fitted_.answerer.networks
        assert network.spec == ModelSpec("gcn", "sbm", "given")
        assert not list(network.model.prior.parameters())
        _, expected = cross_fitted(joint.task_, seed=joint.fitted_.seed)
        np.testing.assert_array_equal(joint.task_.beliefs, expected)

    def test_validation_labels_never_reach_it(self, graph, quick):
        """Nor anything that is learned; after one epoch no other could have been chosen."""
        mixed = graph.y.copy()
        mixed[graph.val] = np.random.default_rng(0).permutation(graph.y[graph.val])
        assert (mixed != graph.y).any()
        one, other = (
            quick(prior=LogisticRegression(), epochs=1).fit(graph.X, y, graph.edges, val=graph.val)
            for y in (graph.y, mixed)
        )
        np.testing.assert_array_equal(one.task_.beliefs, other.task_.beliefs)
        states = [each.fitted_.answerer.networks[0].model.state_dict() for each in (one, other)]
        assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])
        assert one.fitted_.val_loss != other.fitted_.val_loss

    def test_trees_on_sparse_features(self, graph, quick):
        few = sp.csr_array(np.where(graph.X > 1, graph.X, 0))
        trees = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2)
        classifier = quick(prior=trees, epochs=3).fit(few, graph.y, graph.edges, val=graph.val)
        assert not hasattr(trees, "classes_")
        assert np.isfinite(classifier.task_.beliefs).all()

    @pytest.mark.slow
    def test_weights_of_labels_count(self, graph, quick):
        weights = np.where(graph.truth == 0, 20.0, 1.0)
        classifier = quick(prior=LogisticRegression(), epochs=1)
        classifier.fit(graph.X, graph.y, graph.edges, val=graph.val, sample_weight=weights)
        task = classifier.task_
        _, expected = cross_fitted(task, weights[task.train], classifier.fitted_.seed)
        np.testing.assert_array_equal(task.beliefs, expected)
        by_class = quick(prior=LogisticRegression(), epochs=1, class_weight={0: 20.0})
        by_class.fit(graph.X, graph.y, graph.edges, val=graph.val)
        np.testing.assert_array_equal(by_class.task_.beliefs, expected)

    def test_a_refit_learns_from_all_labels(self, graph, quick):
        classifier = quick(prior=LogisticRegression(), epochs=2, refit=True)
        classifier.fit(graph.X, graph.y, graph.edges, val=graph.val)
        task = replace(classifier.task_, train=np.flatnonzero(graph.y >= 0))
        _, expected = cross_fitted(task, seed=classifier.fitted_.seed)
        np.testing.assert_array_equal(classifier.task_.beliefs, expected)

    def test_an_inductive_fit_learns_from_what_it_sees(self, graph, quick):
        classifier = quick(prior=LogisticRegression(), epochs=2, inductive=True)
        classifier.fit(graph.X, graph.y, graph.edges, val=graph.val)
        task, labelled = classifier.task_, np.flatnonzero(graph.y >= 0)
        part = replace(
            task,
            features=task.features[labelled],
            labels=task.labels[labelled],
            train=np.searchsorted(labelled, task.train),
            beliefs=None,
        )
        model, seen = cross_fitted(part, seed=classifier.fitted_.seed)
        np.testing.assert_array_equal(task.beliefs[labelled], seen)
        hidden = graph.y < 0
        np.testing.assert_array_equal(task.beliefs[hidden], model.answers(task.features[hidden]))


class TestPanel:
    @pytest.mark.slow
    def test_everything_that_listens_is_tried_first(self, panel):
        first, second = [name for name, *_ in panel_of(Classes, 3, 1.0) if name in POSTERIORS][:2]
        assert [(entry.model, entry.view) for entry in panel.panel_][:6] == [
            ("LogisticRegression", "given"),
            ("LogisticRegression-neighbours", "given"),
            ("base-rate", "given"),
            ("label-propagation", "given"),
            (first, "given + prior"),
            (second, "given + prior"),
        ]

    def test_all_joint_models_have_it_as_prior(self, graph):
        given = Given(graph.X, graph.y, graph.edges, graph.val, directed=False)
        parameters = G3NNClassifier(prior=LogisticRegression()).get_params(deep=False)
        tried = read_problem(parameters, Classes, given, Problems(), []).candidates
        joint = [one for one in tried if one.name not in POSTERIORS]
        assert {one.prior for one in joint} == {"given"}
        plain = G3NNClassifier().get_params(deep=False)
        before = read_problem(plain, Classes, given, Problems(), []).candidates
        assert sorted(one.name for one in tried if not one.beliefs) == sorted(one.name for one in before)
        assert not any(one.beliefs for one in before)

    def test_without_edges_or_validation_the_prior_is_still_heard(self, graph, quick):
        how = {"model": "auto", "effort": "quick", "epochs": 2, "prior": LogisticRegression()}
        with pytest.warns(UserWarning, match="no edges"):
            alone = quick(**how).fit(graph.X, graph.y, None, val=graph.val)
        assert [entry.view for entry in alone.panel_] == ["given", "given", "given + prior", "given"]
        with pytest.warns(UserWarning, match="no labelled node is left"):
            blind = quick(**how, validation=0.0).fit(graph.X, graph.y, graph.edges)
        assert blind.fitted_.answerer.networks[0].spec == ModelSpec("appnp", "sbm", "given")

    @pytest.mark.slow
    def test_the_prior_is_tried_where_features_as_given_look_like_another_view(self, graph):
        """With sixteen ones in each row, rows of the length 4 are as they came."""
        rng = np.random.default_rng(0)
        X = np.stack([np.isin(np.arange(60), rng.permutation(40)[:16] + 10 * k) for k in graph.truth]).astype(float)
        classifier = G3NNClassifier(prior=LogisticRegression(), effort="quick", epochs=1, ensemble=1, device="cpu")
        classifier.fit(X, graph.y, graph.edges, val=graph.val)
        assert (classifier.panel_[0].model, classifier.panel_[0].view) == ("LogisticRegression", "length")

    def test_beliefs_are_columns_of_probabilities_in_dense_and_sparse_features(self, joint):
        task, outcome = joint.task_, joint.fitted_.outcome
        for features in (task.features, sp.csr_array(task.features)):
            wide = with_belief_columns(replace(task, features=features), outcome).features
            columns = wide.toarray() if sp.issparse(wide) else wide
            np.testing.assert_array_equal(columns[:, :6], task.features)
            np.testing.assert_allclose(columns[:, 6:], np.exp(task.beliefs), rtol=1e-6)

    def test_a_member_that_sees_beliefs_answers_saved_and_new(self, graph, tmp_path):
        believer = learned_with_beliefs(graph)
        assert [one.beliefs for one in believer.fitted_.answerer.members] == [True]
        assert_same_after_saving(believer, graph, tmp_path)
        (reason,) = believer.explain([3])
        assert {name for name, _ in reason.features} <= set(map(str, range(6)))

    def test_a_mixture_with_the_prior_itself_is_saved(self, panel, graph, tmp_path):
        assert_same_after_saving(panel, graph, tmp_path)


def learned_with_beliefs(graph):
    """A classifier whose only member is a network that sees beliefs."""
    how = {"effort": "quick", "epochs": 10, "ensemble": 1, "device": "cpu", "denoise": False}
    how["prior"] = LogisticRegression()
    classifier = G3NNClassifier(**how, objective="laplacian", validation=0.0)
    with pytest.warns(UserWarning, match="no labelled node is left"):
        return classifier.fit(graph.X, graph.y, graph.edges)


def assert_same_after_saving(classifier, graph, folder):
    classifier.save(folder / "model")
    loaded = load_model(folder / "model")
    moved = graph.X[:4] + 0.1
    for question in ((), (moved,), (moved, NEW), (Nodes(graph.X + 0.1, graph.edges)[5:9],)):
        np.testing.assert_array_equal(loaded.predict_proba(*question), classifier.predict_proba(*question))
    return loaded


class TestSavedAndNew:
    def test_a_loaded_model_answers_the_same_and_says_what_its_prior_was(self, joint, graph, tmp_path):
        loaded = assert_same_after_saving(joint, graph, tmp_path)
        assert loaded.prior.name == "LogisticRegression"
        assert loaded.prior.parameters["C"] == repr(LogisticRegression().C)
        with pytest.raises(InputError, match="pass a new LogisticRegression as prior"):
            loaded.fit(graph.X, graph.y, graph.edges)
        loaded.save(tmp_path / "again")
        again = load_model(tmp_path / "again")
        np.testing.assert_array_equal(again.predict_proba(), joint.predict_proba())
        again.set_params(prior=LogisticRegression(), epochs=1).fit(graph.X, graph.y, graph.edges, val=graph.val)

    def test_new_nodes_are_believed_what_all_models_say(self, joint, graph, monkeypatch):
        asked = []
        answer = type(joint.fitted_.answerer).__call__
        monkeypatch.setattr(
            type(joint.fitted_.answerer),
            "__call__",
            lambda self, *given: asked.append(given[0]) or answer(self, *given),
        )
        moved = graph.X[:3] + 0.1
        joint.predict_proba(moved, NEW)
        joint.predict_proba(Nodes(graph.X, NEW[:, :0]))
        joint.predict_proba(Nodes(graph.X + 0.1, graph.edges))
        fitted, (enlarged, same_nodes, other) = joint.fitted_, asked
        known = joint.task_.beliefs
        np.testing.assert_array_equal(enlarged.beliefs[:150], known)
        np.testing.assert_array_equal(enlarged.beliefs[150:], fitted.prior.answers(enlarged.features[150:]))
        np.testing.assert_array_equal(same_nodes.beliefs, known)
        np.testing.assert_array_equal(other.beliefs, fitted.prior.answers(other.features.astype(np.float32)))


VALUES = {
    "tags": (G3NNClassifier, LogisticRegression(), {}),
    "real": (G3NNRegressor, Ridge(), {}),
    "counts": (G3NNRegressor, PoissonRegressor(), {"outcome": "counts"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("outcome", VALUES)
def test_other_outcomes_train(outcome, tmp_path):
    kind, prior, how = VALUES[outcome]
    task = g3nn.synthetic_values(outcome, nodes=120, columns=2, degree=6, features=4, labelled=0.5, val=40, seed=2)
    estimator = kind(prior=prior, effort="quick", epochs=1, ensemble=1, device="cpu", denoise=False, **how)
    estimator.fit(task.features, known_numbers(task), task.edges, val=task.val)
    tried = {entry.model: entry for entry in estimator.panel_}
    assert all(np.isfinite(entry.val_loss) for entry in tried.values())
    assert {"tags": "tags-gcn", "real": "near-gcn", "counts": "near-gcn"}[outcome] in tried
    assert estimator.task_.beliefs.shape == (120, 2 if outcome == "tags" else 4)
    estimator.save(tmp_path / "model")
    moved = task.features[:5] + 0.1
    for question in ((), (moved,)):
        np.testing.assert_array_equal(
            load_model(tmp_path / "model").predict(*question), estimator.predict(*question), strict=True
        )


class TestRefusals:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"prior": LogisticRegression}, "the class LogisticRegression.*Call it"),
            ({"prior": LinearSVC()}, "LinearSVC without predict_proba"),
            ({"prior": RandomForestClassifier()}, "cannot be saved without pickle.*HistGradientBoostingClassifier"),
            ({"prior": Ridge()}, "no classifier"),
            ({"prior": None}, "no estimator"),
            ({"prior": "liner"}, "Did you mean 'linear'"),
            ({"prior": "given"}, "prior: got 'given'"),
            ({"options": {"prior": "given"}}, "Pass what gives the beliefs"),
            ({"prior": "linear", "options": {"prior": "uniform"}}, "one of them"),
            ({"prior": LogisticRegression(), "options": {"prior": "uniform"}}, "one of them"),
            ({"prior": LogisticRegression(), "model": "gcn"}, "no likelihood.*leave model='auto'"),
            ({"prior": "linear", "model": ModelSpec("gcn", "sbm", "uniform")}, "ModelSpec"),
        ],
    )
    def test_before_anything_is_trained(self, parameters, message, graph, quick):
        with pytest.raises(InputError, match=f"(?s){message}") as caught:
            quick(**parameters).fit(graph.X, graph.y, graph.edges)
        assert len(caught.value.problems) == (2 if isinstance(parameters.get("prior"), LinearSVC) else 1)

    def test_all_problems_come_together(self, graph, quick):
        with pytest.raises(InputError) as caught:
            quick(prior=LogisticRegression, lr=-1.0, effort="none").fit(graph.X, graph.y, graph.edges)
        assert {problem.argument for problem in caught.value.problems} == {"prior", "lr", "effort"}

    def test_what_an_estimator_says_when_it_fails_is_passed_on(self, graph, quick):
        with pytest.raises(InputError, match=r"LogisticRegression, whose fit failed.*'C' parameter"):
            quick(prior=LogisticRegression(C=-1.0)).fit(graph.X, graph.y, graph.edges, val=graph.val)


def test_a_prior_by_name_serves_every_joint_model(graph, quick):
    for model in ("sbm-gcn", ModelSpec("gcn", "sbm")):
        classifier = quick(prior="linear", epochs=1, model=model).fit(graph.X, graph.y, graph.edges, val=graph.val)
        assert classifier.fitted_.answerer.networks[0].spec.prior == "linear"
        assert classifier.task_.beliefs is None


def test_a_task_without_beliefs_is_refused(learnable):
    with pytest.raises(InputError, match="GivenPrior for a task without beliefs"):
        g3nn.fit(learnable, "sbm-gcn", prior="given", epochs=1)
    beliefs = np.log(np.full((60, 3), 1 / 3))
    result = g3nn.fit(replace(learnable, beliefs=beliefs), "sbm-gcn", prior="given", epochs=1)
    assert result.trials
