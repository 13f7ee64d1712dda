"""Columns of edges as one more factor, by enumerating every labelling."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_graph import CLASSES, HIDDEN, NODES, labellings
from torch.distributions import Normal
from typed_graph import EXACT, PAIRS, TYPES, log_graph, made, with_types

from g3nn.graph.marks import Marks
from g3nn.model.inputs import Inputs
from g3nn.model.marks import EdgeMarks
from g3nn.model.pairs import PairSource
from g3nn.model.replicas import Noise

VALUES = np.array([[1.2, 0], [-0.7, 1], [0.4, np.nan], [2.0, 2], [np.nan, 1], [-1.5, 0], [0.3, 2]])
"""A number and one of three categories, on each of the edges of two types."""


@pytest.fixture
def marks():
    return Marks.of(PAIRS, VALUES, (0, 3), TYPES, {"in"})


@pytest.fixture
def learned(marks, monkeypatch):
    """The factor with tables that are drawn once and then do not depend on beliefs, as of a model whose parameters are
    known: what the distribution of each column is for each pair of classes."""
    found, tables = EdgeMarks.of(marks, torch.device("cpu"), torch.float64), {}
    generator = torch.Generator().manual_seed(2)
    for column in found.columns:
        noise = torch.rand(2, CLASSES, CLASSES, len(column.base), generator=generator, dtype=torch.float64)
        noise = (noise + noise.transpose(1, 2)) / 2 if column.mirrored else noise
        moments = noise + 0.1
        if column.number:
            mean = noise[..., 0] * 3 - 1.5
            moments = torch.stack([torch.ones_like(mean), mean, mean**2 + noise[..., 1] + 0.2], dim=3)
        moments = moments / (moments[..., :1] if column.number else moments.sum(3, keepdim=True))
        tables[id(column)] = moments, column._natural(moments, torch.zeros(()))
    monkeypatch.setattr("g3nn.model.marks._Column.table", lambda self, q: tables[id(self)][1])
    return found, tables


def log_marks(found, tables, y):
    """(R,): log p of all known values given all labels, one by one, relative to each column over all edges."""
    total = torch.zeros(2, dtype=torch.float64)
    for column in found.columns:
        moments, _ = tables[id(column)]
        for e, (i, j) in enumerate(zip(column.i.tolist(), column.j.tolist(), strict=True)):
            one = moments[:, y[i], y[j]]
            if column.number:
                m, mean, scale = column.f[e, 1], one[:, 1], (one[:, 2] - one[:, 1] ** 2).sqrt()
                total += (Normal(mean, scale).log_prob(m) - Normal(0.0, 1.0).log_prob(m)).double()
            else:
                code = int(column.f[e].argmax())
                total += (one[:, code] / column.base[code]).log()
    return total


def test_expectation_is_the_sum_over_both_labels_and_missing_values_add_nothing(learned):
    found, tables = learned
    assert [(len(column.f), column.mirrored) for column in found.columns] == [
        (3, True),
        (3, False),
        (2, True),
        (4, False),
    ]
    q = torch.rand(2, NODES, CLASSES, generator=torch.Generator().manual_seed(0), dtype=torch.float64).softmax(2)
    expected = torch.zeros(2, dtype=torch.float64)
    for y in itertools.product(range(CLASSES), repeat=NODES):
        expected += q[:, range(NODES), y].prod(1) * log_marks(found, tables, y)
    torch.testing.assert_close(found.expected_log_prob(q), expected)


def test_bound_is_below_log_evidence_and_the_gap_is_the_kl(task, marks, learned):
    found, tables = learned
    task = replace(with_types(task), marks=marks)
    inputs, model = Inputs.of(task, dtype=torch.float64), made("blsm-gcn", task)
    inputs.__dict__["marks"] = found
    assert model.marked
    log_p, log_f = model.prior.log_prob(inputs, None), model.posterior.log_prob(inputs, None)
    log_q = model.with_marks(log_f, inputs)
    assert not torch.allclose(log_q, log_f)
    joint = torch.stack(
        [
            log_graph(model, inputs, y) + log_marks(found, tables, y) + sum(log_p[:, i, y[i]] for i in range(NODES))
            for y in labellings()
        ]
    )
    evidence = joint.logsumexp(0)
    model.posterior.log_prob = lambda *_: log_f
    model.prior.log_joint = lambda *_: (log_p, None)
    bound = EXACT.terms(model, inputs, PairSource(inputs), Noise(torch.tensor([5, 6]), 0)).bound
    q = torch.stack([sum(log_q[:, i, y[i]] for i in HIDDEN) for y in labellings()])
    assert (bound < evidence).all()
    torch.testing.assert_close(evidence - bound, (q.exp() * (q - (joint - evidence))).sum(0))


def test_what_is_heard_is_the_mean_field_step(learned):
    """Each node's answer times exp E log p of its marks, where its neighbours are as the network says."""
    found, _ = learned
    log_f = torch.rand(2, NODES, CLASSES, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    log_f = log_f.log_softmax(2)
    for node in range(NODES):
        step = log_f[:, node].clone()
        for k in range(CLASSES):
            fixed = log_f.exp()
            fixed[:, node] = torch.eye(CLASSES, dtype=torch.float64)[k]
            step[:, k] += found.expected_log_prob(fixed)
        torch.testing.assert_close(found.heard(log_f)[:, node], step.log_softmax(1))


def test_permuting_classes_permutes_the_answer(marks):
    found = EdgeMarks.of(marks, torch.device("cpu"), torch.float64)
    log_f = 6 * torch.rand(2, NODES, CLASSES, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    log_f, order = log_f.log_softmax(2), [2, 0, 1]
    torch.testing.assert_close(found.heard(log_f[:, :, order]), found.heard(log_f)[:, :, order])
    other = found.expected_log_prob(log_f[:, :, order].exp())
    torch.testing.assert_close(other, found.expected_log_prob(log_f.exp()))


def test_tables_are_the_closed_form_and_are_flat_by_chance():
    rng = np.random.default_rng(0)
    y, pairs = rng.integers(3, size=200), rng.integers(200, size=(2, 5000))
    mean = np.array([[0.0, 1.0, 2.0], [1.0, -1.0, 0.5], [2.0, 0.5, 3.0]])
    q = torch.eye(3, dtype=torch.float64)[torch.from_numpy(y)][None]
    amount = mean[y[pairs[0]], y[pairs[1]]] + rng.normal(size=5000)
    (column,) = EdgeMarks.of(Marks.of(pairs, amount), torch.device("cpu"), torch.float64).columns
    _, slope, bend = column.table(q)[0].unbind(2)
    variance = 1 / (1 - 2 * bend)
    z = (mean - amount.mean()) / amount.std()
    torch.testing.assert_close(slope * variance, torch.from_numpy(z), atol=0.06, rtol=0)
    torch.testing.assert_close(variance, torch.full_like(variance, 1 / amount.var()), atol=0.06, rtol=0)
    flat = EdgeMarks.of(Marks.of(pairs, rng.permutation(amount)), torch.device("cpu"), torch.float64)
    assert flat.columns[0].table(q).abs().max() < 0.05


def test_without_marks_nothing_changes(task, inputs, source):
    marked = replace(task, marks=Marks.of(task.edges, np.zeros(task.num_edges)))
    plain, other = made("sbm-gcn", task), made("sbm-gcn", marked)
    assert not plain.marked
    unmarked, silent, same = (
        EXACT.terms(model, one, source, Noise(torch.tensor([5, 6]), 0)).graph
        for model, one in ((plain, inputs), (other, Inputs.of(marked, dtype=torch.float64)), (other, inputs))
    )
    assert torch.equal(unmarked, same)
    # A column that is always the same says nothing.
    torch.testing.assert_close(silent, unmarked)
