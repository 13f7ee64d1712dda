"""The panel: which models are tried, as candidates on feature transforms, and how each did."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from g3nn.base.errors import Problem, Problems, suggestion
from g3nn.base.options import known_names
from g3nn.estimator.members import (
    DEGREES,
    PATHS,
    PROPAGATION,
    SPREADING,
    Member,
    Parameters,
    Propagation,
    Surroundings,
    Tabular,
)
from g3nn.graph.outcomes import Outcome, PanelModel
from g3nn.graph.task import NodeTask
from g3nn.graph.transforms import FeatureTransform
from g3nn.model.generative import ModelSpec, registered_options
from g3nn.model.inputs import Part
from g3nn.model.likelihoods import LIKELIHOODS
from g3nn.model.objective import OBJECTIVES, Objective
from g3nn.model.posteriors import POSTERIORS, LabelPosterior
from g3nn.model.priors import LabelPrior
from g3nn.model.tabular import CrossFitted
from g3nn.model.tabular.models import (
    base_rate,
    boosted_trees,
    estimator_name,
    is_boosted,
    linear,
    scaled_linear,
)
from g3nn.training import FitResult, TrainingOptions
from g3nn.training.checks import check_outcome, checked_spec
from g3nn.training.plan import Plan

_WIDE_PRICE = 15.0
"""What an epoch costs, as a multiple of that of gcn, if features are propagated instead of hidden units."""
_NEAR_LABELS = 0.25
"""The share of the cost where only what lies near labels is computed."""
_MOST_TRAVELLING = 1e9
"""Values that may travel along edges in a step, for a panel to try a network that sends whole features."""
_MOST_WORK = 1e9
"""What a model of scikit-learn may cost, which is some minutes."""
_PROPAGATION_EPOCHS = 50
"""Belief propagation takes about as long as this number of epochs."""
_LABELS_FOR_TREES, _LABELS_PER_COLUMN = 50, 10
"""With fewer labels in all, or for each class or column of labels, boosted trees learn nothing."""
_TREES_PRICE, _LINEAR_PRICE, _MOST_COLUMNS = 3.0, 0.05, 500
"""What a label costs for each column and class, and how many columns trees look at."""
_PENALTIES = (0.1, 1.0)
"""Of linear models on paths."""
_USUAL_FEATURES = 10
"""Up to this number the usual penalty suits standardised features."""


@dataclass(frozen=True)
class Candidate:
    """A model, an objective, and the options that set it apart, as `g3nn.fit` takes them; and the name of a view.
    beliefs: whether the network sees those of the task, too, as additional columns. trust: the share of the edges that
    is taken to be genuine.

    neighbours: what it reads of what a node has around it as columns: nothing, "paths" or "degrees".

    Not all candidates are networks. estimator: a model of scikit-learn. asked: whether the caller wants it, whatever it
    costs. A model that is called "propagation" is belief propagation over labels and false edges.
    """

    model: str | ModelSpec
    objective: str | Objective = "elbo"
    options: Parameters = field(default_factory=dict)
    prior: str | type[LabelPrior] = "mlp"
    view: str = "given"
    beliefs: bool = False
    trust: float = 1.0
    estimator: BaseEstimator | None = None
    neighbours: str = ""
    asked: bool = False

    @property
    def name(self) -> str:
        return self.model if isinstance(self.model, str) else self.model.name

    @property
    def is_network(self) -> bool:
        return self.estimator is None and self.model != PROPAGATION

    @property
    def simple(self) -> bool:
        """Whether it is a model that anyone would try first; nothing about it is varied."""
        return not self.is_network or self.model == SPREADING

    @property
    def key(self) -> str:
        """What tells candidates of a panel apart."""
        how = (self.name, self.objective, sorted(self.options.items()), self.view, self.beliefs, self.trust)
        return repr((*how, self.neighbours) if self.neighbours and self.is_network else how)

    @property
    def price(self) -> float:
        """What an epoch of one replica of a network costs, as a multiple of an epoch of gcn."""
        spec = checked_spec(self.model, self.prior, Problems())
        assert spec is not None
        costs = {kind: float(getattr(part, "cost", 0.0)) for kind, part in spec.components().items()}
        own = _WIDE_PRICE if self._sends_features else costs.get("posterior", LabelPosterior.cost)
        own *= _NEAR_LABELS if set(str(self.options.get("fan_out", "all"))) <= set("0/") else 1.0
        price = own * int(self.options.get("samples", 1))
        return float(price + costs.get("likelihood", 0.0))

    @property
    def _sends_features(self) -> bool:
        return bool(self.options.get("travelling") == "features")

    def suits(self, task: NodeTask) -> bool:
        """Whether it costs no more on this graph than a panel can spare."""
        if not self.is_network:
            return self.work(task) <= _MOST_WORK
        return not self._sends_features or 2.0 * task.num_edges * task.num_features <= _MOST_TRAVELLING

    def declared(self, outcome: type[Outcome] | None = None) -> set[str]:
        """The names of all options that mean something to this model."""
        spec = checked_spec(self.model, self.prior, Problems())
        parts = registered_options() if spec is None else spec.option_groups()
        own = [] if outcome is None else [outcome.Options]
        names = set(known_names([*parts, Objective, TrainingOptions, *own]))
        return names - {"refine"} if spec is not None and spec.likelihood is None else names

    def plan(self, common: Parameters, seeds: Sequence[int], device: str) -> Plan:
        """A checked plan for as many replicas as seeds. `common` options are left out where they mean nothing."""
        fitting = {name: value for name, value in common.items() if name != "hidden" or name in self.declared()}
        options = {**fitting, **self.options}
        return Plan.check(self.model, self.objective, len(seeds), seeds, self.prior, device, options)

    def variants(self) -> list[Candidate]:
        """The same with other widths and with less regularisation, as far as the model has these options."""
        known = self.declared() if self.is_network else set()
        changes: list[dict[str, Any]] = [{"dropout": 0.2, "weight_decay": 5e-5}, {"hidden": 256, "dropout": 0.7}]
        return [
            replace(self, options={**self.options, **change})
            for change in changes
            if change.keys() <= known and not change.keys() <= self.options.keys()
        ]

    def train(
        self,
        parts: Sequence[Part],
        view: FeatureTransform,
        outcome: Outcome,
        seed: int,
        neighbourhood: Surroundings | None = None,
    ) -> Member:
        """A candidate that is no network, fitted. parts: tasks with features in this view, or what `neighbourhood`
        makes of them; each has a replica, and several have validation nodes of their own."""
        task, held_out = parts[0][0], None
        if len(parts) > 1:
            held_out = np.stack([np.isin(np.arange(task.num_nodes), part.val) for part, _ in parts])
        if self.estimator is None:
            return Propagation(view=view, share=self.trust, seed=seed, held_out=held_out)
        fitted = CrossFitted.apart(self.estimator, task.features, parts, outcome, seed)
        return Tabular(view=view, name=self.name, fitted=fitted, neighbourhood=neighbourhood, held_out=held_out)

    def work(self, task: NodeTask) -> float:
        """What training one that is no network costs; an epoch of a network costs its price times the extent."""
        if self.estimator is None:
            return _PROPAGATION_EPOCHS * task.extent
        columns = min(task.num_features * (2 if self.neighbours else 1), _MOST_COLUMNS)
        each = _TREES_PRICE if is_boosted(self.estimator) else _LINEAR_PRICE
        return 0.0 if self.asked else each * len(task.train) * columns * max(task.num_classes, 1)


@dataclass(frozen=True)
class PanelEntry:
    """How one candidate did. val_loss: of its averaged replicas after temperature scaling, by which the choice is made.

    Each candidate gets the same single parameter, so that is fair, and it is close to what the answers will be like. A
    candidate that was dropped early has few replicas, and after the first stage few epochs. view: of the features,
    whether what a prior says of them was seen as well, and the share of the edges that was taken to be genuine.
    weight: in the answer for nodes with edges; chosen: whether it answers at all. simple: whether it is a model that
    anyone would try first.
    """

    model: str
    objective: str
    options: Mapping[str, object]
    val_loss: float
    val_score: float
    epochs: int
    chosen: bool = False
    replicas: int = 1
    view: str = "given"
    weight: float = 0.0
    simple: bool = False


@dataclass(frozen=True, eq=False)
class Trial:
    """How a candidate did. nodes: (m,), by whose labels it is judged; answer: (m, width), what its replicas say about
    them. learned: only of one that was trained to the end, since no other answers; None too where it could not be."""

    candidate: Candidate
    learned: FitResult | Member | None = None
    nodes: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    answer: np.ndarray = field(default_factory=lambda: np.zeros(0))
    loss: float = math.inf
    score: float = 0.0
    temperature: float = 1.0
    replicas: int = 0
    epochs: int = 0
    objective: str = ""

    @property
    def complete(self) -> bool:
        return self.learned is not None and self.replicas > 0

    @property
    def entry(self) -> PanelEntry:
        one = self.candidate
        view = one.view + (" + prior" if one.beliefs else "")
        view += f" + {one.neighbours}" if one.neighbours and one.is_network else ""
        view += f", {one.trust:.0%} genuine" if one.trust < 1 else ""
        how = (dict(one.options), self.loss, self.score, self.epochs)
        return PanelEntry(one.name, self.objective, *how, replicas=self.replicas, view=view, simple=one.simple)


def worth_doubting(trials: Sequence[Trial]) -> list[Trial]:
    """All but those that doubt edges although the same model does better if it believes them."""
    believing = {trial.candidate.key: trial.loss for trial in trials if trial.candidate.trust == 1}

    def to_beat(one: Candidate) -> float:
        return math.inf if one.trust == 1 else believing.get(replace(one, trust=1.0).key, math.inf)

    return [trial for trial in trials if trial.loss <= to_beat(trial.candidate)]


_WIDE: dict[str, Any] = {"hidden": 64}
_NORMALISED: dict[str, Any] = {
    "order": 5,
    "dropout": 0.8,
    "feature_dropout": 0.6,
    "sharpening": 0.2,
    "normalise": True,
    "lr": 0.05,
}
"""Parts of the options of the panel's models."""

_JUDGES = ("grand", "sbm-appnp", "hops", "mlp", "gcn")
"""Models of a panel that judge labels: one for each kind of graph. Early epochs are robust to wrong labels."""
_ENOUGH_LABELS, _FEW_LABELS = 20, 10
"""Of each class, with which all terms of a joint model count alike; and below which classes are kept from vanishing."""
_TO_VALIDATE = 2
"""Labels of a class with which one can be left out."""
NONE = "none"
"""The objective of a panel without joint models."""
_OF_JOINT_MODELS = {"eta", "graph_weight", "kl_weight", "entropy_weight", "warm_up"}
"""Options of an objective that a network alone has no use for."""
_PAIRED_CLASSES = 12
"""Up to this number of classes the panel has models that look at all pairs of classes. On 1,000 nodes and 3,000 edges
an epoch of blsm-gcn takes 5 times as long as one of sbm-gcn with 7 classes, 23 times with 32, and 146 times with
100."""


def panel_of(outcome: type[Outcome], columns: int, balance: float, labels: float = math.inf) -> tuple[PanelModel, ...]:
    """The models that are worth trying on an unknown graph, of which so many nodes are trained on; see
    `Outcome.panel`."""
    return outcome.panel(columns, balance) or _for_classes(columns, labels / columns)


def _joint(labels: float, entropy: float) -> dict[str, Any]:
    """Weights of a joint model's terms with so many labels of each class. entropy: that of H(q) where they suffice.

    With few of them a prior learns little from features, and q and the prior drift together to classes of their own;
    the graph says more than the labels do, as in the bound, in which their terms are sums.
    """
    share = min(labels / _ENOUGH_LABELS, 1.0)
    weights = {"kl_weight": share, "graph_weight": share**-0.5, "entropy_weight": 1 - (1 - entropy) * share**2}
    return {**weights, **_even(labels)} if share < 1 else {"entropy_weight": entropy}


def _even(labels: float) -> dict[str, Any]:
    """What keeps classes from vanishing where few labels say what they are like. Other terms of the loss would rather
    have few classes, which are easily told apart."""
    return {"evenness_weight": labels**-2} if labels < _FEW_LABELS else {}


def _two_passes(labels: float) -> dict[str, Any]:
    """Agreement between two noisy passes; with few labels of each class the rare ones would vanish."""
    kept = {"balanced": True, **_even(labels)} if labels < _FEW_LABELS else {}
    return {"samples": 2, "consistency_weight": 1.0, **kept}


def _for_classes(columns: int, labels: float) -> tuple[PanelModel, ...]:
    """Models for homophilous and heterophilous graphs, and for edges that say nothing, the most useful first. labels:
    of each class.

    Each is a combination that the paper or measurements found good for one kind of graph. With many classes `blsm` is
    left out: it looks at every pair of classes for every pair of nodes, and would take nearly all of the time.
    """
    share = {"graph_weight": 1 / columns, "kl_weight": 1 / columns, **_WIDE, **_even(labels)}
    # A network that learns from labels alone loses classes only where nothing can be validated.
    alone = {**_WIDE, **(_even(labels) if labels < _TO_VALIDATE else {})}
    agreeing = {**_WIDE, **_two_passes(labels)}
    far = {**agreeing, "order": 8, "feature_dropout": 0.8}
    near = {**agreeing, "order": 2, "dropout": 0.2, "feature_dropout": 0.0, "sharpening": 0.3}
    late = {"warm_up": 100}
    paired = {**_joint(labels, 0.5), **_WIDE}
    models: tuple[PanelModel, ...] = (
        ("hops", "elbo", _WIDE),
        ("linkx", "elbo", _WIDE),
        ("sbm-appnp", "elbo", share),
        ("grand", "elbo", {**agreeing, **_NORMALISED}),
        ("blsm-grand", "elbo", {**far, **late, **_joint(labels, 0.7)}),
        ("dcsbm-grand", "elbo", {**near, **late, **_joint(labels, 0.5), "isolated_share": 0.3}),
        ("blsm-mlp", "elbo", paired),
        ("gat", "elbo", _WIDE),
        ("blsm-appnp", "elbo", paired),
        ("sage", "elbo", alone),
        ("blsm-linkx", "elbo", paired),
        ("mlp", "elbo", _WIDE),
        ("dcsbm-grand", "elbo", {**far, **late, **_joint(labels, 0.7)}),
        ("blsm-gcn", "elbo", paired),
        ("grand", "elbo", {**agreeing, **_NORMALISED, "travelling": "features", "lr": 0.2}),
        ("gcnii", "elbo", _WIDE),
        ("grand", "elbo", far),
        ("gcn", "elbo", alone),
        ("appnp", "elbo", alone),
        ("sbm-gcn", "released", {"eta": 0.5, **_WIDE}),
        ("gsbm-mlp", "elbo", {"p0": 0.1, "p1": 0.9, **_WIDE}),
        ("gsbm-sage", "elbo", {"p0": 0.1, "p1": 0.9, **_WIDE}),
    )
    if columns <= _PAIRED_CLASSES:
        return models
    return tuple(one for one in models if not one[0].startswith("blsm-"))


def candidates(
    model: str | ModelSpec,
    objective: str | Objective,
    options: Parameters,
    panel: Sequence[Candidate],
    problems: Problems,
    outcome: type[Outcome],
) -> tuple[Candidate, ...]:
    """The one model asked for, or the panel. An option goes to every model that declares it, and must go to one."""
    given = dict(options)
    prior = given.pop("prior", "mlp")
    automatic = isinstance(objective, str) and objective == "auto"
    if not (isinstance(model, str) and model == "auto"):
        return (Candidate(model, "elbo" if automatic else objective, given, prior),)
    everyone = tuple(replace(one, prior=prior) for one in panel)
    if objective in OBJECTIVES:
        everyone = tuple(
            replace(one, objective=objective) for one in everyone if one.objective == objective or "-" not in one.name
        )
    elif not automatic and objective != NONE:
        problems.name("objective", objective, ("auto", NONE, *OBJECTIVES))
    declared = [one.declared(outcome) for one in everyone]
    names = set().union(*declared)
    for name in sorted(given.keys() - names):
        allowed = f"one of the options {', '.join(sorted(names))}"
        problems.add(name, repr(given[name]), allowed, suggestion(name, names))
    return tuple(
        replace(one, options={**one.options, **{name: given[name] for name in given.keys() & own}})
        for one, own in zip(everyone, declared, strict=True)
    )


def check_candidates(
    tried: Sequence[Candidate], common: Parameters, device: str, problems: Problems, outcome: type[Outcome]
) -> None:
    """Whether each could be trained; a problem that several share is reported once."""
    shared: dict[Problem, None] = {}
    for one in tried:
        own = Problems()
        with own.gathered():
            plan = one.plan(common, (0,), device)
            check_outcome(outcome.name, plan.spec, plan.objective, plan.options, own)
        shared.update(dict.fromkeys(own.found))
    problems.found.extend(problem for problem in shared if problem not in problems.found)


def simple_candidates(
    outcome: type[Outcome],
    labels: int,
    columns: int,
    features: int,
    linked: bool,
    prior: BaseEstimator | None = None,
    typed: bool = False,
) -> tuple[Candidate, ...]:
    """What anyone would try first, the quickest first: the base rate, label propagation, linear models and boosted
    trees, the latter two of a node's own features and also of those of its neighbours. columns: how many classes there
    are, or columns of labels. prior: an estimator that takes the place of linear models and trees. typed: whether edges
    have types; the columns of their paths have a common size already."""
    if prior is not None:
        alone = [Candidate(estimator_name(prior), estimator=prior, asked=True)]
    else:
        # With many features, coefficients of the usual size would make answers certain of anything.
        penalties = {1.0, max(1.0, features / _USUAL_FEATURES)}
        alone = [
            Candidate("linear", options={"penalty": round(one, 1)}, estimator=scaled_linear(outcome, one, labels))
            for one in sorted(penalties)
        ]
        if labels >= max(_LABELS_FOR_TREES, _LABELS_PER_COLUMN * columns):
            alone.append(Candidate("trees", estimator=boosted_trees(outcome)))
    around = [replace(one, model=f"{one.name}-neighbours", neighbours=PATHS) for one in alone] if linked else []
    if typed and prior is None:
        paths = [
            Candidate("linear-neighbours", options={"penalty": one}, estimator=linear(outcome, one, labels))
            for one in _PENALTIES
        ]
        degrees = Candidate("linear-degrees", estimator=scaled_linear(outcome, 1.0, labels), neighbours=DEGREES)
        around = [replace(one, neighbours=PATHS) for one in paths] + [
            one for one in around if one.name != paths[0].name
        ]
        around.append(degrees)
    found = [Candidate("base-rate", estimator=base_rate(outcome)), *alone, *around]
    found += [Candidate(SPREADING)] if linked and outcome.exclusive else []
    return tuple(sorted(found, key=lambda one: (not one.asked, one.name.startswith("trees"))))


def networks_alone(tried: Sequence[Candidate], outcome: type[Outcome]) -> tuple[Candidate, ...]:
    """The candidates, with the network in the place of each joint model, and the same options; each once."""
    found: dict[str, Candidate] = {}
    for one in tried:
        if one.is_network and one.name.partition("-")[0] in LIKELIHOODS:
            alone = replace(one, model=one.name.partition("-")[2], objective="elbo")
            known = alone.declared(outcome) - _OF_JOINT_MODELS
            one = replace(alone, options={name: value for name, value in one.options.items() if name in known})
        found.setdefault(one.key, one)
    return tuple(found.values())


def judges(task: NodeTask, quick: bool, seed: int, device: str, joint: bool = True) -> list[Plan]:
    """Plans of those models of the panel that judge labels; where edges have types, of one that reads their paths.
    joint: whether joint models do."""
    if task.relations is not None:
        return [Candidate("mlp", "elbo", _WIDE).plan({}, (seed,), device)]
    balance = task.num_edges / max(task.num_nodes - len(task.train), 1)
    listed = {
        one[0]: Candidate(*one) for one in reversed(panel_of(task.kind, task.num_classes, balance, len(task.train)))
    }
    names = [name for name in _JUDGES if name in listed and (joint or "-" not in name)]
    found = [listed[name].plan({}, (seed,), device) for name in names]
    return found[:2] if quick else found[:4]


def usable(result: FitResult) -> FitResult:
    """Without the replicas that diverged before their first usable epoch."""
    finite = np.flatnonzero(np.isfinite(result.val_loss))
    return result if len(finite) == result.trials else result.select(finite)


_WITH_BELIEFS = 2
"""How many networks are tried a second time, with beliefs as additional columns."""


def with_believers(tried: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The candidates, and the first networks without a likelihood once more, with beliefs as additional columns. Those
    that make use of beliefs come first, as there may not be time for all."""
    without = [one for one in tried if one.name in POSTERIORS]
    joint = [one for one in tried if one.name not in POSTERIORS]
    return (*(replace(one, beliefs=True) for one in without[:_WITH_BELIEFS]), *joint, *without)


def with_paths(tried: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """As many candidates, the first of which read the paths of types that lead away from a node, or the types."""
    near = {**_WIDE, **_two_passes(math.inf), "order": 2, "dropout": 0.5, "sharpening": 0.3}
    narrow = {**_WIDE, "dropout": 0.8}
    paths = [Candidate("mlp", "elbo", _WIDE), Candidate("grand", "elbo", near), Candidate("mlp", "elbo", narrow)]
    first, *others = (replace(one, neighbours=PATHS) for one in paths)
    others.append(Candidate("relational", "elbo", _WIDE))
    spreading = [one for one in tried if one.name == "sbm-appnp"]
    rest = [one for one in tried if one.name != "sbm-appnp"]
    return (first, *spreading, *others, *rest)[: max(len(tried), 1)]


def using_beliefs(tried: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Those of the candidates that make use of beliefs."""
    return tuple(one for one in tried if one.beliefs or one.name not in POSTERIORS)
