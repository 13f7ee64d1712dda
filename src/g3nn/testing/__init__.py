"""The contract of components as tests, for those of other packages and for g3nn's own. In a test file:

    from g3nn.testing import contract_tests
    from my_package import MyLikelihood

    test_contract = contract_tests(MyLikelihood)

pytest runs it as one test for each promise in each situation: shapes, normalisation, renumbered nodes, gradients, a
stack against single replicas, and what the component declares. Without pytest, `checks` lists the same as functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from g3nn.graph.outcomes import Outcome
from g3nn.testing import channels
from g3nn.testing import components as promises
from g3nn.testing.outcomes import OUTCOME_PROMISES, OutcomeCase
from g3nn.testing.situations import (
    DIRECTIONS,
    EXAMPLES,
    OPPOSITES,
    SITUATIONS,
    UNDIRECTED,
    Case,
    LabelsOf,
    Rows,
    kind_of,
    listed_cases,
)

__all__ = ["Check", "checks", "contract_tests"]


C = TypeVar("C", Case, OutcomeCase)


@dataclass(frozen=True)
class Check(Generic[C]):
    """One promise of a component in one situation. A call raises an AssertionError if it is broken."""

    promise: Callable[[C], None]
    case: C

    def __str__(self) -> str:
        return f"{self.case}-{self.promise.__name__}"

    def __call__(self) -> None:
        try:
            self.promise(self.case)
        except Exception as error:
            found = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
            promised = " ".join((self.promise.__doc__ or "").split())
            raise AssertionError(f"{self.case}: {found.strip()}\nPromised: {promised}") from error


@dataclass(frozen=True)
class _Promise:
    """What the kinds of components promise in which situations; see `listed_cases`."""

    check: Callable[[Case], None]
    kinds: tuple[str, ...]
    rows: Rows
    classes: bool | None = None
    once: bool = False


_ALL, _NODES, _PAIRS, _Q = ("likelihood", "prior", "posterior"), ("prior", "posterior"), ("likelihood",), ("posterior",)
_SEEN = ("channel",)
_PROMISES = (
    _Promise(promises.shapes_lead_with_the_replicas, _ALL, SITUATIONS),
    _Promise(promises.replicas_can_be_selected_and_restored, (*_ALL, *_SEEN), DIRECTIONS, once=True),
    _Promise(promises.a_stack_equals_single_replicas, (*_ALL, *_SEEN), DIRECTIONS, once=True),
    _Promise(promises.every_trained_parameter_gets_a_gradient, (*_PAIRS, *_SEEN), DIRECTIONS),
    _Promise(promises.every_trained_parameter_gets_a_gradient, _NODES, DIRECTIONS, once=True),
    _Promise(promises.renumbering_the_nodes_renumbers_the_answer, _NODES, DIRECTIONS, once=True),
    _Promise(promises.renumbering_the_nodes_renumbers_the_pairs, _PAIRS, OPPOSITES),
    _Promise(promises.features_matter_as_declared, ("likelihood", "prior"), DIRECTIONS, once=True),
    _Promise(promises.edges_matter_as_declared, _Q, DIRECTIONS, once=True),
    _Promise(promises.edges_of_weight_one_are_edges, _Q, DIRECTIONS, once=True),
    _Promise(promises.an_edge_of_hardly_any_weight_is_none, _Q, DIRECTIONS, once=True),
    _Promise(promises.edges_are_normalised, _PAIRS, OPPOSITES, classes=True),
    _Promise(promises.the_two_ends_of_an_undirected_pair_are_alike, _PAIRS, UNDIRECTED),
    _Promise(promises.the_expectation_is_the_sum_over_all_labels, _PAIRS, OPPOSITES, classes=True),
    _Promise(promises.the_expectation_has_the_right_gradient, _PAIRS, SITUATIONS, classes=True, once=True),
    _Promise(promises.the_expectation_has_the_right_gradient, _PAIRS, OPPOSITES, classes=False),
    _Promise(promises.the_plug_in_score_is_a_finite_score_of_each_pair, _PAIRS, SITUATIONS, classes=True, once=True),
    _Promise(promises.with_certain_numbers_the_expectation_is_the_log_probability, _PAIRS, OPPOSITES, classes=False),
    _Promise(promises.it_says_how_the_expectation_is_taken, _PAIRS, (((False, 3, 2), (False, 3, 4)),)),
    _Promise(channels.a_channel_declares_when_it_is_clear, _SEEN, SITUATIONS),
    _Promise(channels.what_is_seen_is_normalised, _SEEN, SITUATIONS),
    _Promise(channels.a_clear_channel_changes_nothing, _SEEN, SITUATIONS),
    _Promise(channels.the_terms_of_labels_are_a_bound, _SEEN, SITUATIONS),
    _Promise(channels.the_expectation_over_labels_is_right, _SEEN, SITUATIONS),
    _Promise(channels.a_channel_has_the_right_gradient, _SEEN, OPPOSITES),
)


def checks(
    component: type, labels: Mapping[type[Outcome], LabelsOf] | None = None, turn: int | None = None
) -> list[Check[Case]] | list[Check[OutcomeCase]]:
    """Everything that a likelihood, prior, posterior, channel or outcome promises, each to be called.

    labels: for outcomes that are not g3nn's, a function of n and K that makes labels of n nodes, of K <= 4 classes or
    in K <= 3 columns, as a caller has them. A component is tested with every outcome that it supports.
    turn: where many components are tested together, of this one among them; it then takes its share of the situations.
    """
    kind, makers = kind_of(component), {**EXAMPLES, **(labels or {})}
    advice = "pass labels={OUTCOME: function of n and K that makes labels}"
    if kind == "outcome":
        if component not in makers:
            raise TypeError(f"{component.__name__}: there are no labels to test it with; {advice}")
        case = OutcomeCase(component, makers[component])
        return [Check(promise, case) for promise in OUTCOME_PROMISES]
    found = [
        Check(one.check, case)
        for one in _PROMISES
        if kind in one.kinds
        for case in listed_cases(component, one.rows, makers, turn, classes=one.classes, once=one.once)
    ]
    if not found:
        raise TypeError(f"{component.__name__}: it supports no outcome of g3nn; {advice}")
    return [Check(promises.declarations_are_complete, found[0].case), *found]


def contract_tests(*components: type, labels: Mapping[type[Outcome], LabelsOf] | None = None) -> Callable[..., None]:
    """A test for pytest, parametrised over `checks` of the components. Give it a name that begins with `test_`."""
    import pytest

    listed = [check for component in components for check in checks(component, labels)]

    @pytest.mark.parametrize("check", listed, ids=str)
    def test_contract(check: Check[Case] | Check[OutcomeCase]) -> None:
        check()

    return test_contract
