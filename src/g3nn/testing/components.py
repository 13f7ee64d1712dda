"""What likelihoods, priors and posteriors promise. A promise is a function of one situation that fails if it is broken;
its docstring says what is promised, and stands before every failure."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.nn.functional import logsigmoid, one_hot

from g3nn.base.options import Rule
from g3nn.graph.task import NodeTask
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods import ClassLikelihood, Pairs
from g3nn.model.replicas import Noise, Replicas, Sizes
from g3nn.testing.situations import Case, judged_pairs, n, renumbered, reweighted, weighted
from g3nn.training.catalogue import all_options


def close(found: Tensor, expected: Tensor, atol: float = 1e-12, rtol: float = 0.0) -> None:
    torch.testing.assert_close(found, expected, atol=atol, rtol=rtol)


def declared_options(options: type) -> dict[str, Rule]:
    """The rule of each option by name. Raises unless all have a default within their limits and a description."""
    found = {}
    for field in dataclasses.fields(options):
        rule = field.metadata.get("rule")
        assert isinstance(rule, Rule), f"{field.name} is not made by number, integer, choice, counts or flag"
        assert rule.help.strip(), f"{field.name} has no description"
        assert rule.accepts(field.default), f"{field.name}: its default {field.default!r} is not {rule.allowed()}"
        found[field.name] = rule
    return found


# What holds for all of them


def declarations_are_complete(case: Case) -> None:
    """It has a docstring, declares whether it uses features (a posterior: the graph), and works without options; each
    option has a default within its limits, a description, and one kind wherever g3nn uses its name."""
    component, known = case.component, all_options()
    assert vars(component).get("__doc__"), "it has no docstring"
    assert component.Options.__dataclass_params__.frozen, "Options is not frozen"  # type: ignore[attr-defined]
    for name, rule in declared_options(component.Options).items():
        same = name not in known or known[name].kind is rule.kind
        assert same, f"{name} is of another kind than the option of this name in g3nn"
    declared = "uses_graph" if case.kind == "posterior" else "uses_features"
    if case.kind != "channel":
        assert isinstance(getattr(component, declared, None), bool), f"{declared} is not declared"
    if case.kind == "likelihood" and case.of_classes:
        assert issubclass(component, ClassLikelihood), "a likelihood of classes derives from ClassLikelihood"
    made = component(Sizes.of(case.inputs.task), Replicas(case.seeds))
    assert isinstance(made, torch.nn.Module), "it is no torch module"


def shapes_lead_with_the_replicas(case: Case) -> None:
    """Answers are (R, n, width), log-probabilities of pairs (R, P, K, K) or (R, 1, K, K), log-odds (R, P); all are
    finite, of the dtype of the inputs, and those of classes at most 0 and, for each node, normalised. Every parameter
    and buffer leads with R."""
    model, inputs = case.model(), case.inputs
    pairs = (n * (n - 1) // 2,)
    shape = (n, case.K * case.outcome.numbers_per_column)
    if case.kind == "likelihood":
        shape = (*pairs, case.K, case.K) if case.of_classes else pairs  # type: ignore[assignment]
    for noise in (None, case.noise()):
        found = case.output(model, inputs, noise)
        assert found.shape == (case.R, *shape), f"the shape is {tuple(found.shape)}, expected {(case.R, *shape)}"
        assert found.dtype == torch.float64, f"the dtype is {found.dtype}"
        assert torch.isfinite(found).all(), "some numbers are not finite"
        if case.of_classes:
            assert (found <= 0).all(), "some log-probabilities are above 0"
        if case.of_classes and case.kind != "likelihood":
            total = found.exp().sum(2)
            close(total, torch.ones_like(total))
    state = case.part(model).state_dict()
    wrong = {name: tuple(one.shape) for name, one in state.items() if one.dim() < 2 or one.shape[0] != case.R}
    assert not wrong, f"parameters that do not lead with R={case.R}, or have no dimension after it: {wrong}"
    assert state, "it has no parameter: use a fixed one, `nn.Parameter(..., requires_grad=False)`"


def replicas_can_be_selected_and_restored(case: Case) -> None:
    """Replicas that are taken from a stack answer as before, and a stack can be put back."""
    model, inputs = case.model(), case.inputs
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    whole = case.output(model, inputs)
    model.select(torch.tensor([2, 0]))
    close(case.output(model, inputs), whole[[2, 0]])
    model.restore(state)
    close(case.output(model, inputs), whole)


def a_stack_equals_single_replicas(case: Case) -> None:
    """Replicas are independent: the parameters of others do not change one, and alone, with its own seed, it gives the
    same, dropout included."""
    model, inputs = case.model(), case.inputs
    part, generator = case.part(model), torch.Generator().manual_seed(2)
    before = case.output(model, inputs)
    with torch.no_grad():
        for tensor in (*part.parameters(), *part.buffers()):
            tensor[1] += 0.5 * torch.randn(tensor.shape[1:], dtype=torch.float64, generator=generator)
    after = case.output(model, inputs)
    assert torch.equal(after[[0, 2]], before[[0, 2]]), "replicas 0 and 2 change with the parameters of replica 1"
    learns = any(True for _ in part.parameters())
    assert torch.equal(after[1], before[1]) != learns, "parameters of replica 1 change nothing, or there are none"
    together = case.output(model, inputs, case.noise(2))
    model.select(torch.tensor([1]))
    alone = case.output(model, inputs, Noise(torch.tensor(case.seeds[1:2]), 2))
    close(alone[0], together[1])


def every_trained_parameter_gets_a_gradient(case: Case) -> None:
    """A loss on the answer reaches every parameter, of a likelihood every number of it; what is fixed has
    requires_grad=False."""
    model, inputs = case.model(), case.inputs
    noise = case.noise(999)
    found = case.output(model, inputs, noise)
    weight = torch.randn(found.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    trained = {name: p for name, p in case.part(model).named_parameters() if p.requires_grad}
    if not trained:
        assert not found.requires_grad, "there is a gradient, but nothing to train"
        return
    loss = (found * weight).sum()
    own = model.posterior.own_loss(found, inputs, noise) if case.kind == "posterior" else None
    (loss if own is None else loss + own.sum()).backward()
    for name, parameter in trained.items():
        assert parameter.grad is not None, f"{name} gets no gradient"
        reached = parameter.grad.flatten(1) != 0
        # Likelihoods have no rectifiers by default, so each of their numbers must count.
        reaches = reached.all() if case.kind == "likelihood" else reached.any(1).all()
        assert reaches, f"some of {name} gets no gradient"


def renumbering_the_nodes_renumbers_the_answer(case: Case) -> None:
    """The order of the nodes means nothing: the answer for a node moves with it, as does what is learned for it."""
    for inputs in (case.inputs, weighted(case.inputs)):
        model = case.model()
        expected = case.output(model, inputs)
        moved, place = renumbered(inputs)
        if case.kind == "posterior":
            model.posterior.renumber(place, n)
        close(case.output(model, moved)[:, place], expected)


def features_matter_as_declared(case: Case) -> None:
    """p(Y | X) and p(e_ij | x_i, y_i, x_j, y_j) depend on features if `uses_features`, and never on the observed graph:
    it is what they explain."""
    changed = _changes_with(case, feature_seed=1)
    assert changed == case.declares("uses_features"), f"other features {'' if changed else 'do not '}change it"
    assert not _changes_with(case, edge_seed=1), "other edges change it"


def _changes_with(case: Case, **seeds: int) -> bool:
    model = case.model()
    return not torch.equal(case.output(model, case.other_inputs(**seeds)), case.output(model, case.inputs))


# What holds for posteriors. A likelihood gets the weights of edges with the pairs that it judges.


def edges_matter_as_declared(case: Case) -> None:
    """q(Y | X, G) depends on the edges, and on their weights, if `uses_graph`, and else not."""
    changed = _changes_with(case, edge_seed=1)
    assert changed == case.declares("uses_graph"), f"other edges {'' if changed else 'do not '}change it"
    model = case.model()
    weighed, bare = case.output(model, weighted(case.inputs)), case.output(model, case.inputs)
    changed = not torch.allclose(weighed, bare)
    assert changed == case.declares("uses_graph"), f"weights of edges {'' if changed else 'do not '}change it"


def edges_of_weight_one_are_edges(case: Case) -> None:
    """A graph with weights that are all 1 is the graph without weights."""
    model, inputs = case.model(), case.inputs
    ones = reweighted(inputs, np.ones(inputs.task.num_edges))
    for noisy in (False, True):
        one, other = (case.output(model, given, case.noise() if noisy else None) for given in (ones, inputs))
        close(one, other, atol=1e-12)


def an_edge_of_hardly_any_weight_is_none(case: Case) -> None:
    """What an edge changes is in proportion to its weight; in the logarithm of a chance next to 0 by a large factor."""
    model, task = case.model(), weighted(case.inputs).task
    assert task.weights is not None
    first = np.arange(task.num_edges) == _lost_edge(task)
    bare = case.output(model, Inputs.of(task.with_edges(~first), dtype=torch.float64))
    there = case.output(model, reweighted(case.inputs, np.where(first, 1e-25, task.weights)))
    close(there, bare, atol=1e-10)


def _lost_edge(task: NodeTask) -> int:
    """An edge whose ends have others, leaving and arriving: a mean over nothing is not that over hardly anything."""
    leaving, arriving = (np.bincount(end, minlength=n) for end in task.edges)
    least = np.minimum(leaving, arriving) if task.directed else leaving + arriving
    return int(np.argmax(least[task.edges].min(0)))


# What holds for likelihoods of classes


def edges_are_normalised(case: Case) -> None:
    """The probabilities of an edge and of no edge sum to 1, for every pair of labels."""
    likelihood, state = case.likelihood()
    for pairs in case.pairs():
        both = [dataclasses.replace(pairs, present=present) for present in (True, False)]
        total = torch.stack([case.table(likelihood, state, one).exp() for one in both]).sum(0)
        close(total, torch.ones_like(total))


def renumbering_the_nodes_renumbers_the_pairs(case: Case) -> None:
    """The order of the nodes means nothing: the term of a pair moves with its ends."""
    likelihood, here = case.likelihood()
    moved, place = renumbered(case.inputs)
    there = likelihood.node_state(moved, None)
    for pairs in case.pairs():
        other = Pairs(place[pairs.i], place[pairs.j], pairs.present)
        if case.of_classes:
            close(case.table(likelihood, there, other), case.table(likelihood, here, pairs))
        else:
            values = case.values(likelihood)
            carried = torch.empty_like(values)
            carried[:, place] = values
            close(likelihood.log_odds(there, carried, other), likelihood.log_odds(here, values, pairs))


def the_two_ends_of_an_undirected_pair_are_alike(case: Case) -> None:
    """On an undirected graph (i, j) and (j, i) are one pair: `self.symmetric(matrix)` makes a matrix so."""
    likelihood, state = case.likelihood()
    for pairs in case.pairs():
        turned = Pairs(pairs.j, pairs.i, pairs.present)
        if case.of_classes:
            close(case.table(likelihood, state, turned).transpose(2, 3), case.table(likelihood, state, pairs))
        else:
            beliefs = case.beliefs()
            there, back = (likelihood.expected_log_prob(state, beliefs, one) for one in (pairs, turned))
            close(back, there, rtol=1e-13)


def the_expectation_is_the_sum_over_all_labels(case: Case) -> None:
    """`expected_log_prob` is sum_kl q_ik q_jl log p(e_ij | k, l), of certain and of uncertain labels."""
    (likelihood, state), q = case.likelihood(), case.soft_labels()
    certain = torch.arange(0, n, 2)
    q[:, certain] = one_hot(q[:, certain].argmax(2), case.K).double()
    for pairs in case.pairs():
        table = case.table(likelihood, state, pairs)
        i, j = pairs.i.expand(case.R, -1), pairs.j.expand(case.R, -1)
        expected = torch.zeros(i.shape, dtype=torch.float64)
        for r, p in itertools.product(range(case.R), range(i.shape[1])):
            for k, m in itertools.product(range(case.K), repeat=2):
                expected[r, p] += q[r, i[r, p], k] * q[r, j[r, p], m] * table[r, p, k, m].detach()
        close(likelihood.expected_log_prob(state, q, pairs), expected)


def the_plug_in_score_is_a_finite_score_of_each_pair(case: Case) -> None:
    """`plug_in_score` is (R, P) and finite."""
    likelihood, state = case.likelihood()
    for pairs in case.pairs():
        score = likelihood.plug_in_score(state, case.soft_labels(), pairs)
        assert score.shape == (case.R, pairs.i.shape[-1]), f"the shape is {tuple(score.shape)}"
        assert torch.isfinite(score).all(), "some scores are not finite"


# What holds for likelihoods of any outcome, and of numbers


def the_expectation_has_the_right_gradient(case: Case) -> None:
    """The gradient of `expected_log_prob` by q is that of finite differences."""
    likelihood, state = case.likelihood()
    state = None if state is None else state.detach()
    first = 0 if case.of_classes else 9  # Numbers of labelled nodes are certain, and have no gradient.
    beliefs = (case.soft_labels()[:, :5] if case.of_classes else case.beliefs()).clone().requires_grad_()
    for pairs in judged_pairs(case.R, first):
        assert gradcheck(functools.partial(likelihood.expected_log_prob, state, pairs=pairs), beliefs)


def with_certain_numbers_the_expectation_is_the_log_probability(case: Case) -> None:
    """Where q is certain, `expected_log_prob` is the log-probability at these values, however it is computed."""
    likelihood, state = case.likelihood()
    values = case.values(likelihood)
    parts = [values, *([torch.zeros_like(values)] * (case.outcome.numbers_per_column - 1))]
    for pairs in case.pairs():
        odds = likelihood.log_odds(state, values, pairs)
        found = likelihood.expected_log_prob(state, torch.cat(parts, dim=2), pairs)
        expected = logsigmoid(odds if pairs.present else -odds)
        close(found, expected, atol=1e-6)


def it_says_how_the_expectation_is_taken(case: Case) -> None:
    """`expectation` is "exact", "bound" or "samples"; with classes it is exact."""
    found = case.likelihood()[0].expectation
    assert found in ("exact", "bound", "samples"), f"expectation is {found!r}"
    assert found == "exact" or not case.of_classes, f"expectation is {found!r} with classes"
