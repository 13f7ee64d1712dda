"""What a label would change elsewhere: one round of messages from every candidate, for every label it may have."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from g3nn.queries.messages import PSEUDO_EDGES, NoisyEdges

_ROUNDS, _TABLES = 12, 3
_ARCS_AT_ONCE = 1 << 22
"""Cells of the tables (arcs, K, K) that are looked at in one go."""


def expected_reduction(beliefs: np.ndarray, adjacency: sp.csr_array, candidates: np.ndarray) -> np.ndarray:
    """(m,): how much squared error the label of each candidate is expected to remove from its neighbours.

    Under a block model of the edges the labels of two linked nodes u, v have a joint distribution proportional to
    a_k M_kl b_l, where M says how much more often classes k and l are linked than by chance. M comes from the beliefs
    at both ends of all edges; a and b are such that each end keeps its belief. With the label k of u known, v is
    believed to be J_kl / p_u(k); the squared error sum_l p_v(l) (1 - p_v(l)) falls, on average over k, by
    sum_kl J_kl^2 / p_u(k) - sum_l p_v(l)^2, which is never below zero. The error of u itself does not count: it is one
    node of many, and would lead to those that are unlike any other.

    What is approximated: messages go one step, neighbours count separately, M and the network stay as they are.

    beliefs: (n, K), one-hot at labelled nodes, which have nothing to gain. adjacency: (n, n), weights of the edges.
    """
    mixing = class_mixing(beliefs, adjacency)
    own = 1.0 - (beliefs**2).sum(1)
    rows = adjacency[candidates].tocoo()
    gains = np.zeros(len(candidates))
    K = beliefs.shape[1]
    size = max(1, _ARCS_AT_ONCE // (K * K))
    open_ends = own[rows.col] > 1e-9
    source, target, weight = rows.row[open_ends], rows.col[open_ends], rows.data[open_ends]
    for start in range(0, len(source), size):
        here = slice(start, start + size)
        found = _change(beliefs[candidates[source[here]]], beliefs[target[here]], mixing)
        gains += np.bincount(source[here], np.minimum(weight[here], 1.0) * found, minlength=len(candidates))
    return gains


def class_mixing(beliefs: np.ndarray, adjacency: sp.csr_array) -> np.ndarray:
    """(K, K): how much more often nodes of two classes are linked than by chance, from what is believed of both ends.

    Soft beliefs blur it: each round takes for an edge the joint belief that the last table implies.
    """
    arcs, table = adjacency.tocoo(), np.ones((beliefs.shape[1], beliefs.shape[1]))
    if not adjacency.sum() > 0:
        return table
    noisy = NoisyEdges(np.stack([arcs.row, arcs.col]), len(beliefs))
    ends, share = np.concatenate([beliefs[arcs.row], beliefs[arcs.col]]), np.asarray(adjacency.sum(1)).ravel() @ beliefs
    for _ in range(_TABLES):
        table = noisy.mixing(ends, table, arcs.data, PSEUDO_EDGES, share / share.sum())
    return table


def _change(left: np.ndarray, right: np.ndarray, mixing: np.ndarray) -> np.ndarray:
    """(A,): how much the expected squared error at `right` (A, K) falls when the label at `left` (A, K) is known."""
    tiny = 1e-12
    a, b = np.ones_like(left), np.ones_like(right)
    for _ in range(_ROUNDS):
        a = left / np.maximum(b @ mixing.T, tiny)
        b = right / np.maximum(a @ mixing, tiny)
    joint = a[:, :, None] * mixing[None] * b[:, None, :]
    known = (joint**2 / np.maximum(joint.sum(2, keepdims=True), tiny)).sum((1, 2))
    return np.maximum(known - (right**2).sum(1), 0.0)
