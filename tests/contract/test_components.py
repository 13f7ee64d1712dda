"""What every registered component owes the rest of the program. A new component is tested by being registered.

All numbers are float64. n nodes, K classes, R replicas, P pairs.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.special import log_softmax
from torch import Tensor

from g3nn.inputs import Inputs
from g3nn.likelihoods import LIKELIHOODS, Pairs
from g3nn.model import GenerativeModel, ModelSpec, serves
from g3nn.options import Rule
from g3nn.outcomes import OUTCOMES
from g3nn.posteriors import POSTERIORS
from g3nn.priors import PRIORS
from g3nn.replicas import Noise, Replicas, Sizes
from g3nn.task import NodeTask

REGISTRIES: dict[str, dict[str, Any]] = {"likelihood": LIKELIHOODS, "prior": PRIORS, "posterior": POSTERIORS}
TIGHT = {"rtol": 0.0, "atol": 1e-12}

n, d = 16, 5


def outcomes_of(component: Any) -> list[str]:
    """The names of the outcomes that a component declares."""
    return [name for name in OUTCOMES if serves(component, name)]


@dataclasses.dataclass(frozen=True)
class Case:
    """One component in one situation."""

    kind: str
    name: str
    outcome: str
    directed: bool
    R: int
    K: int
    """Classes, or columns of numbers."""

    @property
    def component(self) -> Any:
        return REGISTRIES[self.kind][self.name]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(3, 3 + self.R))

    def spec(self) -> ModelSpec:
        likelihood = next(name for name, part in LIKELIHOODS.items() if serves(part, self.outcome))
        return ModelSpec(**{"posterior": "mlp", "likelihood": likelihood, "prior": "uniform", self.kind: self.name})

    def model(self) -> GenerativeModel:
        """Fresh replicas, moved away from zero biases and from the symmetry of a start."""
        model = self.spec().build(Sizes.of(the_inputs(self).task), Replicas(self.seeds), {}).double()
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.3 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
        return model

    def part(self, model: GenerativeModel) -> Any:
        return getattr(model, self.kind)

    def __str__(self) -> str:
        ends = "directed" if self.directed else "undirected"
        return f"{self.kind}-{self.name}-{self.outcome}-{ends}-R{self.R}-K{self.K}"


SITUATIONS = ((False, 1, 2), (False, 3, 4), (True, 1, 4), (True, 3, 2))
"""Directed, R and K. An orthogonal array: each value meets each value of the other two."""
OPPOSITES = (((False, 3, 4), (True, 1, 2)), ((False, 1, 2), (True, 3, 4)))
"""Both values of each; components take turns with the two lists."""
DIRECTIONS = ((False, 3, 4), (True, 3, 4))
UNDIRECTED = ((False, 1, 4), (False, 3, 2))
KINDS = tuple(REGISTRIES)


def looks_at_edges(kind: str, component: Any) -> bool:
    """Whether it can make a difference to a component that edges have a direction."""
    return kind == "likelihood" or (kind == "posterior" and component.uses_graph)


def listed_cases(
    kinds: Sequence[str], rows: Sequence[Any], outcomes: Sequence[str] = tuple(OUTCOMES), once: bool = False
) -> list[Case]:
    """Every registered component of the kinds, in the situations `rows`.

    Likelihoods meet every outcome that they declare in every row. Priors and posteriors share the last step, which is
    all that depends on the outcome, so they meet every outcome and every row, but not each of the one with each of the
    other. once: a likelihood meets each outcome once, other components one of them, with outcomes and rows in turn.
    One column of numbers stands where there would be two classes, three where there are four.
    """
    found = []
    for kind in kinds:
        for turn, (name, component) in enumerate(REGISTRIES[kind].items()):
            served = [outcome for outcome in outcomes_of(component) if outcome in outcomes]
            own = rows[turn % len(OPPOSITES)] if rows is OPPOSITES else rows
            own = own if looks_at_edges(kind, component) else [(False, R, K) for _, R, K in own]
            if once and kind == "likelihood":
                met = [(outcome, own[(turn + place) % len(own)]) for place, outcome in enumerate(served)]
            elif kind == "likelihood":
                met = list(itertools.product(served, own))
            else:
                steps = range(1 if once else max(len(served), len(own)))
                first = turn // len(served) if once else 0
                met = [(served[(turn + step) % len(served)], own[(first + step) % len(own)]) for step in steps]
            found += [
                Case(kind, name, outcome, directed, R, K if outcome == "classes" else K - 1)
                for outcome, (directed, R, K) in met
            ]
    return list(dict.fromkeys(found))


def cases(*kinds: str, **how: Any) -> Any:
    """Parametrises a test over `listed_cases`."""
    return pytest.mark.parametrize("case", listed_cases(kinds, **how), ids=str)


CLASSES = ("classes",)
NUMBERS = tuple(outcome for outcome in OUTCOMES if outcome != "classes")


COMPONENTS = [
    pytest.param(component, id=f"{kind}-{name}")
    for kind, registry in REGISTRIES.items()
    for name, component in registry.items()
]


def make_task(outcome: str, directed: bool, K: int, x: np.ndarray, edges: np.ndarray) -> NodeTask:
    columns = np.arange(n)[:, None] * (1 + np.arange(K)) % 5
    labels = {
        "classes": np.arange(n) % K,
        "tags": columns < 2,
        "real": 30 + 4.5 * columns,
        "counts": columns,
    }
    # What a model of the features says, as a distribution: log-probabilities, log-odds, or means and log-variances.
    beliefs = x @ np.random.default_rng(9).standard_normal((d, K * OUTCOMES[outcome].numbers_per_column))
    return NodeTask.build(
        sp.csr_array(x),
        edges,
        labels[outcome],
        train=np.arange(8),
        val=np.arange(8, n - 2),
        test=[n - 2, n - 1],
        directed=directed,
        outcome=outcome,
        beliefs=log_softmax(beliefs, axis=1) if outcome == "classes" else beliefs,
    )


@cache
def features(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)


@cache
def random_edges(directed: bool, seed: int = 0) -> np.ndarray:
    pairs = [(i, j) for i in range(n) for j in range(n) if (i != j if directed else i < j)]
    chosen = np.random.default_rng(seed).permutation(len(pairs))[:30]
    return np.array(pairs)[np.sort(chosen)].T


@cache
def inputs_for(outcome: str, directed: bool, K: int, feature_seed: int = 0, edge_seed: int = 0) -> Inputs:
    task = make_task(outcome, directed, K, features(feature_seed), random_edges(directed, edge_seed))
    return Inputs.of(task, dtype=torch.float64)


def the_inputs(case: Case) -> Inputs:
    return inputs_for(case.outcome, case.directed, case.K)


def pairs_of(case: Case, inputs: Inputs) -> Iterator[Pairs]:
    """Edges shared by the replicas, and non-edges of their own."""
    yield Pairs(inputs.edges[0], inputs.edges[1], present=True)
    i, j = torch.randint(n, (2, case.R, 20), generator=torch.Generator().manual_seed(1))
    yield Pairs(i, j, present=False)


def output(case: Case, model: GenerativeModel, inputs: Inputs, noise: Noise | None = None) -> Tensor:
    """(R, n, width), or for a likelihood what it says of each pair: (R, P, K, K), or (R, P) at given numbers."""
    part = case.part(model)
    if case.kind != "likelihood":
        return part.log_prob(inputs, noise)
    pairs = Pairs(*torch.triu_indices(n, n, 1), present=True)
    if case.outcome != "classes":
        return part.log_odds(part.node_state(inputs, noise), some_values(part, case), pairs)
    table = part.log_prob(part.node_state(inputs, noise), pairs)
    return table.expand(-1, pairs.i.numel(), -1, -1)


def some_values(part: torch.nn.Module, case: Case) -> Tensor:
    """(R, n, T): values that the outcome can take, the same for each of the replicas that there are."""
    R = next(part.parameters()).shape[0]
    return the_inputs(case).targets.values.expand(R, n, case.K)


def soft_labels(case: Case, seed: int = 0) -> Tensor:
    """(R, n, K) with rows that sum to one."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(case.R, n, case.K, dtype=torch.float64, generator=generator).softmax(2)


# What holds for all of them.


@pytest.mark.parametrize("kind", KINDS)
def test_every_component_meets_every_outcome_and_every_pair_of_values(kind):
    met = listed_cases([kind], SITUATIONS)
    for name, component in REGISTRIES[kind].items():
        own = [case for case in met if case.name == name]
        assert {case.outcome for case in own} == set(outcomes_of(component)), name
        rows = [(case.directed, case.R, case.K + (case.outcome != "classes")) for case in own]
        pairs = [{(row[a], row[b]) for row in rows} for a, b in itertools.combinations(range(3), 2)]
        expected = [4, 4, 4] if looks_at_edges(kind, component) else [2, 2, 4]
        assert [len(values) for values in pairs] == expected, name


@cases("likelihood", "prior", "posterior", rows=SITUATIONS)
def test_what_comes_out_and_what_is_learned_lead_with_the_replicas(case):
    model, inputs = case.model(), the_inputs(case)
    pairs = (n * (n - 1) // 2,)
    tails = {"likelihood": (*pairs, case.K, case.K) if case.outcome == "classes" else pairs}
    width = 2 * case.K if case.outcome in ("real", "counts") else case.K
    for noise in (None, Noise(torch.tensor(case.seeds), 0)):
        found = output(case, model, inputs, noise)
        assert found.shape == (case.R, *tails.get(case.kind, (n, width)))
        assert found.dtype == torch.float64
        assert torch.isfinite(found).all()
        if case.outcome == "classes":
            assert (found <= 0).all()
        if case.outcome == "classes" and case.kind != "likelihood":
            total = found.exp().sum(2)
            torch.testing.assert_close(total, torch.ones_like(total), **TIGHT)
    state = case.part(model).state_dict()
    assert {name for name, tensor in state.items() if tensor.dim() < 2 or tensor.shape[0] != case.R} == set()
    assert state


@cases("likelihood", "prior", "posterior", rows=DIRECTIONS, once=True)
def test_select_and_restore(case):
    model, inputs = case.model(), the_inputs(case)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    whole = output(case, model, inputs)
    model.select(torch.tensor([2, 0]))
    torch.testing.assert_close(output(case, model, inputs), whole[[2, 0]], **TIGHT)
    model.restore(state)
    torch.testing.assert_close(output(case, model, inputs), whole, **TIGHT)


@cases("likelihood", "prior", "posterior", rows=DIRECTIONS, once=True)
def test_a_replica_knows_nothing_of_the_others(case):
    model, inputs = case.model(), the_inputs(case)
    part = case.part(model)
    before = output(case, model, inputs)
    with torch.no_grad():
        for tensor in (*part.parameters(), *part.buffers()):
            tensor[1] += 0.5 * torch.randn(tensor.shape[1:], dtype=torch.float64)
    after = output(case, model, inputs)
    assert torch.equal(after[[0, 2]], before[[0, 2]])
    has_parameters = any(True for _ in part.parameters())
    assert torch.equal(after[1], before[1]) != has_parameters
    together = output(case, model, inputs, Noise(torch.tensor(case.seeds), 2))
    model.select(torch.tensor([1]))
    alone = output(case, model, inputs, Noise(torch.tensor(case.seeds[1:2]), 2))
    torch.testing.assert_close(alone[0], together[1], **TIGHT)


@pytest.mark.parametrize(
    "case",
    [*listed_cases(["likelihood"], DIRECTIONS), *listed_cases(["prior", "posterior"], DIRECTIONS, once=True)],
    ids=str,
)
def test_every_trained_parameter_gets_a_gradient(case):
    model, inputs = case.model(), the_inputs(case)
    noise = Noise(torch.tensor(case.seeds), 999)
    found = output(case, model, inputs, noise)
    weight = torch.randn(found.shape, dtype=torch.float64)
    trained = {name: p for name, p in case.part(model).named_parameters() if p.requires_grad}
    if not trained:
        assert not found.requires_grad
        return
    loss = (found * weight).sum()
    own = model.posterior.own_loss(found, inputs, noise) if case.kind == "posterior" else None
    (loss if own is None else loss + own.sum()).backward()
    for name, parameter in trained.items():
        assert parameter.grad is not None, name
        reached = parameter.grad.flatten(1) != 0
        # No likelihood rectifies anything unless it is asked to, so each of its numbers must count.
        assert reached.all() if case.kind == "likelihood" else reached.any(1).all(), name


@cases("likelihood", rows=OPPOSITES, outcomes=CLASSES)
def test_edges_are_normalised(case):
    model, inputs = case.model(), the_inputs(case)
    state = model.likelihood.node_state(inputs, None)
    for pairs in pairs_of(case, inputs):
        both = [dataclasses.replace(pairs, present=present) for present in (True, False)]
        total = sum(model.likelihood.log_prob(state, one).exp() for one in both)
        torch.testing.assert_close(total, torch.ones_like(total), **TIGHT)


def reweighted(inputs: Inputs, weights: np.ndarray) -> Inputs:
    return Inputs.of(dataclasses.replace(inputs.task, weights=weights), dtype=torch.float64)


def weighted_inputs(case: Case) -> Inputs:
    """Edges of random weights."""
    inputs = the_inputs(case)
    weights = np.random.default_rng(6).gamma(1.0, size=inputs.task.num_edges)
    return reweighted(inputs, weights / weights.mean())


def renumbered(inputs: Inputs) -> tuple[Inputs, Tensor]:
    """The same task with node v called place[v], and `place`."""
    place = np.random.default_rng(5).permutation(n)
    task = inputs.task
    x, labels, beliefs = (np.empty_like(part) for part in (task.features.toarray(), task.labels, task.beliefs))
    x[place], labels[place], beliefs[place] = task.features.toarray(), task.labels, task.beliefs
    split = {key: place[getattr(task, key)] for key in ("train", "val", "test")}
    how = {"directed": task.directed, "outcome": task.outcome, "weights": task.weights, "beliefs": beliefs}
    moved = NodeTask.build(sp.csr_array(x), place[task.edges], labels, **split, **how)
    return Inputs.of(moved, dtype=torch.float64), torch.from_numpy(place)


@cases("prior", "posterior", rows=DIRECTIONS, once=True)
def test_renumbering_the_nodes_renumbers_the_answer(case):
    """What is learned for each node moves with it."""
    for inputs in (the_inputs(case), weighted_inputs(case)):
        model = case.model()
        expected = output(case, model, inputs)
        moved, place = renumbered(inputs)
        if case.kind == "posterior":
            model.posterior.renumber(place, n)
        torch.testing.assert_close(output(case, model, moved)[:, place], expected, **TIGHT)


@cases("likelihood", rows=OPPOSITES, outcomes=CLASSES)
def test_renumbering_the_nodes_renumbers_the_pairs(case):
    likelihood, inputs = case.model().likelihood, the_inputs(case)
    moved, place = renumbered(inputs)
    here, there = likelihood.node_state(inputs, None), likelihood.node_state(moved, None)
    for pairs in pairs_of(case, inputs):
        other = Pairs(place[pairs.i], place[pairs.j], pairs.present)
        torch.testing.assert_close(likelihood.log_prob(there, other), likelihood.log_prob(here, pairs), **TIGHT)


def changes_with(case: Case, **seeds: int) -> bool:
    """Whether other features or other edges change the answer."""
    model = case.model()
    other = inputs_for(case.outcome, case.directed, case.K, **seeds)
    return not torch.equal(output(case, model, other), output(case, model, the_inputs(case)))


@cases("posterior", rows=DIRECTIONS, once=True)
def test_edges_matter_as_declared(case):
    assert changes_with(case, edge_seed=1) == case.component.uses_graph


@cases("likelihood", "prior", rows=DIRECTIONS, once=True)
def test_features_matter_as_declared_and_edges_do_not_without_labels(case):
    """p(Y | X) and the table p(e_ij | x_i, k, x_j, l) know nothing of the observed graph."""
    assert changes_with(case, feature_seed=1) == case.component.uses_features
    assert not changes_with(case, edge_seed=1)


# What weights of edges mean. A likelihood gets them with the pairs that it judges: see `tests/numeric/test_bound.py`.


@cases("posterior", rows=DIRECTIONS, once=True)
def test_edges_of_weight_one_are_edges(case):
    model, inputs = case.model(), the_inputs(case)
    ones = reweighted(inputs, np.ones(inputs.task.num_edges))
    # PyG computes the entries of its propagation matrix in single precision unless they are given.
    close = {"rtol": 0.0, "atol": 1e-4} if case.name in ("label-propagation", "correct-smooth") else TIGHT
    for noisy in (False, True):
        one, other = (
            output(case, model, given, Noise(torch.tensor(case.seeds), 0) if noisy else None)
            for given in (ones, inputs)
        )
        torch.testing.assert_close(one, other, **close)


@cases("posterior", rows=DIRECTIONS, once=True)
def test_an_edge_of_hardly_any_weight_is_none(case):
    """What it changes is in proportion to its weight; in the logarithm of a chance next to 0 by a large factor."""
    model, task = case.model(), weighted_inputs(case).task
    first = np.arange(task.num_edges) == lost_edge(task)
    bare = output(case, model, Inputs.of(task.with_edges(~first), dtype=torch.float64))
    there = output(case, model, reweighted(the_inputs(case), np.where(first, 1e-25, task.weights)))
    torch.testing.assert_close(there, bare, rtol=0, atol=1e-10)


@cases("posterior", rows=DIRECTIONS, once=True)
def test_weights_matter_to_those_that_look_at_edges(case):
    model = case.model()
    changed = not torch.allclose(output(case, model, weighted_inputs(case)), output(case, model, the_inputs(case)))
    assert changed == case.component.uses_graph


def lost_edge(task: NodeTask) -> int:
    """An edge whose ends have others, leaving and arriving: a mean over nothing is not that over hardly anything."""
    leaving, arriving = (np.bincount(end, minlength=n) for end in task.edges)
    least = np.minimum(leaving, arriving) if task.directed else leaving + arriving
    return int(np.argmax(least[task.edges].min(0)))


# What holds for likelihoods.


@cases("likelihood", rows=UNDIRECTED, outcomes=CLASSES)
def test_the_two_ends_of_an_undirected_pair_are_alike(case):
    likelihood, inputs = case.model().likelihood, the_inputs(case)
    state = likelihood.node_state(inputs, None)
    for pairs in pairs_of(case, inputs):
        turned = Pairs(pairs.j, pairs.i, pairs.present)
        there, back = likelihood.log_prob(state, pairs), likelihood.log_prob(state, turned)
        torch.testing.assert_close(back.transpose(2, 3), there, **TIGHT)


def table_of(likelihood: Any, state: Tensor | None, pairs: Pairs) -> Tensor:
    """(R, P, K, K)"""
    return likelihood.log_prob(state, pairs).expand(-1, pairs.i.shape[-1], -1, -1)


@cases("likelihood", rows=OPPOSITES, outcomes=CLASSES)
def test_the_expectation_is_the_sum_over_all_labels(case):
    likelihood, inputs = case.model().likelihood, the_inputs(case)
    state, q = likelihood.node_state(inputs, None), soft_labels(case)
    certain = torch.arange(0, n, 2)
    q[:, certain] = torch.nn.functional.one_hot(q[:, certain].argmax(2), case.K).double()
    for pairs in pairs_of(case, inputs):
        table = table_of(likelihood, state, pairs)
        i, j = pairs.i.expand(case.R, -1), pairs.j.expand(case.R, -1)
        expected = torch.zeros(i.shape, dtype=torch.float64)
        for r, p in itertools.product(range(case.R), range(i.shape[1])):
            for k, m in itertools.product(range(case.K), repeat=2):
                expected[r, p] += q[r, i[r, p], k] * q[r, j[r, p], m] * table[r, p, k, m].detach()
        torch.testing.assert_close(likelihood.expected_log_prob(state, q, pairs), expected, **TIGHT)


@cases("likelihood", rows=SITUATIONS, outcomes=CLASSES, once=True)
def test_the_expectation_has_the_right_gradient(case):
    likelihood, inputs = case.model().likelihood, the_inputs(case)
    state = likelihood.node_state(inputs, None)
    state = None if state is None else state.detach()
    few = Pairs(torch.tensor([0, 1, 2, 0]), torch.tensor([3, 2, 4, 3]), present=True)
    own = Pairs(few.i.expand(case.R, -1), few.j.expand(case.R, -1), present=False)
    q = soft_labels(case)[:, :5].clone().requires_grad_()
    for pairs in (few, own):
        assert torch.autograd.gradcheck(lambda q, pairs=pairs: likelihood.expected_log_prob(state, q, pairs), q)


@cases("likelihood", rows=SITUATIONS, outcomes=CLASSES, once=True)
def test_the_plug_in_score_is_a_finite_score_of_each_pair(case):
    likelihood, inputs = case.model().likelihood, the_inputs(case)
    state, soft = likelihood.node_state(inputs, None), soft_labels(case)
    for pairs in pairs_of(case, inputs):
        score = likelihood.plug_in_score(state, soft, pairs)
        assert score.shape == (case.R, pairs.i.shape[-1])
        assert torch.isfinite(score).all()


# What holds for likelihoods of numbers.


def beliefs_of(case: Case, model: GenerativeModel, seed: int = 0) -> Tensor:
    """What enters the graph term for random answers, labelled nodes with their values."""
    generator = torch.Generator().manual_seed(seed)
    outcome, inputs = model.posterior.sizes.outcome, the_inputs(case)
    scores = torch.randn(case.R, n, outcome.num_scores, dtype=torch.float64, generator=generator)
    return outcome.beliefs(model.posterior.answer(scores).detach(), inputs.targets)


@cases("likelihood", rows=OPPOSITES, outcomes=NUMBERS)
def test_renumbering_the_nodes_renumbers_the_log_odds(case):
    likelihood, inputs = case.model().likelihood, the_inputs(case)
    moved, place = renumbered(inputs)
    values = some_values(likelihood, case)
    there = torch.empty_like(values)
    there[:, place] = values
    for pairs in pairs_of(case, inputs):
        other = Pairs(place[pairs.i], place[pairs.j], pairs.present)
        found = likelihood.log_odds(likelihood.node_state(moved, None), there, other)
        expected = likelihood.log_odds(likelihood.node_state(inputs, None), values, pairs)
        torch.testing.assert_close(found, expected, **TIGHT)


@cases("likelihood", rows=UNDIRECTED, outcomes=NUMBERS)
def test_the_two_ends_of_an_undirected_pair_of_numbers_are_alike(case):
    model, inputs = case.model(), the_inputs(case)
    state, beliefs = model.likelihood.node_state(inputs, None), beliefs_of(case, model)
    for pairs in pairs_of(case, inputs):
        turned = Pairs(pairs.j, pairs.i, pairs.present)
        there, back = (model.likelihood.expected_log_prob(state, beliefs, one) for one in (pairs, turned))
        torch.testing.assert_close(back, there, rtol=1e-13, atol=1e-12)


@cases("likelihood", rows=OPPOSITES, outcomes=NUMBERS)
def test_with_certain_numbers_the_expectation_is_the_log_probability(case):
    model, inputs = case.model(), the_inputs(case)
    outcome, values = model.posterior.sizes.outcome, some_values(model.likelihood, case)
    certain = values if outcome.name == "tags" else torch.cat([values, torch.zeros_like(values)], dim=2)
    state = model.likelihood.node_state(inputs, None)
    for pairs in pairs_of(case, inputs):
        odds = model.likelihood.log_odds(state, values, pairs)
        expected = torch.nn.functional.logsigmoid(odds if pairs.present else -odds)
        found = model.likelihood.expected_log_prob(state, certain, pairs)
        torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-6)


@cases("likelihood", rows=OPPOSITES, outcomes=NUMBERS)
def test_the_expectation_over_numbers_has_the_right_gradient(case):
    model, inputs = case.model(), the_inputs(case)
    state = model.likelihood.node_state(inputs, None)
    few = Pairs(torch.tensor([9, 10, 11, 9]), torch.tensor([12, 11, 13, 12]), present=True)
    own = Pairs(few.i.expand(case.R, -1), few.j.expand(case.R, -1), present=False)
    beliefs = beliefs_of(case, model).clone().requires_grad_()
    for pairs in (few, own):
        expected = functools.partial(model.likelihood.expected_log_prob, state, pairs=pairs)
        assert torch.autograd.gradcheck(expected, beliefs)


@cases("likelihood", rows=((False, 3, 2), (False, 3, 4)))
def test_it_can_be_asked_how_the_expectation_is_taken(case):
    found = case.model().likelihood.expectation
    assert found in ("exact", "bound", "samples")
    assert found == "exact" or case.outcome != "classes"


# What holds for their options.


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_says_what_it_is_declares_what_it_uses_and_works_without_options(component):
    assert component.Options.__dataclass_params__.frozen
    for field in dataclasses.fields(component.Options):
        rule = field.metadata.get("rule")
        assert isinstance(rule, Rule), field.name
        assert rule.help.strip(), field.name
        assert rule.accepts(field.default), field.name
    assert component.__doc__
    declared = "uses_graph" if component in POSTERIORS.values() else "uses_features"
    assert isinstance(vars(component).get(declared), bool)
    assert isinstance(component(Sizes(d, 3), Replicas((0,))), torch.nn.Module)
