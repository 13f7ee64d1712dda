"""With few labels each replica validates on a fold of its own, and about those nodes only it is asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import g3nn
from g3nn.base.errors import InputError, Problems
from g3nn.estimator import G3NNClassifier, answers, fitting, load_model, reserved
from g3nn.estimator.effort import EFFORTS
from g3nn.estimator.members import Network, Propagation
from g3nn.estimator.panel import Candidate, simple_candidates
from g3nn.estimator.problem import FitProblem, read_problem
from g3nn.estimator.search import Search
from g3nn.graph.calibrate import Scaling
from g3nn.graph.given import Given, take_apart
from g3nn.graph.outcomes import Classes
from g3nn.graph.transforms import FeatureTransform
from g3nn.graph.weights import repeated
from g3nn.model.generative import ModelSpec
from g3nn.queries.edge_trust import EdgeTrust
from g3nn.training.progress import Course, Interrupted

THREE = Classes(3)
pytestmark = pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning")


def folds(*counts, share=0.2):
    labels = Classes.read(np.repeat(np.arange(len(counts)), counts), sum(counts), Problems())
    found = Classes.folds(labels, share, np.random.RandomState(0), Problems())
    return labels, found


def panel(**changes):
    how = {"effort": "quick", "epochs": 12, "ensemble": 2, "device": "cpu", "denoise": False}
    return G3NNClassifier(**{**how, **changes})


@pytest.fixture
def both_replicas(monkeypatch):
    """The first stage is passed over quickly, and two replicas of two models train to the end."""
    monkeypatch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], models=2, kept=2, replicas=2, work=99))


class TestFolds:
    def test_they_are_disjoint_and_each_has_its_share_of_every_class(self):
        labels, found = folds(10, 20, 5)
        assert [np.bincount(labels.values[fold]).tolist() for fold in found] == [[2, 4, 1]] * 5
        assert len(np.unique(np.concatenate(found))) == 35

    def test_the_first_is_what_is_held_out_where_there_is_only_one(self):
        labels, found = folds(10, 20, 5)
        alone = Classes.hold_out(labels, 0.2, np.random.RandomState(0), Problems())
        np.testing.assert_array_equal(found[0], alone)

    def test_rare_classes_are_in_other_folds_by_turns(self):
        labels, found = folds(8, 20, 8)
        shares = np.array([np.bincount(labels.values[fold], minlength=3) for fold in found])
        assert shares[0].tolist() == [2, 4, 2]
        assert shares.sum(0).tolist() == [8, 20, 8]
        assert (shares[:, 0] == 0).argmax() != (shares[:, 2] == 0).argmax()

    def test_a_class_always_keeps_a_label_to_train_on(self):
        labels, found = folds(1, 2, 9, share=0.6)
        for fold in found:
            assert (np.bincount(labels.values[fold], minlength=3) < [1, 2, 9]).all()

    def test_a_fold_without_nodes_is_left_out(self):
        _, found = folds(2, 2)
        assert [len(fold) for fold in found] == [2, 2]


class TestSearch:
    def test_no_replica_trains_on_its_own_fold(self, graph, monkeypatch, both_replicas):
        seen = []
        fit = Search._fit

        def watched(search, plan, task, deadline):
            result = fit(search, plan, task, deadline)
            seen.append((search.folds, result))
            return result

        monkeypatch.setattr(Search, "_fit", watched)
        fitted = panel().fit(graph.X, graph.y, graph.edges)
        assert all(len(folds) == 5 for folds, _ in seen)
        assert fitted.n_validation_ == len(seen[0][0][0]) + len(seen[0][0][1])
        np.testing.assert_array_equal(fitted.val_nodes_, np.sort(np.concatenate(seen[0][0][:2])))
        assert not np.isin(fitted.val_nodes_, fitted.task_.train).any()

    @pytest.mark.slow
    def test_validation_nodes_are_answered_by_those_who_did_not_see_their_labels(self, both_replicas, monkeypatch):
        """Features name each node and labels mean nothing: who has seen a label knows it, nobody else does."""
        rng = np.random.default_rng(0)
        y, X = rng.integers(2, size=120), np.eye(120, dtype=np.float32)
        monkeypatch.setattr(FitProblem, "simple", ())
        fitted = panel(epochs=100, weight_decay=0.0).fit(X, y, None)
        decided, given = fitted.val_nodes_, fitted.fitted_.answers.answer.argmax(1)
        assert len(decided) == 48
        assert (given[decided] == y[decided]).mean() < 0.7
        assert (given[fitted.task_.train] == y[fitted.task_.train]).mean() > 0.9

    @pytest.mark.parametrize("changes", [{"model": "gcn"}, {"options": {"label_inputs": True}}])
    def test_one_split_where_somebody_could_see_the_labels_of_others(self, graph, changes):
        fitted = panel(epochs=2, **changes).fit(graph.X, graph.y, graph.edges)
        assert fitted.n_validation_ == 12

    @pytest.mark.slow
    @pytest.mark.parametrize("changes", [{}, {"inductive": True}, {"refit": True}])
    def test_it_is_saved_with_the_answers(self, graph, tmp_path, changes, both_replicas):
        fitted = panel(**changes).fit(graph.X, graph.y, graph.edges)
        fitted.save(tmp_path / "model")
        again = load_model(tmp_path / "model")
        np.testing.assert_array_equal(again.predict_proba(), fitted.predict_proba())
        self._check_without_edges(again.fitted_, refit="refit" in changes)
        X, edges = graph.X[:3] + 1, np.array([[150, 151, 152], [0, 1, 2]])
        np.testing.assert_allclose(again.predict_proba(X, edges), fitted.predict_proba(X, edges), atol=1e-6)

    def _check_without_edges(self, fitted, refit):
        """Without edges others would answer about the validation nodes, so those keep their answers."""
        same = fitted.without(np.zeros(fitted.task.num_edges, dtype=bool))
        np.testing.assert_allclose(same.calibrated(), fitted.calibrated(), atol=1e-5)
        other = fitted.without(np.arange(fitted.task.num_edges) % 2 == 0).calibrated()
        moved = np.abs(other - fitted.calibrated()).max(axis=1) > 1e-3
        assert moved[fitted.task.val].any() == refit
        assert moved.any()


@pytest.fixture(scope="module")
def searched(graph):
    return panel(ensemble=5).fit(graph.X, graph.y, graph.edges)


class TestReserved:
    """With three replicas or more the last folds choose nothing, and calibrate what the others chose."""

    def test_the_last_folds_do_not_validate(self, searched, graph):
        problem = searched.fitted_.problem
        kept = np.concatenate(problem.folds[3:])
        assert not np.isin(kept, searched.val_nodes_).any()
        assert np.isin(kept, searched.fitted_.seen).all()

    def test_their_labels_calibrate(self, searched, graph):
        first, kept = searched.fitted_.answerer, np.concatenate(searched.fitted_.problem.folds[3:])
        asked = replace(searched.task_, labels=(graph.y + 1) % 3)
        doubtful = first.calibrated_by(kept, asked).calibrations["linked"].scaling
        found = first.calibrations["linked"].scaling
        assert doubtful.temperature > found.temperature
        assert doubtful.base.sum() > found.base.sum() + 0.1

    def test_each_is_answered_by_a_replica_that_has_not_seen_its_labels(self, monkeypatch):
        """Features name each node and labels mean nothing: only what has seen a label knows it."""
        rng = np.random.default_rng(0)
        y, X = rng.integers(2, size=120), np.eye(120, dtype=np.float32)
        monkeypatch.setattr(FitProblem, "simple", ())
        fitted = panel(epochs=100, weight_decay=0.0, ensemble=5).fit(X, y, None)
        honest = np.concatenate(fitted.fitted_.problem.folds[3:])
        assert (fitted.fitted_.answers.answer[honest].argmax(1) == y[honest]).mean() < 0.7
        assert len(fitted.fitted_.answerer.networks[0].seeds) == 4
        assert fitted.predict_proba().max(1).mean() < 0.62

    def test_models_of_tables_answer_by_all_labels(self, graph):
        """About a labelled node by the others, as before; about the rest by one model of all."""
        fitted = panel(ensemble=5, model="auto", epochs=2).fit(graph.X, graph.y, graph.edges)
        (table,) = [one for one in fitted.fitted_.answerer.members if not isinstance(one, Network)][:1]
        assert [len(models) for models in table.fitted.models] == [1]
        assert table.whole is None

    def test_few_nodes_that_were_given_to_validate_on_choose_with_folds_of_the_others(self, graph):
        few = panel(ensemble=5).fit(graph.X, graph.y, graph.edges, val=graph.val[:6])
        problem = few.fitted_.problem
        assert np.isin(graph.val[:6], problem.folds[0]).all()
        assert not np.isin(graph.val[:6], few.fitted_.seen).any(), "nothing trains on them"
        assert len(few.val_nodes_) > 6

    def test_enough_nodes_that_were_given_choose_alone(self, graph, monkeypatch):
        monkeypatch.setattr("g3nn.estimator.problem._ENOUGH", 5)
        monkeypatch.setattr(reserved, "_ENOUGH_HONEST", 99)
        many = panel(ensemble=5).fit(graph.X, graph.y, graph.edges, val=graph.val)
        np.testing.assert_array_equal(many.val_nodes_, np.sort(graph.val))
        assert not many.fitted_.problem.folds
        assert {len(one.seeds) for one in many.fitted_.answerer.networks} <= {1}

    def test_reserved_folds_of_the_others_calibrate_unless_they_are_far_fewer(self, graph, monkeypatch):
        monkeypatch.setattr("g3nn.estimator.problem._ENOUGH", 5)
        monkeypatch.setattr(reserved, "_ENOUGH_HONEST", 0.1)
        found = panel(ensemble=5).fit(graph.X, graph.y, graph.edges, val=graph.val)
        problem = found.fitted_.problem
        folds = reserved.reserved_folds(problem)
        assert len(folds) == 2
        assert not np.isin(np.concatenate(folds), problem.val).any()
        scores = found.fitted_.answerer.calibrations["isolated"].scores
        assert len(scores) == sum(map(len, folds))

    def test_an_interrupt_leaves_the_calibration_to_those_that_chose(self, graph, monkeypatch):
        def interrupted(*_):
            raise Interrupted

        monkeypatch.setattr(reserved, "_extended", interrupted)
        with pytest.warns(g3nn.G3NNWarning, match="interrupted: the nodes that chose"):
            fitted = panel(ensemble=5).fit(graph.X, graph.y, graph.edges)
        last = fitted.fitted_.problem.seeds[-2:]
        assert not any(set(one.seeds) & set(last) for one in fitted.fitted_.answerer.networks)
        assert fitted.temperature_ > 0

    def test_weights_of_edges_stay(self, searched):
        fitted = searched.fitted_
        search = fitting._search(fitted.problem, Course(), [])
        place = next(at for at, trial in enumerate(fitted.trials) if trial.complete and not trial.candidate.simple)
        trust = EdgeTrust(0.5, searched.task_.edges, np.full(searched.task_.num_edges, -1.0))
        member = replace(fitting._member(fitted.trials[place], place, search), trust=trust)
        found = reserved.with_reserved(replace(fitted.answerer, members=(member,)), fitted.trials, search)
        assert found.members[0].trust is trust
        assert set(search.seeds[-2:]) <= set(found.members[0].seeds)

    def test_a_fit_that_goes_on_compares_replicas_on_every_fold(self, searched):
        assert not fitting._search(searched.fitted_.problem, Course(), [], goes_on=True).reserved

    def test_two_replicas_are_too_few(self, graph):
        assert reserved.reserved_folds(panel(ensemble=2).fit(graph.X, graph.y, graph.edges).fitted_.problem) == ()


class TestOtherOutcomes:
    """Numbers and tags have folds as well."""

    @pytest.mark.parametrize("outcome", ["real", "counts"])
    def test_a_regressor_with_folds_is_saved(self, graph, outcome, tmp_path):
        y = np.where(graph.y < 0, np.nan, graph.truth * 2.0 + 1)
        fitted = g3nn.G3NNRegressor(outcome=outcome, effort="quick", epochs=5, ensemble=3, device="cpu")
        fitted.fit(graph.X, y, graph.edges)
        assert len(fitted.fitted_.problem.folds) == 5
        np.testing.assert_array_equal(fitted.task_.unit, np.flatnonzero(graph.y >= 0))
        fitted.save(tmp_path / "model")
        again = load_model(tmp_path / "model")
        np.testing.assert_array_equal(again.predict(), fitted.predict())
        np.testing.assert_array_equal(again.predict_interval(), fitted.predict_interval())

    def test_tags_that_are_constant_outside_the_folds_are_loaded(self, tmp_path):
        rng = np.random.default_rng(0)
        X, edges = rng.normal(size=(200, 4)), rng.integers(200, size=(2, 500))
        y = np.full((200, 3), np.nan)
        y[:25] = rng.integers(2, size=(25, 3))
        y[5:25, 2], y[:5, 2] = np.nan, [0, 1, 1, 1, 0]
        fitted = g3nn.G3NNClassifier(effort="quick", epochs=5, ensemble=5, device="cpu")
        fitted.fit(X, y, edges[:, edges[0] != edges[1]])
        fitted.save(tmp_path / "model")
        np.testing.assert_array_equal(load_model(tmp_path / "model").predict_proba(), fitted.predict_proba())

    def test_edges_may_have_weights(self, graph):
        weights = np.random.default_rng(0).uniform(0.5, 2, graph.edges.shape[1])
        fitted = panel(ensemble=3).fit(graph.X, graph.y, graph.edges, weights=weights)
        assert np.isfinite(fitted.predict_proba()).all()


class TestContradicted:
    """Given validation nodes that are unlike the training labels calibrate alone."""

    @pytest.mark.parametrize("enough", [2, 99])
    def test_sets_hold_the_truth_among_nodes_like_those_that_were_given(self, monkeypatch, enough):
        monkeypatch.setattr("g3nn.estimator.problem._ENOUGH", enough)
        rng = np.random.default_rng(0)
        truth = rng.integers(2, size=400)
        noise = np.where(np.arange(400) < 120, 0.3, 3.0)
        X = np.stack([2 * truth - 1 + noise * rng.normal(size=400), rng.normal(size=400)], axis=1)
        y, val = np.where(np.arange(400) < 180, truth, -1), np.arange(120, 180)
        edges = np.stack([np.arange(399), np.arange(1, 400)])
        with pytest.warns(g3nn.G3NNWarning, match="val: the given nodes are predicted worse"):
            fitted = panel(ensemble=5, label_noise=False).fit(X, y, edges, val=val)
        sets = fitted.predict_set(0.1)[180:]
        assert sets[np.arange(220), truth[180:]].mean() > 0.85

    def test_alike_nodes_do_not(self, graph, monkeypatch):
        monkeypatch.setattr("g3nn.estimator.problem._ENOUGH", 2)
        monkeypatch.setattr(reserved, "_ENOUGH_HONEST", 0.1)
        fitted = panel(ensemble=5).fit(graph.X, graph.y, graph.edges, val=graph.val)
        assert not any("predicted worse" in note for note in fitted.notes_)


class TestShares:
    """Where given nodes contradict the shares of classes among training labels, these count accordingly."""

    @staticmethod
    def weights(given):
        y = np.repeat([0, 1], [60, 60])
        val = np.concatenate([np.arange(given[0]), 60 + np.arange(given[1])])
        problems = Problems()
        data = take_apart(Given(np.eye(120), y, np.stack([np.arange(119), np.arange(1, 120)]), val, False), problems)
        return read_problem(panel().get_params(), Classes, data, problems, []).judging_weights, val

    def test_labels_of_a_rarer_class_count_less(self):
        weights, val = self.weights((18, 2))
        train = np.setdiff1d(np.arange(120), val)
        shares = np.array([weights[train[train < 60]].sum(), weights[train[train >= 60]].sum()])
        expected = (np.array([18, 2]) + 2 * np.array([42, 58]) / 100) / 22
        np.testing.assert_allclose(shares / shares.sum(), expected)
        assert (weights[val] == 1).all()

    def test_copies_are_relative_to_all_labels(self):
        weights = np.array([0.4, 1.0, 1.2, 0.4, 1.2])
        first, second = (repeated(np.array(fold), weights, np.arange(5)) for fold in ([0, 1, 2], [3, 4]))
        assert (np.bincount(first).tolist(), np.bincount(second)[3:].tolist()) == ([2, 5, 6], [2, 6])

    def test_shares_that_may_be_chance_are_no_reason(self):
        assert self.weights((11, 9))[0] is None


class TestAsked:
    def test_about_a_fold_its_replica_alone_and_about_the_rest_all(self, learnable):
        trained = g3nn.fit(learnable, "gcn", trials=2, epochs=20, device="cpu")
        held_out = np.zeros((2, learnable.num_nodes), dtype=bool)
        held_out[0, :5], held_out[1, 5:9] = True, True
        network = Network(
            view=None,
            spec=ModelSpec.parse("gcn"),
            objective="elbo",
            hyperparameters={},
            seeds=trained.seeds,
            epochs=20,
            history=trained.history,
            model=trained.model,
            held_out=held_out,
        )
        with torch.no_grad():
            found = network.fitted_answers(learnable).answer
            plain = replace(network, held_out=None).fitted_answers(learnable).answer
        one, two = (THREE.averaged(trained.answers[[place]]) for place in (0, 1))
        np.testing.assert_allclose(found[:5], one[:5], rtol=1e-4)
        np.testing.assert_allclose(found[5:9], two[5:9], rtol=1e-4)
        np.testing.assert_allclose(found[9:], plain[9:], rtol=1e-4)
        assert not np.allclose(found[:5], plain[:5])

    def test_all_together_are_made_as_certain_as_those_that_answer_for_a_judge(self, searched):
        fitted, folds = searched.fitted_, searched.fitted_.problem.folds[3:]
        task = replace(searched.task_, train=fitted.seen, val=fitted.seen[:0])
        search = fitting._search(fitted.problem, Course(), [])
        held_out = search.nodes_of(folds)
        members = [
            replace(one, held_out=np.concatenate([np.zeros_like(held_out[[0] * (len(one.seeds) - 2)]), held_out]))
            for one in fitted.answerer.of(fitted.answerer.networks).members
        ]
        mixture = replace(fitted.answerer, members=tuple(members))
        judges = [fold[0] for fold in folds]
        evened = mixture.evened(task, judges)
        rest = np.flatnonzero((searched.task_.labels < 0) & ~task.isolated)
        alone = [replace(mixture, members=tuple(one.asked_as(judge) for one in members)) for judge in judges]
        usual = np.mean([np.exp(one(task).answer[rest].max(1)).mean() for one in alone])
        together = THREE.scaled(mixture(task).answer[rest], Scaling(evened.certainty[0]))
        assert np.exp(together.max(1)).mean() == pytest.approx(usual, abs=1e-3)
        assert evened.certainty[0] != 1

    def test_answers_that_were_held_back_stay_as_they_were_calibrated(self, searched):
        fitted = searched.fitted_
        held = np.flatnonzero(fitted.held_back)
        answerer = replace(fitted.answerer, certainty=(0.5, 2.0))
        mixture = replace(answerer, members=tuple(replace(one, held_out=_rows(one, held)) for one in answerer.members))
        answers = replace(fitted.answers, answer=fitted.answers.answer.copy())
        later = mixture.asked_by_all().calibrated(mixture.as_asked_by_all(answers))
        np.testing.assert_allclose(later[held], fitted.answerer.calibrated(answers)[held], rtol=1e-6)
        others = np.setdiff1d(np.arange(len(later)), held)
        assert np.abs(later[others] - fitted.calibrated()[others]).max() > 0.01


def _rows(member, nodes):
    found = np.zeros((2, len(member.held_out[0]) if member.held_out is not None else 150), dtype=bool)
    found[0, nodes] = True
    return found


class TestContinue:
    @pytest.mark.slow
    def test_what_was_tried_is_not_tried_again(self, graph, monkeypatch):
        begun = panel(epochs=5).fit(graph.X, graph.y, graph.edges, val=graph.val)
        before, loss = list(begun.panel_), begun.fitted_.val_loss
        tried = []
        short = Search._short
        monkeypatch.setattr(Search, "_short", lambda *given: (tried.append(given[1].key), short(*given))[1])
        assert begun.continue_fit(effort="default") is begun
        after = list(begun.panel_)
        assert len(after) == len(before) + len(tried) > len(before)
        known = [(entry.model, entry.view, entry.options) for entry in before]
        assert [(entry.model, entry.view, entry.options) for entry in after[: len(before)]] == known
        assert begun.fitted_.val_loss < loss + 0.05
        assert begun.get_params()["effort"] == "quick"

    def test_a_model_that_was_loaded_says_what_to_do(self, graph, tmp_path):
        panel(epochs=2).fit(graph.X, graph.y, graph.edges, val=graph.val).save(tmp_path / "model")
        with pytest.raises(InputError, match=r"a model that was loaded.*Fit again with effort='thorough'"):
            load_model(tmp_path / "model").continue_fit()

    def test_nothing_to_continue_and_a_wrong_effort_come_in_one_message(self, graph):
        fitted = panel(epochs=2, model="gcn").fit(graph.X, graph.y, graph.edges, val=graph.val)
        with pytest.raises(InputError, match=r"(?s)a single model.*effort: got 'huge'") as caught:
            fitted.continue_fit(effort="huge", budget=-1)
        assert "budget" in str(caught.value)


class TestSimpleModels:
    """They take part with folds, too."""

    @pytest.fixture
    def linear(self, graph, monkeypatch):
        """A fit in which only a linear model has a weight."""
        _, alone = simple_candidates(Classes, 12, 3, graph.X.shape[1], linked=False)
        monkeypatch.setattr(FitProblem, "simple", (alone,))
        monkeypatch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], models=2, work=99))
        monkeypatch.setattr(answers, "member_weights", lambda log_probs, most=8: np.eye(len(log_probs))[0])
        monkeypatch.setattr(answers.Answerer, "evened", lambda answerer, *_: answerer)
        return panel(epochs=2).fit(graph.X, graph.y, graph.edges)

    def test_a_held_out_node_is_answered_by_the_model_that_has_not_seen_it(self, graph, linear):
        fitted = linear.fitted_
        (member,) = [one for one in fitted.answerer.members if one.weight]
        assert member.name == "linear"
        assert member.held_out is None
        labelled = np.concatenate([fitted.task.train, fitted.task.val])
        others = np.setdiff1d(np.arange(len(graph.y)), labelled)
        for nodes in (*fitted.problem.folds[:2], others):
            rest = np.setdiff1d(labelled, nodes)
            alone = clone(member_estimator(linear)).fit(graph.X[rest], graph.y[rest])
            given = np.exp(fitted.answers.answer[nodes] * member.temperature)
            given /= given.sum(1, keepdims=True)
            np.testing.assert_allclose(given, alone.predict_proba(graph.X[nodes]), atol=5e-3)

    def test_an_update_trains_it_again(self, graph, linear):
        new = np.flatnonzero(graph.y < 0)[:5]
        before = linear.predict_proba()
        linear.update(new, graph.truth[new])
        assert linear.model_ == "linear"
        assert np.isin(new, linear.fitted_.seen).all()
        assert np.abs(linear.predict_proba() - before).max() > 1e-4

    def test_label_propagation_does_not_see_the_labels_of_validation_nodes(self, monkeypatch):
        """Labels mean nothing: who has seen a label knows it, nobody else does."""
        rng = np.random.default_rng(0)
        y, edges = rng.integers(2, size=120), rng.integers(120, size=(2, 240))
        spreading = simple_candidates(Classes, 12, 2, 3, linked=True)[-1]
        assert spreading.name == "label-propagation"
        monkeypatch.setattr(FitProblem, "simple", (spreading,))
        monkeypatch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], models=2, replicas=2, work=99))
        monkeypatch.setattr(answers, "member_weights", lambda log_probs, most=8: np.eye(len(log_probs))[0])
        fitted = panel(epochs=2).fit(rng.normal(size=(120, 3)), y, edges[:, edges[0] != edges[1]])
        assert fitted.model_ == "label-propagation"
        given = fitted.fitted_.answers.answer.argmax(1) == y
        assert given[fitted.val_nodes_].mean() < 0.7
        assert given[fitted.task_.train].mean() > 0.9

    def test_a_model_that_cannot_be_trained_is_left_out(self, graph, monkeypatch):
        broken = Candidate("broken", estimator=LogisticRegression(C=-1.0))
        monkeypatch.setattr(FitProblem, "simple", (broken,))
        monkeypatch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], models=2, work=99))
        with pytest.warns(g3nn.G3NNWarning, match="broken could not be trained and was left out"):
            fitted = panel(epochs=2).fit(graph.X, graph.y, graph.edges)
        assert "broken" not in fitted.model_

    def test_the_best_one_is_named(self, graph, linear):
        assert linear.fitted_.best_simple.model == "linear"
        assert [entry.simple for entry in linear.panel_] == [True, False, False]


def member_estimator(classifier):
    (trial,) = [trial for trial in classifier.fitted_.trials if trial.candidate.estimator is not None]
    return trial.candidate.estimator


def test_what_learns_when_it_is_asked_answers_for_a_fold_by_the_others(learnable):
    """Neither its own label nor those of its fold have a part in the answer for a node; those of other folds do."""
    folds = np.zeros((2, learnable.num_nodes), dtype=bool)
    folds[0, learnable.val[::2]], folds[1, learnable.val[1::2]] = True, True
    view = FeatureTransform.fit("given", learnable.features, np.zeros(learnable.num_features, dtype=bool))
    member = Propagation(view=view, share=0.8, seed=0, held_out=folds)
    found = member.fitted_answers(learnable).answer
    labels = learnable.labels.copy()
    labels[folds[0]] = (labels[folds[0]] + 1) % 3
    other = member.fitted_answers(replace(learnable, labels=labels)).answer
    np.testing.assert_array_equal(other[folds[0]], found[folds[0]])
    assert not np.allclose(other[folds[1]], found[folds[1]])
