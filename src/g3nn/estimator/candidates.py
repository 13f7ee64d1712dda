"""The models that may be tried: those of the panel, or the one that is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from g3nn.errors import Problem, Problems, suggestion
from g3nn.estimator.numbers import NUMBER_OUTCOMES
from g3nn.model import ModelSpec, registered_options
from g3nn.objective import OBJECTIVES, Objective
from g3nn.options import known_names
from g3nn.outcomes import OUTCOMES
from g3nn.training import TrainingOptions
from g3nn.training.checks import check_outcome, checked_spec
from g3nn.training.plan import Plan

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Candidate:
    """A model, an objective, and the options that set it apart. All as `g3nn.fit` takes them."""

    model: str | ModelSpec
    objective: str | Objective
    options: Options
    prior: Any = "mlp"

    @property
    def name(self) -> str:
        return self.model if isinstance(self.model, str) else self.model.name

    def declared(self, outcome: str = "classes") -> set[str]:
        """The names of all options that mean something to this model."""
        spec = checked_spec(self.model, "mlp", Problems())
        parts = registered_options() if spec is None else spec.option_groups()
        names = set(known_names([*parts, Objective, TrainingOptions, OUTCOMES[outcome].Options]))
        return names - {"refine"} if spec is not None and spec.likelihood is None else names

    def plan(self, common: Options, seeds: Sequence[int], device: str) -> Plan:
        """A checked request for as many replicas as seeds. `common` options are left out where they mean nothing."""
        fitting = {name: value for name, value in common.items() if name != "hidden" or name in self.declared()}
        options = {**fitting, **self.options}
        return Plan.check(self.model, self.objective, len(seeds), seeds, self.prior, device, options)


def panel(K: int, outcome: str = "classes", balance: float = 1.0) -> tuple[Candidate, ...]:
    """Models for graphs whose edges join equals, for graphs whose edges join others, and for edges that say nothing.

    Each is a combination that the paper or measurements found good for one kind of graph. balance: E / |U|, the weight
    of the graph term at which edges and nodes count alike, as in the bound.
    """
    if outcome in NUMBER_OUTCOMES:
        return _number_panel(outcome, balance)
    if outcome == "tags":
        return _tag_panel(balance)
    share = {"graph_weight": 1 / K, "kl_weight": 1 / K}
    others = {"p0": 0.1, "p1": 0.9}
    return (
        Candidate("mlp", "elbo", {}),
        Candidate("gcn", "elbo", {}),
        Candidate("sbm-gcn", "released", {"eta": 0.5}),
        Candidate("sbm-appnp", "elbo", share),
        Candidate("blsm-gcn", "elbo", {"entropy_weight": 0.5}),
        Candidate("gsbm-mlp", "elbo", others),
        Candidate("gsbm-gcn", "elbo", others),
        Candidate("blsm-mlp", "elbo", {"entropy_weight": 0.5}),
    )


def _number_panel(outcome: str, balance: float) -> tuple[Candidate, ...]:
    """Networks alone, and with a likelihood in which nodes with close values are linked.

    On counts near-appnp has been seen to diverge, and was never the best.
    """
    close = {"refine": True, "graph_weight": balance}
    alone = Candidate("mlp", "elbo", {}), Candidate("gcn", "elbo", {})
    joint = ("near-gcn",) if outcome == "counts" else ("near-gcn", "near-appnp")
    return *alone, *(Candidate(name, "elbo", close) for name in joint)


def _tag_panel(balance: float) -> tuple[Candidate, ...]:
    """Networks alone, and with likelihoods in which nodes with equal tags are linked."""
    return (
        Candidate("mlp", "elbo", {}),
        Candidate("gcn", "elbo", {}),
        Candidate("sbm-gcn", "elbo", {}),
        Candidate("tags-gcn", "elbo", {}),
        Candidate("tags-gcn", "elbo", {"refine": True, "graph_weight": balance}),
    )


def candidates(
    model: Any,
    objective: Any,
    options: Options,
    K: int,
    problems: Problems,
    outcome: str = "classes",
    balance: float = 1.0,
) -> tuple[Candidate, ...]:
    """What is to be tried. An option goes to every model of the panel that declares it, and must go to one."""
    given = dict(options)
    prior = given.pop("prior", "mlp")
    if not (isinstance(model, str) and model == "auto"):
        return (Candidate(model, "elbo" if _is_auto(objective) else objective, given, prior),)
    everyone = panel(K, outcome, balance)
    if objective in OBJECTIVES:
        everyone = tuple(
            replace(one, objective=objective) for one in everyone if one.objective == objective or "-" not in one.name
        )
    elif not _is_auto(objective):
        problems.name("objective", objective, ("auto", *OBJECTIVES))
    known = set().union(*(one.declared(outcome) for one in everyone))
    for name in sorted(given.keys() - known):
        allowed = f"one of the options {', '.join(sorted(known))}"
        problems.add(name, repr(given[name]), allowed, suggestion(name, known))
    return tuple(
        replace(one, options={**one.options, **_shared(given, one.declared(outcome))}, prior=prior) for one in everyone
    )


def _shared(given: Options, names: set[str]) -> Options:
    return {name: value for name, value in given.items() if name in names}


def _is_auto(objective: Any) -> bool:
    return isinstance(objective, str) and objective == "auto"


def check_candidates(
    tried: Sequence[Candidate], common: Options, device: str, problems: Problems, outcome: str = "classes"
) -> None:
    """Whether each could be trained; a problem that several share is said once."""
    found: dict[Problem, None] = {}
    for one in tried:
        own = Problems()
        with own.gathered():
            plan = one.plan(common, (0,), device)
            check_outcome(outcome, plan.spec, plan.objective, plan.options, own)
        found.update(dict.fromkeys(own.found))
    problems.found.extend(problem for problem in found if problem not in problems.found)
