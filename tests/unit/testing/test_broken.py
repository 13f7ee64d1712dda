"""The contract suite finds what is wrong with a component, and says it."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from g3nn.base.options import NoOptions, number
from g3nn.graph.outcomes import Classes, Outcome, Tags
from g3nn.model.channels import EdgeChannel
from g3nn.model.channels.edges import EdgeOptions
from g3nn.model.likelihoods import ClassLikelihood, GraphLikelihood
from g3nn.model.likelihoods.gsbm import StochasticBlock
from g3nn.model.posteriors.gcn import GCN
from g3nn.model.priors import LabelPrior
from g3nn.testing import checks, contract_tests


class Good(ClassLikelihood):
    """Log-odds of an edge for each pair of classes."""

    uses_features: ClassVar[bool] = False

    def __init__(self, sizes, replicas, options=None):
        super().__init__(sizes, replicas)
        self.odds = replicas.glorot("odds", sizes.classes, sizes.classes)

    def logits(self, state, pairs):
        return self.symmetric(self.odds).unsqueeze(1)


def broken(component: type, *names: str) -> dict[str, str]:
    """The first message of each broken promise, of all promises or those named."""
    found: dict[str, str] = {}
    for check in checks(component):
        if names and check.promise.__name__ not in names:
            continue
        try:
            check()
        except AssertionError as error:
            found.setdefault(check.promise.__name__, str(error))
    return found


def test_a_good_one_passes():
    assert broken(Good) == {}


def test_ends_that_are_told_apart():
    class OneWay(Good):
        """As it should not be."""

        def logits(self, state, pairs):
            return self.odds.unsqueeze(1)

    assert set(broken(OneWay)) == {"the_two_ends_of_an_undirected_pair_are_alike"}


def test_an_expectation_that_is_none():
    class PlugIn(Good):
        """As it should not be."""

        def expected_log_prob(self, state, q, pairs):
            return self.plug_in_score(state, q, pairs)

    assert set(broken(PlugIn)) == {"the_expectation_is_the_sum_over_all_labels"}


def test_edges_that_are_not_normalised():
    class Counted(Good):
        """As it should not be."""

        def log_prob(self, state, pairs):
            rate = self.logits(state, pairs).exp()
            return rate.log() - rate if pairs.present else -rate

    found = broken(Counted, "edges_are_normalised")
    assert "sum to 1, for every pair of labels" in found["edges_are_normalised"]


def test_replicas_that_look_at_each_other():
    class Mean(Good):
        """As it should not be."""

        def logits(self, state, pairs):
            return super().logits(state, pairs) + self.odds.mean()

    found = broken(Mean, "a_stack_equals_single_replicas")
    assert "replicas 0 and 2 change with the parameters of replica 1" in found["a_stack_equals_single_replicas"]


def test_parameters_without_replicas_or_gradient():
    class Shared(Good):
        """As it should not be."""

        def __init__(self, sizes, replicas, options=None):
            super().__init__(sizes, replicas)
            self.bias = torch.nn.Parameter(torch.zeros(7))

    found = broken(Shared, "shapes_lead_with_the_replicas", "every_trained_parameter_gets_a_gradient")
    assert "'bias': (7,)" in found["shapes_lead_with_the_replicas"]
    assert "bias gets no gradient" in found["every_trained_parameter_gets_a_gradient"]


def test_declarations_that_are_not_true():
    class Wrong(Good):
        """As it should not be."""

        uses_features: ClassVar[bool] = True

    assert "other features do not change it" in broken(Wrong)["features_matter_as_declared"]

    class Deaf(GCN):
        """As it should not be."""

        uses_graph: ClassVar[bool] = False

    assert "other edges change it" in broken(Deaf, "edges_matter_as_declared")["edges_matter_as_declared"]


def test_a_prior_that_is_not_normalised_and_depends_on_the_place_of_a_node():
    class Placed(LabelPrior):
        """As it should not be."""

        uses_features: ClassVar[bool] = False

        def __init__(self, sizes, replicas, options=None):
            super().__init__(sizes, replicas)
            self.share = replicas.zeros(sizes.classes)

        def log_prob(self, inputs, noise):
            place = torch.arange(inputs.n, dtype=self.share.dtype)
            return -self.share.square().unsqueeze(1) - place[:, None]

    found = broken(Placed, "shapes_lead_with_the_replicas", "renumbering_the_nodes_renumbers_the_answer")
    assert set(found) == {"shapes_lead_with_the_replicas", "renumbering_the_nodes_renumbers_the_answer"}


def test_options_without_a_description_outside_their_limits_or_of_another_kind():
    def told(**fields: Any) -> str:
        options = dataclasses.make_dataclass("O", [(name, Any, one) for name, one in fields.items()], frozen=True)
        part = type("Part", (Good,), {"__doc__": "One.", "Options": options})
        return broken(part, "declarations_are_complete")["declarations_are_complete"]

    assert "wide has no description" in told(wide=number(1.0, ""))
    assert "wide: its default 3.0 is not a number between 0 and 1" in told(wide=number(3.0, "how wide", low=0, high=1))
    assert "hidden is of another kind" in told(hidden=number(3.0, "how wide"))


def test_a_component_that_raises_is_a_broken_promise():
    class Fails(Good):
        """As it should not be."""

        def logits(self, state, pairs):
            raise ValueError("no odds today")

    assert all("ValueError: no odds today" in message for message in broken(Fails).values())


def test_an_outcome_that_shows_hidden_labels():
    class Leaky(Tags):
        """As it should not be."""

        def as_inputs(self, targets):
            return targets.values

    found = checks(Leaky, {Leaky: lambda n, K: np.arange(n * K).reshape(n, K) % 4 // 2})
    leak = next(check for check in found if check.promise.__name__ == "targets_hide_what_training_may_not_see")
    declared = next(check for check in found if check.promise.__name__ == "declarations_are_complete")
    with pytest.raises(AssertionError, match="a hidden label is an input"):
        leak()
    with pytest.raises(AssertionError, match=r"install your package, with its entry point in the group g3nn\.outcomes"):
        declared()


@pytest.mark.slow
def test_a_channel_that_loses_probability_and_is_never_clear():
    class Leaky(EdgeChannel):
        """As it should not be."""

        Options = EdgeOptions
        clear: ClassVar[dict[str, float]] = {"false": 0.0}

        def __init__(self, sizes, replicas, options=None):
            super().__init__(sizes, replicas)
            self.seen = torch.nn.Parameter(torch.zeros(replicas.size, 2), requires_grad=False)

        def log_emission(self, present):
            return -self.seen[:, :1].exp(), -self.seen[:, 1:].exp()

    found = broken(Leaky)
    assert set(found) == {"what_is_seen_is_normalised", "a_clear_channel_changes_nothing"}
    assert "of an edge and of none" in found["what_is_seen_is_normalised"]


def test_what_cannot_be_tested_is_refused():
    with pytest.raises(
        TypeError, match="is not a class derived from GraphLikelihood, LabelPrior, LabelPosterior, Channel or"
    ):
        checks(NoOptions)
    with pytest.raises(TypeError, match="there are no labels to test it with; pass labels="):
        checks(type("New", (Classes,), {}))

    class OfNobody(GraphLikelihood):
        outcomes: ClassVar[tuple[type[Outcome], ...]] = (type("Other", (Tags,), {}),)

    with pytest.raises(TypeError, match="it supports no outcome of g3nn; pass labels="):
        checks(OfNobody)


def test_one_component_alone_meets_every_situation():
    """Among many it takes a share of them."""
    alone, among = ({str(check) for check in checks(StochasticBlock, turn=turn)} for turn in (None, 0))
    assert among < alone
    assert "StochasticBlock-classes-directed-R1-K4-the_expectation_has_the_right_gradient" in alone


def test_the_test_for_pytest_is_parametrised():
    (mark,) = contract_tests(Good).pytestmark
    assert mark.args[0] == "check"
    assert [str(check) for check in mark.args[1]] == [str(check) for check in checks(Good)]
