"""Trainings in batches: what they give, what they refuse, and that they depend on nothing but the seed."""

from __future__ import annotations

import numpy as np
import pytest

import g3nn
from g3nn.base.errors import InputError
from g3nn.training.stack import HISTORY_NAMES


@pytest.fixture(scope="module")
def task():
    return g3nn.synthetic(nodes=400, classes=3, degree=8, features=12, labels_per_class=20, val=60, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gcn", "sbm-sage", "dcsbm-gat", "lsm-mlp"])
def test_batches_are_about_as_good_as_the_whole_graph(task, model):
    whole, batches = (g3nn.fit(task, model, epochs=60, seed=3, device="cpu", batch=size) for size in (0, 40))
    assert batches.test_score[0] > whole.test_score[0] - 0.06
    assert np.isfinite(batches.history).all()


def test_a_trial_does_not_depend_on_those_beside_it(task):
    both = g3nn.fit(task, "sbm-gcn", epochs=5, trials=2, seed=3, device="cpu", batch=25, fan_out="4/3")
    alone = g3nn.fit(task, "sbm-gcn", epochs=5, trials=1, seed=4, device="cpu", batch=25, fan_out="4/3")
    np.testing.assert_array_equal(both.history[:, :, 1], alone.history[:, :, 0])


def test_the_kept_parameters_are_those_of_the_best_epoch(task):
    short = g3nn.fit(task, "gcn", epochs=30, seed=5, device="cpu", batch=20, lr=0.2)
    best = int(short.best_epoch[0])
    assert best < 30
    again = g3nn.fit(task, "gcn", epochs=best, seed=5, device="cpu", batch=20, lr=0.2)
    np.testing.assert_array_equal(again.answers, short.answers)


@pytest.mark.parametrize("trials", [{"trials": 2}, {"ensemble": 2}])
def test_a_result_judges_validation_nodes_by_all_their_neighbours(task, trials):
    found = g3nn.fit(task, "gcn", epochs=20, seed=3, device="cpu", batch=30, fan_out="1/1", **trials)
    log_prob = found.answers.numpy()[:, task.val]
    np.testing.assert_allclose(found.val_score, (log_prob.argmax(2) == task.labels[task.val]).mean(1), rtol=1e-6)
    of_label = np.take_along_axis(log_prob, task.labels[task.val][None, :, None], axis=2)
    np.testing.assert_allclose(found.val_loss, -of_label.mean((1, 2)), rtol=1e-5)
    assert (np.abs(found.val_loss - np.nanmin(found.history[:, -2], axis=0)) > 1e-3).all(), "one is not like all"


@pytest.mark.slow
@pytest.mark.parametrize("outcome", ["real", "tags"])
def test_other_outcomes_are_trained_in_batches_too(outcome):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((120, 5))
    y = x[:, :2] if outcome == "real" else (x[:, :2] > 0).astype(float)
    edges = g3nn.synthetic(nodes=120, degree=4, val=20, labels_per_class=5).edges
    task = g3nn.NodeTask.build(x, edges, y, np.arange(60), np.arange(60, 90), np.arange(90, 120), outcome=outcome)
    found = g3nn.fit(task, "mlp" if outcome == "real" else "sbm-sage", epochs=40, device="cpu", batch=30)
    assert np.isfinite(found.test_score).all()


@pytest.mark.filterwarnings("ignore:the graph has no edges")
def test_a_graph_without_edges_is_trained_in_batches_too(task):
    bare = task.with_edges(np.zeros(task.num_edges, dtype=bool))
    found = g3nn.fit(bare, "sbm-gcn", epochs=3, device="cpu", batch=30)
    assert np.isfinite(found.history).all()
    assert (found.history[:, 0] == 0).all(), "the graph term"


def test_weights_of_labels_count(task):
    from g3nn.training.plan import Plan

    plan = Plan.check("gcn", "elbo", 1, 0, "mlp", "cpu", {"batch": 100, "epochs": 3})
    some = np.ones(task.num_nodes)
    some[task.train[task.labels[task.train] == 0]] = 1e-6
    equal, without = plan.fit(task, label_weights=np.ones(task.num_nodes)), plan.fit(task, label_weights=some)
    np.testing.assert_allclose(equal.history, plan.fit(task).history, rtol=1e-5)
    assert without.probabilities[..., 0].mean() < equal.probabilities[..., 0].mean()


def test_what_cannot_be_trained_in_batches_is_refused_in_one_message(task):
    with pytest.raises(InputError) as found:
        g3nn.fit(
            task, "sbm-gmnn", device="cpu", batch=32, consistency_weight=1.0, validation="isolated", prior="gaussian"
        )
    for word in ("gmnn", "batch=0", "consistency_weight", "validation", "gaussian"):
        assert word in str(found.value)


def test_each_step_needs_a_number_of_neighbours(task):
    with pytest.raises(InputError, match=r"fan_out: got '5/5'; expected 10 numbers"):
        g3nn.fit(task, "appnp", device="cpu", batch=32, fan_out="5/5")


@pytest.mark.parametrize("fan_out", ["", "5/", "5,5", "-1/2", 5, "5/x"])
def test_numbers_of_neighbours_are_checked(task, fan_out):
    with pytest.raises(InputError, match="fan_out"):
        g3nn.fit(task, "gcn", device="cpu", batch=32, fan_out=fan_out)


def test_classes_are_kept_even_in_batches_too(task):
    uneven = np.concatenate([task.train[task.labels[task.train] == k][: 20 - 9 * k] for k in range(3)])
    task = task.with_split(np.sort(uneven), task.val, task.test)
    options = {"epochs": 20, "seed": 3, "device": "cpu", "batch": 10}
    plain, even = (g3nn.fit(task, "gcn", **options, evenness_weight=weight) for weight in (0.0, 5.0))
    shares = [result.answers.exp()[0].mean(0).max() for result in (plain, even)]
    assert shares[1] < shares[0] - 0.02
    place = HISTORY_NAMES.index("evenness")
    assert (even.history[:, place] > 0).all()
    assert not plain.history[:, place].any()
