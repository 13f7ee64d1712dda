"""The bound of a graph with types of edges and kinds of nodes, by enumerating every labelling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_graph import HIDDEN, NODES, OBSERVED, labellings
from typed_graph import EXACT, log_graph, made, with_types

from g3nn.base.errors import Problems
from g3nn.graph.relations import read_relations
from g3nn.model.inputs import Inputs
from g3nn.model.pairs import BetweenKinds, PairSource
from g3nn.model.replicas import Noise


@pytest.fixture
def typed(task):
    return with_types(task)


def test_both_types_are_read(typed):
    relations = typed.relations
    assert relations.names == ("cites", "in")
    assert relations.directed.tolist() == [False, True]
    source = PairSource(Inputs.of(typed, dtype=torch.float64))
    cites, within = source.by_type
    assert isinstance(within, BetweenKinds)
    assert (cites.num_edges, cites.num_non_edges) == (3, 3)
    assert (within.num_edges, within.num_non_edges) == (4, 4)
    assert {(0, 5), (1, 5), (2, 4), (3, 4)} == set(zip(*map(torch.Tensor.tolist, pairs_of(within)), strict=True))


def pairs_of(source):
    found = source.all_non_edges
    return found.i, found.j


@pytest.mark.parametrize("name", ["sbm-gcn", "dcsbm-gcn", "lsm-gcn", "blsm-gcn"])
def test_bound_is_below_log_evidence_and_the_gap_is_the_kl(name, typed):
    inputs, model = Inputs.of(typed, dtype=torch.float64), made(name, typed)
    noise, log_p = Noise(torch.tensor([5, 6]), 0), model.prior.log_prob(inputs, None)
    log_q = model.posterior.log_prob(inputs, None)
    joint = torch.stack(
        [log_graph(model, inputs, y) + sum(log_p[:, i, y[i]] for i in range(NODES)) for y in labellings()]
    )
    evidence = joint.logsumexp(0)
    # Dropout is off, so that q is the one above.
    model.posterior.log_prob = lambda *_: log_q
    model.prior.log_joint = lambda *_: (log_p, None)
    bound = EXACT.terms(model, inputs, PairSource(inputs), noise).bound
    q = torch.stack([sum(log_q[:, i, y[i]] for i in HIDDEN) for y in labellings()])
    gap = (q.exp() * (q - (joint - evidence))).sum(0)
    assert (bound < evidence).all()
    assert len(OBSERVED) + len(HIDDEN) == NODES
    torch.testing.assert_close(evidence - bound, gap)


def test_samples_between_kinds_are_unbiased(typed):
    within = PairSource(Inputs.of(typed, dtype=torch.float64)).by_type[1]
    drawn = within.sample_non_edges(Noise(torch.tensor([1, 2]), 0), 40_000)
    free = (drawn.weight > 0).double().mean(1)
    torch.testing.assert_close(free, torch.full((2,), 0.5, dtype=torch.float64), atol=0.01, rtol=0)
    torch.testing.assert_close(drawn.weight.mean(1), torch.ones(2, dtype=torch.float64), atol=0.02, rtol=0)
    first = ((drawn.i == 0) & (drawn.j == 5)).double()
    share = (first * drawn.weight).mean(1)
    torch.testing.assert_close(share, torch.full((2,), 0.25, dtype=torch.float64), atol=0.01, rtol=0)


def test_a_single_type_is_the_graph_without_types(task):
    """The same likelihood, pairs and parameters, whether the only type has a name or not."""
    relations = read_relations(tuple(task.edges), NODES, False, Problems(), types=["edge"] * task.num_edges)
    assert not relations.directed.any()
    alone, named = (
        Inputs.of(task, dtype=torch.float64),
        Inputs.of(replace(task, relations=relations), dtype=torch.float64),
    )
    plain, typed = made("blsm-gcn", task), made("blsm-gcn", named.task)
    typed.likelihood.parts[0].load_state_dict(plain.likelihood.state_dict())
    typed.posterior.load_state_dict(plain.posterior.state_dict())
    typed.prior.load_state_dict(plain.prior.state_dict())
    both = [
        EXACT.terms(model, inputs, PairSource(inputs), Noise(torch.tensor([5, 6]), 0)).graph
        for model, inputs in ((plain, alone), (typed, named))
    ]
    torch.testing.assert_close(*both)


def test_nodes_without_any_edge_may_be_left_out_of_every_type(typed):
    """A paper that cites nothing but is in a venue stays."""
    fewer = typed.with_edges(~(typed.edges == 2).any(axis=0) & ~(typed.edges == 4).any(axis=0))
    alone = set(np.flatnonzero(fewer.isolated).tolist())
    assert alone
    whole, left = (PairSource(Inputs.of(fewer, dtype=torch.float64), how).by_type for how in ("observed", "missing"))
    for every, some in zip(whole, left, strict=True):
        pairs = pairs_of(every), pairs_of(some)
        kept, rest = (set(zip(*map(torch.Tensor.tolist, ends), strict=True)) for ends in (pairs[1], pairs[0]))
        assert kept == {pair for pair in rest if not alone & {*pair}}
