"""The joint model p(G | X, Y) p(Y | X) with its posterior q(Y | X, G): the parts, no loss."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from g3nn.base.errors import Problems, any_of, refuse, suggestion
from g3nn.base.options import choice, pick
from g3nn.base.registry import Registry
from g3nn.graph.outcomes import OUTCOMES, Outcome
from g3nn.model.channels import CHANNELS, Channel, EdgeChannel, Emission, LabelChannel
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods import LIKELIHOODS, GraphLikelihood
from g3nn.model.likelihoods.base import ByType
from g3nn.model.posteriors import POSTERIORS, LabelPosterior, ModulePosterior
from g3nn.model.priors import PRIORS, LabelPrior
from g3nn.model.replicas import Replicas, Sizes

PARTS: dict[str, Registry[Any]] = {"likelihood": LIKELIHOODS, "prior": PRIORS, "posterior": POSTERIORS}
REGISTRIES = {**PARTS, "channel": CHANNELS, "outcome": OUTCOMES}
"""Everything that a model is made of, by kind and name."""
Channels = str | type[Channel] | Sequence[str | type[Channel]] | None
"""A channel, several, or names with a plus between them; None and "" for no channel."""
PosteriorSource = str | type[LabelPosterior] | nn.Module | Callable[[], nn.Module]

POSTERIOR, PRIOR, BOTH, SIMILAR = "posterior", "prior", "both", "similar"
"""Which part predicts the label of an isolated node."""


@dataclass(frozen=True)
class ModelOptions:
    isolated_answer: str = choice(
        POSTERIOR,
        (POSTERIOR, PRIOR, BOTH),
        "what predicts isolated nodes: q, the prior p(y | x), or the mean of both",
    )


class GenerativeModel(nn.Module):
    """R replicas of a posterior and, unless the model is discriminative, of a graph likelihood and a label prior; and
    of the channels through which labels and edges were observed, if these may be wrong."""

    def __init__(
        self,
        posterior: LabelPosterior,
        likelihood: GraphLikelihood | ByType | None = None,
        prior: LabelPrior | None = None,
        isolated_answer: str = POSTERIOR,
        channels: Sequence[Channel] = (),
        marked: bool = False,
    ) -> None:
        super().__init__()
        self.posterior = posterior
        self.likelihood = likelihood
        self.prior = prior
        self.isolated_answer = isolated_answer
        self.marked = marked
        self.label_channel = next((one for one in channels if isinstance(one, LabelChannel)), None)
        self.edge_channel = next((one for one in channels if isinstance(one, EdgeChannel)), None)

    @property
    def channels(self) -> list[Channel]:
        return [channel for channel in (self.label_channel, self.edge_channel) if channel is not None]

    def emission(self, outcome: Outcome, members: int = 1) -> Emission:
        """The distribution of observed labels. members: how many replicas in a row are averaged."""
        return outcome if self.label_channel is None else self.label_channel.averaged(members)

    def with_marks(self, answer: Tensor, inputs: Inputs) -> Tensor:
        """An answer of the posterior, with what columns say about edges, if the model explains these."""
        return answer if not self.marked or inputs.marks is None else inputs.marks.heard(answer)

    def predict_log_prob(self, inputs: Inputs) -> Tensor:
        """(R, n, width): the answer in the form of the outcome. q(Y | X, G), or p(Y | X) on a graph without any edge.

        The graph likelihood says nothing about the label of an isolated node, so q and p(Y | X) are two estimates of
        the same thing there: `isolated_answer` chooses between them.
        """
        if self.prior is None:
            return self.posterior.log_prob(inputs.heard, None)
        if inputs.task.num_edges == 0:
            return self.prior.log_prob(inputs, None)
        answer = self.with_marks(self.posterior.log_prob(inputs.heard, None), inputs)
        if self.isolated_answer == POSTERIOR:
            return answer
        isolated = self.prior.log_prob(inputs, None)
        if self.isolated_answer == BOTH:
            # An outcome mixes along the first dimension, node by node.
            isolated = inputs.outcome.mixture(torch.stack([answer, isolated]).flatten(1, 2)).view_as(answer)
        return torch.where(inputs.isolated, isolated, answer)

    @staticmethod
    def join(models: Sequence[GenerativeModel]) -> GenerativeModel:
        """One model with the replicas of several in a row, on the device of the first."""
        if len(models) == 1:
            return models[0]
        joined, states = copy.deepcopy(models[0]), [model.state_dict() for model in models]
        first = states[0]
        joined.restore({name: torch.cat([each[name].to(first[name].device) for each in states]) for name in first})
        return joined

    @torch.no_grad()
    def select(self, keep: Tensor) -> None:
        """Keep only the replicas at these positions, in place. Every parameter and buffer leads with R."""
        self._replace(lambda tensor: tensor[keep].clone())

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Take over a `state_dict` that may hold another number of replicas."""
        R = next(iter(state.values())).shape[0] if state else 0
        self._replace(lambda tensor: tensor.new_empty(R, *tensor.shape[1:]))
        self.load_state_dict(state)

    def _replace(self, change: Callable[[Tensor], Tensor]) -> None:
        """Put something else in the place of every parameter and buffer."""
        for module in self.modules():
            for name, parameter in list(module.named_parameters(recurse=False)):
                changed = nn.Parameter(change(parameter), requires_grad=parameter.requires_grad)
                module.register_parameter(name, changed)
            for name, buffer in list(module.named_buffers(recurse=False)):
                module.register_buffer(name, change(buffer))


@dataclass(frozen=True)
class ModelSpec:
    """Which parts a model is made of: registered names, component classes, or (for q) any PyG module.

    `ModelSpec.parse("sbm-gcn")` is the short form; a name without a likelihood is a discriminative model. Without
    channels what was observed is true, as in the paper.
    """

    posterior: PosteriorSource
    likelihood: str | type[GraphLikelihood] | None = None
    prior: str | type[LabelPrior] = "mlp"
    channels: tuple[str | type[Channel], ...] = ()

    @classmethod
    def parse(cls, name: str) -> ModelSpec:
        """From `likelihood-posterior`, or the name of a posterior alone. Raises with the nearest valid name."""
        likelihood, _, posterior = name.partition("-")
        if name in POSTERIORS:
            return cls(name)
        if likelihood in LIKELIHOODS and posterior in POSTERIORS:
            return cls(posterior, likelihood)
        refuse("model", repr(name), allowed_models(), suggestion(name, model_names()))

    def check(self, problems: Problems) -> None:
        for kind, known in PARTS.items():
            if isinstance(getattr(self, kind), str):
                problems.name(kind, getattr(self, kind), known)
        before = len(problems.found)
        for channel in self.channels:
            if not (isinstance(channel, type) and issubclass(channel, Channel)):
                problems.name("channels", channel, CHANNELS)
        if len(problems.found) > before:
            return
        given, made = self.channel_names, self.channel_components()
        for what, contract in {"labels": LabelChannel, "edges": EdgeChannel}.items():
            if sum(issubclass(channel, contract) for channel in made) > 1:
                problems.add("channels", repr(given), f"one channel of {what}")
        if self.likelihood is None and any(issubclass(channel, EdgeChannel) for channel in made):
            advice = "Without a likelihood nothing says how probable an edge is."
            problems.add("channels", f"{given!r} for {self.name!r}", "a model with a likelihood", advice)

    def check_outcome(self, outcome: str, problems: Problems) -> None:
        """Record every part that cannot serve an outcome, with those that can."""
        parts = [(kind, getattr(self, kind), PARTS[kind]) for kind in self.components()]
        for kind, source, known in [*parts, *(("channels", channel, CHANNELS) for channel in self.channels)]:
            if not serves(known[source] if isinstance(source, str) else source, outcome):
                able = any_of(name for name, part in known.items() if serves(part, outcome))
                problems.add(kind, f"{_name(source)!r} for outcome {outcome!r}", able)

    @property
    def name(self) -> str:
        parts = [_name(part) for part in (self.likelihood, self.posterior) if part is not None]
        return "-".join(parts)

    @property
    def channel_names(self) -> str:
        """With a plus between them."""
        return "+".join(map(_name, self.channels))

    def components(self) -> dict[str, type[GraphLikelihood | LabelPrior | LabelPosterior]]:
        """The classes of the parts that the model has. A module of the caller's own is none of them."""
        kinds = ("posterior",) if self.likelihood is None else tuple(PARTS)
        sources = {kind: getattr(self, kind) for kind in kinds}
        return {
            kind: PARTS[kind][source] if isinstance(source, str) else source
            for kind, source in sources.items()
            if kind != "posterior" or _is_component(source)
        }

    def channel_components(self) -> tuple[type[Channel], ...]:
        """The classes of the channels."""
        return tuple(CHANNELS[channel] if isinstance(channel, str) else channel for channel in self.channels)

    def without_clear_channels(self, options: Mapping[str, object]) -> ModelSpec:
        """The same model without the channels that, with these options, change nothing in any replica."""
        made = zip(self.channels, self.channel_components(), strict=True)
        kept = (channel for channel, component in made if not component.is_clear(pick(options, component.Options)))
        return replace(self, channels=tuple(kept))

    def option_groups(self) -> list[type]:
        """The options classes of the parts."""
        groups = [component.Options for component in self.components().values()]
        groups = groups if self.likelihood is None else [*groups[:2], ModelOptions, *groups[2:]]
        return [*groups, *(channel.Options for channel in self.channel_components())]

    def build(self, sizes: Sizes, replicas: Replicas, options: Mapping[str, object]) -> GenerativeModel:
        """Fresh replicas. Each part takes from `options` those that it declares."""
        parts: dict[str, Any] = {}
        for kind, component in self.components().items():
            scope = replicas.within(kind)
            own: object = pick(options, component.Options)
            if kind == "likelihood" and sizes.types:
                each = [
                    component(replace(sizes, directed=way, types=()), scope.within(name), own)
                    for name, way in sizes.types
                ]
                parts[kind] = ByType(each)  # type: ignore[arg-type]
            else:
                parts[kind] = component(sizes, scope, own)
        if "posterior" not in parts:
            parts["posterior"] = ModulePosterior(sizes, replicas.within("posterior"), self.posterior)  # type: ignore[arg-type]
        channels = [
            component(sizes, replicas.within("channel"), pick(options, component.Options))
            for component in self.channel_components()
        ]
        isolated_answer = pick(options, ModelOptions).isolated_answer
        marked = sizes.marked and self.likelihood is not None
        return GenerativeModel(**parts, isolated_answer=isolated_answer, channels=channels, marked=marked)


def listed_channels(channels: Channels) -> tuple[str | type[Channel], ...]:
    if isinstance(channels, str):
        return tuple(name.strip() for name in channels.replace(",", "+").split("+")) if channels.strip() else ()
    return () if channels is None else tuple(channels) if isinstance(channels, Sequence) else (channels,)


def serves(component: type[GraphLikelihood | LabelPrior | LabelPosterior | Channel], outcome: str) -> bool:
    """Whether a likelihood, prior, posterior or channel can be used with an outcome."""
    return issubclass(OUTCOMES[outcome], component.outcomes)


def allowed_models() -> str:
    """All models, in few words."""
    return f"{', '.join(POSTERIORS)}, or LIKELIHOOD-POSTERIOR with likelihood {', '.join(LIKELIHOODS)}"


def model_names(outcome: str | None = None) -> list[str]:
    """Every model that the registered parts make, for any outcome or for one."""
    wanted = list(OUTCOMES) if outcome is None else [outcome]
    pairs = [
        f"{likelihood}-{posterior}"
        for likelihood, graph in LIKELIHOODS.items()
        for posterior, q in POSTERIORS.items()
        if any(serves(graph, name) and serves(q, name) for name in wanted)
    ]
    return [*(name for name, q in POSTERIORS.items() if any(serves(q, one) for one in wanted)), *pairs]


def registered_options() -> list[type]:
    """The options classes of all registered parts."""
    parts = [part.Options for registry in (*PARTS.values(), CHANNELS) for part in registry.values()]
    return [*parts, ModelOptions]


def _is_component(source: PosteriorSource) -> bool:
    return isinstance(source, str) or (isinstance(source, type) and issubclass(source, LabelPosterior))


def _name(source: Any) -> str:
    if isinstance(source, str):
        return source
    return source.__name__ if hasattr(source, "__name__") else type(source).__name__
