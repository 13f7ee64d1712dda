"""How candidates are tried, and which of them are trained to the end."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from g3nn.base.errors import DeviceMemoryError, G3NNWarning, TrainingError
from g3nn.estimator.effort import EFFORTS
from g3nn.estimator.panel import Candidate, usable
from g3nn.estimator.search import Search
from g3nn.graph.task import NodeTask
from g3nn.graph.transforms import FeatureTransform
from g3nn.training.plan import Plan

COMMON = {"hidden": 8, "lr": 0.01, "weight_decay": 5e-4, "epochs": 12, "patience": 12, "calibrated": True}
GCN, MLP = Candidate("gcn", "elbo", {}), Candidate("mlp", "elbo", {})
SBM = Candidate("sbm-gcn", "elbo", {"graph_weight": 0.5})
WILD, LAZY = Candidate("gcn", "elbo", {"lr": 1e30}), Candidate("gcn", "elbo", {"lr": 1e-9})
EFFORT = replace(EFFORTS["default"], varied=0)


def views(task: NodeTask, *names: str) -> dict[str, FeatureTransform]:
    every = np.ones(task.num_features, dtype=bool)
    return {name: FeatureTransform.fit(name, task.features, every) for name in names}


@pytest.fixture
def search(learnable):
    task = learnable.without_test()
    return Search(task, views(task, "given"), COMMON, "cpu", (5, 6, 7, 8), EFFORT)


class TestOneModel:
    def test_it_has_all_replicas_and_they_are_those_of_a_stack_of_their_own(self, search):
        trial = search.alone(GCN)
        alone = GCN.plan(COMMON, search.seeds, "cpu").fit(search.task, False)
        assert trial.learned.seeds == search.seeds
        np.testing.assert_allclose(trial.learned.answers.numpy(), alone.answers.numpy(), atol=1e-6)

    def test_it_is_trained_on_the_view_that_suits_it(self, search):
        """A constant factor of a millionth leaves hardly anything to learn from."""
        given = views(search.task, "given")["given"]
        faint = replace(given, name="columns", weights=np.full(search.task.num_features, 1e-6))
        two = replace(search, views={"columns": faint, "given": given}, common={**COMMON, "epochs": 60})
        assert two.alone(GCN).candidate.view == "given"

    def test_an_entry_says_how_good_the_mean_of_the_replicas_is(self, search):
        trial = search.alone(replace(GCN, options={"dropout": 0.5}))
        val, labels = search.task.val, search.task.labels[search.task.val]
        mean, entry = trial.learned.probabilities[:, val].mean(0), trial.entry
        assert entry.val_score == pytest.approx((mean.argmax(1) == labels).mean())
        assert entry.val_loss <= -np.log(mean[np.arange(labels.size), labels]).mean() + 1e-3
        assert (entry.objective, entry.options, entry.view, entry.replicas) == ("elbo", {"dropout": 0.5}, "given", 4)

    def test_if_it_diverges_there_is_no_answer(self, search):
        with (
            pytest.warns(G3NNWarning, match="became NaN"),
            pytest.raises(TrainingError, match="no model could be trained"),
        ):
            search.alone(WILD)

    def test_replicas_that_diverged_are_left_out(self, search):
        result = search.alone(GCN).learned
        assert usable(result) is result
        broken = replace(result, val_loss=np.array([1.0, np.nan, np.inf, 2.0]))
        assert usable(broken).seeds == (5, 8)


class TestPanel:
    def test_every_candidate_is_tried_and_the_best_are_trained_to_the_end(self, search):
        trials = search.panel([MLP, GCN, SBM])
        assert [trial.candidate.name for trial in trials] == ["mlp", "gcn", "sbm-gcn"]
        best = min(trials, key=lambda trial: trial.loss)
        assert best.complete
        assert best.replicas == EFFORT.replicas
        assert all(math.isfinite(trial.loss) for trial in trials)

    def test_every_model_is_tried_on_the_best_views_first(self, search):
        several = replace(search, views=views(search.task, "length", "given"), effort=replace(EFFORT, views=2))
        tried = [(trial.candidate.name, trial.candidate.view) for trial in several.panel([MLP, GCN])]
        assert [name for name, _ in tried[:2]] == ["mlp", "gcn"]
        assert {name for name, _ in tried[2:]} == {"mlp", "gcn"}
        assert tried[0][1] == tried[1][1] != tried[2][1] == tried[3][1]

    def test_only_the_best_models_are_tried_on_other_views(self, search):
        effort = replace(EFFORT, views=2, leading=1)
        trials = replace(search, views=views(search.task, "length", "given"), effort=effort).panel([LAZY, GCN])
        assert len(trials) == 3
        first, again = trials[:2], trials[2]
        assert (again.candidate.name, again.candidate.options) == (GCN.name, GCN.options)
        assert again.candidate.view != first[0].candidate.view

    def test_the_best_are_varied(self, search):
        trials = replace(search, effort=replace(EFFORT, varied=1)).panel([GCN])
        assert [trial.candidate.options for trial in trials[1:]] == [one.options for one in GCN.variants()]

    def test_replicas_are_the_same_whether_trained_one_by_one_or_in_a_stack(self, search):
        one, stack = search.panel([SBM])[0], replace(search, at_once=4).panel([SBM])[0]
        assert one.learned.seeds == stack.learned.seeds == (5, 6, 7)
        np.testing.assert_allclose(one.learned.answers.numpy(), stack.learned.answers.numpy(), atol=1e-5)

    def test_a_replica_that_has_stopped_early_is_not_trained_again(self, search):
        (trial,) = replace(search, common={**COMMON, "patience": 2}).panel([LAZY])
        assert trial.learned.status[0] == "stopped"
        assert trial.learned.seeds == (5, 6, 7)

    def test_what_diverges_is_left_out(self, search):
        with pytest.warns(G3NNWarning, match="became NaN"):
            wild, good = search.panel([WILD, GCN])
        assert (wild.loss, wild.replicas, good.complete) == (math.inf, 0, True)
        with pytest.warns(G3NNWarning), pytest.raises(TrainingError, match="no model could be trained"):
            search.panel([WILD, WILD])

    def test_what_does_not_fit_into_memory_is_left_out_unless_it_was_asked_for(self, search, monkeypatch):
        train = Plan.fit

        def small_memory(plan, *how):
            if plan.spec.name == "mlp":
                raise DeviceMemoryError("too small")
            return train(plan, *how)

        monkeypatch.setattr(Plan, "fit", small_memory)
        large, good = search.panel([MLP, GCN])
        assert "mlp does not fit into memory: too small" in search.notes
        assert (large.loss, large.replicas, large.complete, good.complete) == (math.inf, 0, False, True)
        with pytest.raises(DeviceMemoryError, match="too small"):
            search.alone(MLP)

    def test_a_model_of_scikit_learn_is_a_candidate_like_any_other(self, search):
        table = Candidate("linear", estimator=LogisticRegression(), neighbours=True)
        network, tabular = search.panel([MLP, table])
        assert tabular.complete
        assert tabular.entry.model == "linear"
        assert tabular.loss < network.loss


class TestEffort:
    def test_at_least_one_candidate_is_trained_to_the_end_however_little_may_be_spent(self, search):
        for effort in (replace(EFFORT, most=1e-9), replace(EFFORT, seconds=1e-9)):
            trials = replace(search, effort=effort).panel([MLP, GCN, SBM])
            assert len(trials) == 1
            assert trials[0].complete

    def test_the_same_work_takes_the_same_decisions(self, search):
        def tried():
            trials = replace(search, effort=replace(EFFORT, most=1.5e6)).panel([MLP, GCN, SBM, GCN, SBM, GCN, SBM])
            return [(trial.candidate.name, trial.loss, trial.replicas) for trial in trials]

        first = tried()
        assert 1 < len(first) < 7
        assert first == tried()

    def test_time_that_is_over_ends_a_training(self, search):
        common = {**COMMON, "epochs": 100_000, "patience": 100_000}
        long = replace(search, common=common, effort=replace(EFFORT, seconds=0.5))
        (trial,) = long.panel([GCN])
        assert trial.complete
        assert 0 < trial.entry.epochs < 100_000

    def test_on_a_large_graph_trainings_are_as_short_as_the_work_demands(self, search):
        long = replace(search, common={**COMMON, "epochs": 500, "patience": 500})
        large = replace(long, effort=replace(EFFORT, most=1.0, large=True)).panel([GCN, SBM])
        assert [trial.entry.epochs for trial in large] == [100]
        (small,) = replace(long, effort=replace(EFFORT, most=1.0)).panel([GCN, SBM])
        assert small.entry.epochs > 100

    def test_a_model_that_was_asked_for_takes_as_long_as_it_takes(self, search):
        long = replace(search, common={**COMMON, "epochs": 150, "patience": 150})
        assert replace(long, effort=replace(EFFORT, most=1.0, large=True)).alone(GCN).entry.epochs == 150

    def test_there_is_room_for_four_models_in_what_may_be_spent_on_them(self, learnable):
        spent = replace(EFFORT, most=1e9, large=True)
        cheap, dear = (spent.short_epochs(price, learnable, 10**9) for price in (1.0, 2.0))
        assert cheap == pytest.approx(2 * dear, abs=2)
        for _ in range(4):
            assert spent.allows(0.36)
            spent.charge(1.0, cheap, learnable)
        assert spent.worked == pytest.approx(0.36e9, rel=1e-3)
        assert spent.long_epochs(1.0, learnable, 10**9) == pytest.approx(0.64 / 0.09 * cheap, rel=1e-3)

    def test_a_larger_graph_may_take_more_but_not_in_proportion(self, learnable):
        effort = EFFORTS["default"]
        small = effort.limited(None, learnable, on_cpu=True).most
        twice = replace(effort, work=2 * effort.work).limited(None, learnable, on_cpu=True).most
        assert small == pytest.approx(twice / 2)
        assert 25 < effort.limited(30, learnable, on_cpu=True).seconds < 30
        assert effort.limited(None, learnable, on_cpu=False).allows(1.0)
