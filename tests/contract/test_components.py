"""Every registered component and outcome keeps its contract. A new one is tested by being registered."""

from __future__ import annotations

import itertools

import pytest

from g3nn.estimator.panel import panel_of
from g3nn.graph.outcomes import OUTCOMES, Classes
from g3nn.model.generative import PARTS, REGISTRIES
from g3nn.testing import checks
from g3nn.testing.situations import EXAMPLES, SITUATIONS, listed_cases

CHECKS = [
    check
    for registry in REGISTRIES.values()
    for turn, component in enumerate(registry.own.values())
    for check in checks(component, turn=turn)
]


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_contract(check):
    check()


@pytest.mark.parametrize("kind", PARTS)
def test_every_component_meets_every_outcome_and_every_pair_of_values(kind):
    for turn, (name, component) in enumerate(PARTS[kind].own.items()):
        met = listed_cases(component, SITUATIONS, EXAMPLES, turn)
        assert {case.outcome for case in met} == {one for one in EXAMPLES if issubclass(one, component.outcomes)}, name
        rows = [(case.directed, case.R, case.K + (not issubclass(case.outcome, Classes))) for case in met]
        pairs = [{(row[a], row[b]) for row in rows} for a, b in itertools.combinations(range(3), 2)]
        looks_at_edges = kind == "likelihood" or (kind == "posterior" and component.uses_graph)
        assert [len(values) for values in pairs] == ([4, 4, 4] if looks_at_edges else [2, 2, 4]), name


def test_every_outcome_has_an_example_of_its_labels():
    assert set(EXAMPLES) == set(OUTCOMES.own.values())


def test_the_panels_of_g3nn_begin_with_networks_that_need_no_graph_and_one():
    for outcome in OUTCOMES.own.values():
        assert {"mlp", "gcn"} <= {model for model, _, _ in panel_of(outcome, 2, 1.5)}
