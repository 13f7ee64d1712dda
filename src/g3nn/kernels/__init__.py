"""Differentiable operations with a leading replica dimension, in fast CPU and GPU kernels and in plain torch."""

from g3nn.kernels.arguments import Draw, Scales
from g3nn.kernels.nodes import (
    NodeSums,
    attend,
    dropout,
    dropped_linear,
    linear,
    node_terms,
    rectify,
    spmm,
    spmm_powers,
    uniform_bits,
    uniform_integers,
)
from g3nn.kernels.pairs import (
    FreePairs,
    expected_logistic,
    gather,
    log_tag_rate,
    logistic_bound,
    pair_dot,
    pair_sum,
    tag_mean,
    tag_moments,
)
from g3nn.kernels.pattern import Pattern

__all__ = [
    "Draw",
    "FreePairs",
    "NodeSums",
    "Pattern",
    "Scales",
    "attend",
    "dropout",
    "dropped_linear",
    "expected_logistic",
    "gather",
    "linear",
    "log_tag_rate",
    "logistic_bound",
    "node_terms",
    "pair_dot",
    "pair_sum",
    "rectify",
    "spmm",
    "spmm_powers",
    "tag_mean",
    "tag_moments",
    "uniform_bits",
    "uniform_integers",
]
