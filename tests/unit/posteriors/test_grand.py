from __future__ import annotations

import numpy as np
import pytest
import torch

import g3nn
from g3nn.model.inputs import Inputs
from g3nn.model.networks import BatchNorm
from g3nn.model.posteriors.grand import Grand, GrandOptions
from g3nn.model.replicas import Noise, Replicas, Sizes

SEEDS = torch.tensor([0, 1])


@pytest.fixture
def inputs(learnable) -> Inputs:
    return Inputs.of(learnable, dtype=torch.float64)


def grand(**options) -> Grand:
    return Grand(Sizes(8, 3), Replicas((0, 1)), GrandOptions(**options)).double()


def test_what_travels_makes_no_difference_without_dropout_of_features(inputs):
    hidden, features = (grand(travelling=what, feature_dropout=0.0) for what in ("hidden", "features"))
    for noise in (None, Noise(SEEDS, 4)):
        again = None if noise is None else Noise(SEEDS, 4)
        torch.testing.assert_close(hidden.log_prob(inputs, noise), features.log_prob(inputs, again))


def test_orders_are_averaged(inputs):
    x = torch.randn(2, inputs.n, 3, dtype=torch.float64)
    A = torch.zeros(inputs.n, inputs.n, dtype=torch.float64)
    A[inputs.adjacency.pattern.row.long(), inputs.adjacency.pattern.col.long()] = inputs.adjacency.values[0]
    torch.testing.assert_close(inputs.mixed_orders(x, 2), (x + A @ x + A @ A @ x) / 3)


def test_features_travel_once_where_nothing_is_dropped(inputs):
    mixed = inputs.mixed_features(2)
    torch.testing.assert_close(mixed, inputs.mixed_orders(inputs.x.dense().unsqueeze(0), 2))
    assert inputs.mixed_features(2) is mixed
    assert not torch.allclose(inputs.mixed_features(1), mixed)
    bare = inputs.without_edges_of(np.arange(inputs.n))
    torch.testing.assert_close(bare.mixed_features(2)[0], inputs.x.dense())


def test_a_node_alone_answers_as_if_it_had_no_edges(inputs):
    """With nearly all nodes alone, most answers are those of a graph without edges."""
    options = {"isolated_share": 0.95, "node_dropout": 0.0, "feature_dropout": 0.0, "dropout": 0.0}
    model = grand(**options)
    bare = inputs.without_edges_of(np.arange(inputs.n))
    without, noisy, linked = (
        model.log_prob(bare, None),
        model.log_prob(inputs, Noise(SEEDS, 1)),
        model.log_prob(inputs, None),
    )
    alone = torch.isclose(noisy, without).all(2)
    assert 0.9 < alone.double().mean() < 1
    torch.testing.assert_close(noisy[~alone], linked[~alone])


class TestBatchNorm:
    def test_is_that_of_torch(self):
        ours = BatchNorm(Replicas((0, 1)), 5).double()
        theirs = [torch.nn.BatchNorm1d(5).double() for _ in range(2)]
        for step in range(3):
            x = torch.randn(2, 40, 5, dtype=torch.float64) * 3 + 1
            expected = torch.stack([norm(x[r]) for r, norm in enumerate(theirs)])
            torch.testing.assert_close(ours(x, Noise(SEEDS, step)), expected)
        for norm in theirs:
            norm.eval()
            norm.running_var *= 39 / 40  # torch keeps the unbiased variance
        x = torch.randn(2, 40, 5, dtype=torch.float64)
        seen = torch.stack([norm(x[r]) for r, norm in enumerate(theirs)])
        assert (ours(x, None) - seen).abs().max() < 0.02

    def test_the_best_snapshot_holds_its_averages(self, learnable):
        """An answer from the kept state is the one that was validated."""
        result = g3nn.fit(learnable, "grand", trials=2, normalise=True, order=2, epochs=40, patience=5, progress=False)
        inputs = Inputs.of(learnable)
        with torch.no_grad():
            log_prob = result.model.predict_log_prob(inputs)
        rows = log_prob[:, inputs.val].gather(2, inputs.labels[inputs.val].view(1, -1, 1).expand(2, -1, 1))
        np.testing.assert_allclose(-rows.mean((1, 2)).numpy(), result.val_loss, rtol=1e-4)
        assert (result.best_epoch < result.epochs).any()
