"""Differentiable operations with a leading replica dimension, in fast CPU and GPU kernels and in plain torch."""

from g3nn.kernels.arguments import Draw, Scales
from g3nn.kernels.attention import attend
from g3nn.kernels.dense import dropped_linear, linear, rectify
from g3nn.kernels.dropout import dropout, uniform_bits, uniform_integers
from g3nn.kernels.free import FreePairs
from g3nn.kernels.logistic import expected_logistic, logistic_bound
from g3nn.kernels.node import NodeSums, node_terms
from g3nn.kernels.pair import gather, pair_dot, pair_sum
from g3nn.kernels.pattern import Pattern
from g3nn.kernels.product import spmm
from g3nn.kernels.tags import log_tag_rate, tag_mean, tag_moments

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
    "tag_mean",
    "tag_moments",
    "uniform_bits",
    "uniform_integers",
]
