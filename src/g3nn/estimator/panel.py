"""The panel: candidates, which are models on views of the features, how each did, and what trying them may cost."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from g3nn.base.errors import Problem, Problems, suggestion
from g3nn.base.options import known_names
from g3nn.estimator.members import PROPAGATION, Propagation, Tabular
from g3nn.graph.outcomes import Outcome, PanelModel
from g3nn.graph.task import NodeTask
from g3nn.model.generative import ModelSpec, registered_options
from g3nn.model.objective import OBJECTIVES, Objective
from g3nn.model.posteriors import POSTERIORS, LabelPosterior
from g3nn.model.priors import PRIORS
from g3nn.model.tabular import NAMED, CrossFitted, Neighbourhood
from g3nn.model.tabular.models import check_feature_model, estimator_name
from g3nn.training import FitResult, TrainingOptions
from g3nn.training.checks import check_outcome, checked_spec
from g3nn.training.plan import Plan
from g3nn.training.room import LARGE

Options = Mapping[str, Any]
_WIDE_PRICE = 15.0
"""What an epoch costs, as a multiple of that of gcn, if features are propagated instead of hidden units."""
_NEAR_LABELS = 0.25
"""The share of the cost where only what lies near labels is computed."""
_MOST_TRAVELLING = 1e9
"""Values that may travel along edges in a step, for a panel to try a network that sends whole features."""
_PROPAGATION_EPOCHS = 50
"""Belief propagation takes about as long as this number of epochs."""
_LABELS_FOR_TREES, _LABELS_PER_COLUMN = 200, 40
"""With fewer labels in all, or for each class or column of labels, boosted trees are not worth their time."""


@dataclass(frozen=True)
class Candidate:
    """A model, an objective, and the options that set it apart, as `g3nn.fit` takes them; and the name of a view.
    beliefs: whether the network sees those of the task, too, as additional columns. trust: the share of the edges that
    is taken to be genuine.

    Not all candidates are networks. estimator: a model of scikit-learn, of the features of a node alone, or with
    `neighbours` also of the mean over its neighbours. asked: whether the caller wants it, whatever it costs. A model
    that is called "propagation" is belief propagation over labels and false edges.
    """

    model: str | ModelSpec
    objective: str | Objective = "elbo"
    options: Options = field(default_factory=dict)
    prior: Any = "mlp"
    view: str = "given"
    beliefs: bool = False
    trust: float = 1.0
    estimator: Any = None
    neighbours: bool = False
    asked: bool = False

    @property
    def name(self) -> str:
        return self.model if isinstance(self.model, str) else self.model.name

    @property
    def is_network(self) -> bool:
        return self.estimator is None and self.model != PROPAGATION

    @property
    def key(self) -> str:
        """What tells candidates of a panel apart."""
        return repr((self.name, self.objective, sorted(self.options.items()), self.view, self.beliefs, self.trust))

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
        """Whether an epoch on this graph costs no more than a panel can spare."""
        return not self._sends_features or 2.0 * task.num_edges * task.num_features <= _MOST_TRAVELLING

    def declared(self, outcome: type[Outcome] | None = None) -> set[str]:
        """The names of all options that mean something to this model."""
        spec = checked_spec(self.model, self.prior, Problems())
        parts = registered_options() if spec is None else spec.option_groups()
        own = [] if outcome is None else [outcome.Options]
        names = set(known_names([*parts, Objective, TrainingOptions, *own]))
        return names - {"refine"} if spec is not None and spec.likelihood is None else names

    def plan(self, common: Options, seeds: Sequence[int], device: str) -> Plan:
        """A checked plan for as many replicas as seeds. `common` options are left out where they mean nothing."""
        fitting = {name: value for name, value in common.items() if name != "hidden" or name in self.declared()}
        options = {**fitting, **self.options}
        return Plan.check(self.model, self.objective, len(seeds), seeds, self.prior, device, options)

    def variants(self) -> list[Candidate]:
        """The same with other widths and with less regularisation, as far as the model knows them."""
        known = self.declared() if self.is_network else set()
        changes: list[dict[str, Any]] = [{"dropout": 0.2, "weight_decay": 5e-5}, {"hidden": 256, "dropout": 0.7}]
        return [
            replace(self, options={**self.options, **change})
            for change in changes
            if change.keys() <= known and not change.keys() <= self.options.keys()
        ]

    def train(self, task: NodeTask, outcome: Outcome, seed: int, weights: np.ndarray | None) -> Tabular | Propagation:
        """What is learned by a candidate that is no network. weights: (n,), how often each label counts."""
        if self.estimator is None:
            return Propagation(self.trust, seed)
        neighbourhood = Neighbourhood.fit(task.features, task.edges) if self.neighbours else None
        columns = task.features
        if neighbourhood is not None:
            columns = neighbourhood.apply(columns, task.edges, task.weights)
        own = None if weights is None else weights[task.train]
        fitted, _ = CrossFitted.fit(
            self.estimator, columns, task.labels, task.train, outcome, folds=3, seed=seed, weights=own
        )
        return Tabular(self.name, fitted, neighbourhood)

    def work(self, task: NodeTask) -> float:
        """What training one that is no network costs; an epoch of a network costs its price times the extent."""
        if self.estimator is None:
            return _PROPAGATION_EPOCHS * task.extent
        columns = min(task.num_features, 2000) * (2 if self.neighbours else 1)
        return 0.0 if self.asked else 10.0 * len(task.train) * columns * max(task.num_classes, 1)


@dataclass(frozen=True)
class PanelEntry:
    """How one candidate did. val_loss: of its averaged replicas after temperature scaling, by which the choice is made.

    Each candidate gets the same single parameter, so that is fair, and it is close to what the answers will be like. A
    candidate that was dropped early has few replicas, and after the first stage few epochs. view: of the features,
    whether what a prior says of them was seen as well, and the share of the edges that was taken to be genuine.
    weight: in the answer for nodes with edges; chosen: whether it answers at all.
    """

    model: str
    objective: str
    options: Mapping[str, Any]
    val_loss: float
    val_score: float
    epochs: int
    chosen: bool = False
    replicas: int = 1
    view: str = "given"
    weight: float = 0.0


@dataclass(frozen=True, eq=False)
class Trial:
    """How a candidate did. nodes: (m,), by whose labels it is judged; answer: (m, width), what its replicas say about
    them. learned: only of one that was trained to the end, since no other answers; None too where it could not be."""

    candidate: Candidate
    learned: FitResult | Tabular | Propagation | None = None
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
        view += f", {one.trust:.0%} genuine" if one.trust < 1 else ""
        how = (dict(one.options), self.loss, self.score, self.epochs)
        return PanelEntry(one.name, self.objective, *how, replicas=self.replicas, view=view)


def worth_doubting(trials: Sequence[Trial]) -> list[Trial]:
    """All but those that doubt edges although the same model does better if it believes them."""
    believing = {trial.candidate.key: trial.loss for trial in trials if trial.candidate.trust == 1}

    def to_beat(one: Candidate) -> float:
        return math.inf if one.trust == 1 else believing.get(replace(one, trust=1.0).key, math.inf)

    return [trial for trial in trials if trial.loss <= to_beat(trial.candidate)]


def candidates(
    model: Any,
    objective: Any,
    options: Options,
    panel: Sequence[PanelModel],
    problems: Problems,
    outcome: type[Outcome],
) -> tuple[Candidate, ...]:
    """The one model asked for, or the panel. An option goes to every model that declares it, and must go to one."""
    given = dict(options)
    prior = given.pop("prior", "mlp")
    automatic = isinstance(objective, str) and objective == "auto"
    if not (isinstance(model, str) and model == "auto"):
        return (Candidate(model, "elbo" if automatic else objective, given, prior),)
    everyone = tuple(Candidate(*one, prior=prior) for one in panel)
    if objective in OBJECTIVES:
        everyone = tuple(
            replace(one, objective=objective) for one in everyone if one.objective == objective or "-" not in one.name
        )
    elif not automatic:
        problems.name("objective", objective, ("auto", *OBJECTIVES))
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
    tried: Sequence[Candidate], common: Options, device: str, problems: Problems, outcome: type[Outcome]
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


def table_candidates(
    outcome: type[Outcome], labels: int, columns: int, linked: bool, prior: Any = None
) -> tuple[Candidate, ...]:
    """Boosted trees by themselves and with the means over neighbours, where there are labels enough for them. columns:
    how many classes there are, or columns of labels. prior: an estimator that takes their place."""
    if prior is not None:
        alone = Candidate(estimator_name(prior), estimator=prior, asked=True)
    elif labels < max(_LABELS_FOR_TREES, _LABELS_PER_COLUMN * columns):
        return ()
    else:
        alone = Candidate("trees", estimator=NAMED["trees"](outcome))
    return (alone, replace(alone, model=f"{alone.name}-neighbours", neighbours=True)) if linked else (alone,)


def usable(result: FitResult) -> FitResult:
    """Without the replicas that diverged before their first usable epoch."""
    finite = np.flatnonzero(np.isfinite(result.val_loss))
    return result if len(finite) == result.trials else result.select(finite)


AUTO, GIVEN = "auto", "given"
_DEFAULT = "mlp"
_WITH_BELIEFS = 2
"""How many networks are tried a second time, with beliefs as additional columns."""


@dataclass(frozen=True)
class SavedPrior:
    """The estimator that was the prior of a saved model, in words: its class and its parameters."""

    name: str
    parameters: Mapping[str, str]

    @classmethod
    def of(cls, estimator: Any) -> SavedPrior:
        return cls(type(estimator).__name__, {name: repr(value) for name, value in estimator.get_params().items()})


def feature_model(prior: Any) -> Any:
    """The estimator that is to learn p(y | x), None if the prior is no such thing."""
    return None if isinstance(prior, str | SavedPrior) else prior


def asked_prior(prior: Any) -> str | None:
    """The name of the prior of every joint model, None if nothing was asked for that exists."""
    if isinstance(prior, str):
        return prior if prior in PRIORS and prior != GIVEN else None
    return GIVEN


def check_prior(parameters: Mapping[str, Any], outcome: type[Outcome], problems: Problems) -> None:
    """Record what is wrong with the prior by itself, and together with the model and the options."""
    prior, model, options = (parameters[name] for name in ("prior", "model", "options"))
    other = options.get("prior") if isinstance(options, Mapping) else None
    if isinstance(prior, SavedPrior):
        advice = f"The model was loaded: it answers, but to fit it again pass a new {prior.name} as prior."
        problems.add("prior", f"the description of a saved {prior.name}", "a name or an estimator", advice)
        return
    if isinstance(prior, str):
        problems.name("prior", prior, (AUTO, *(name for name in PRIORS if name != GIVEN)))
        if other == GIVEN:
            advice = "Pass what gives the beliefs: prior=LogisticRegression()."
            problems.add("options['prior']", repr(other), "any other prior", advice)
        if prior == AUTO:
            return
    else:
        check_feature_model(prior, outcome, problems)
        spec = None if model == AUTO else checked_spec(model, _DEFAULT, Problems())
        if spec is not None and spec.likelihood is None:
            advice = "Name a model with a likelihood, such as 'sbm-gcn', or leave model='auto'."
            given = f"{estimator_name(prior)} for model {spec.name!r}, which has no likelihood"
            problems.add("prior", given, "a model that has a prior", advice)
    if other is not None:
        problems.add("prior", f"a prior beside options['prior'], {other!r}", "one of them")
    if isinstance(model, ModelSpec) and model.prior != _DEFAULT:
        problems.add("prior", "a prior beside that of a ModelSpec", "one of them")


def with_believers(tried: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The candidates, and the first networks without a likelihood once more, with beliefs as additional columns. Those
    that make use of beliefs come first, as there may not be time for all."""
    without = [one for one in tried if one.name in POSTERIORS]
    joint = [one for one in tried if one.name not in POSTERIORS]
    return (*(replace(one, beliefs=True) for one in without[:_WITH_BELIEFS]), *joint, *without)


def using_beliefs(tried: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Those of the candidates that make use of beliefs."""
    return tuple(one for one in tried if one.beliefs or one.name not in POSTERIORS)


@dataclass(frozen=True)
class Effort:
    """models: how many of those that an outcome lists are tried. views: of the features, at most; all but the first are
    tried with the `leading` models. varied: how many of the best are tried again with other widths and less
    regularisation. kept: how many train to the end, with `replicas` each. work: how much a CPU does; see `Spending`."""

    views: int
    models: int
    leading: int
    varied: int
    kept: int
    replicas: int
    work: float


EFFORTS = {
    "quick": Effort(views=2, models=5, leading=3, varied=0, kept=3, replicas=1, work=0.55),
    "default": Effort(views=4, models=15, leading=8, varied=4, kept=8, replicas=3, work=2.2),
    "thorough": Effort(views=6, models=99, leading=16, varied=10, kept=14, replicas=5, work=22.0),
}
_WORK = 1e6
"""What a CPU may do on a graph with an extent of 1: a panel takes longer on a larger graph, but not in proportion."""
_FOR_TRAINING = 0.92
"""The share of a budget in which models are trained; the rest is for weights and calibration."""
_EACH_EPOCH = 11_000
"""The extent that an epoch seems to have on a CPU, whatever the graph is like."""
_TRIES = 4
"""On a large graph one training could take all that a CPU may do. So in the share for models there is room for so many
short ones."""
_FEWEST_SHORT, _FEWEST_LONG = 30, 100
"""Epochs that any training may take, short or to the end."""
MODELS = 0.36
"""The share of what may be spent until all models have been tried once."""


@dataclass
class Spending:
    """What trainings have cost, and what may be spent: seconds, or work, or as much as they take.

    Work is epochs of all replicas times the extent of the graph times the price of a model. Other than seconds it does
    not depend on how busy a machine is, so that the same fit takes the same decisions again. A GPU has no limit.
    """

    seconds: float | None = None
    work: float | None = None
    large: bool = False
    start: float = field(default_factory=time.monotonic)
    worked: float = 0.0

    @classmethod
    def of(cls, effort: Effort, budget: float | None, task: NodeTask, on_cpu: bool) -> Spending:
        if budget is not None:
            return cls(seconds=_FOR_TRAINING * float(budget))
        if not on_cpu:
            return cls()
        # Beyond what is large, hours would be spent: there it grows more slowly.
        grown = math.sqrt(min(task.extent, LARGE)) * max(1.0, task.extent / LARGE) ** 0.25
        return cls(work=effort.work * _WORK * grown, large=task.extent > LARGE)

    def short_epochs(self, price: float, task: NodeTask, most: int) -> int:
        """How long a model is tried."""
        return self._epochs(MODELS / _TRIES, price, task, _FEWEST_SHORT, most)

    def long_epochs(self, price: float, task: NodeTask, most: int) -> int:
        """How long a model is trained to the end: on a large graph with what is left."""
        left = 1.0 - self.worked / self.work if self.work else 1.0
        return self._epochs(left, price, task, _FEWEST_LONG, most)

    def _epochs(self, share: float, price: float, task: NodeTask, fewest: int, most: int) -> int:
        if self.work is None or not self.large:
            return most
        return min(most, max(fewest, int(share * self.work / (price * (task.extent + _EACH_EPOCH)))))

    def charge(self, price: float, epochs: int, task: NodeTask) -> None:
        """For so many epochs, all replicas counted."""
        self.worked += price * epochs * (task.extent + _EACH_EPOCH)

    def allows(self, share: float = 1.0) -> bool:
        """Whether less than this share of the whole has been spent."""
        if self.seconds is not None:
            return time.monotonic() - self.start < share * self.seconds
        return self.work is None or self.worked < share * self.work

    def deadline(self, share: float) -> float | None:
        """When this share of the time will be over, on the clock of `time.monotonic`."""
        return None if self.seconds is None else self.start + share * self.seconds
