"""Checks of the arguments of `fit`. Each records its problems and returns a usable value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from g3nn.base.errors import Problems, any_of, warn_caller
from g3nn.base.options import known_names, rules
from g3nn.graph.outcomes import OUTCOMES
from g3nn.graph.task import NodeTask
from g3nn.model.channels import EdgeChannel
from g3nn.model.generative import Channels, ModelSpec, listed_channels
from g3nn.model.objective import OBJECTIVES, Objective
from g3nn.model.posteriors import POSTERIORS
from g3nn.model.priors import PRIORS, LabelPrior
from g3nn.model.priors.base import FeaturePrior
from g3nn.model.replicas import Replicas, Sizes
from g3nn.training.options import TrainingOptions
from g3nn.training.workers import Workers

if TYPE_CHECKING:
    from g3nn.training.plan import Plan

CUSTOM = "custom"
"""The name of an objective that is no preset."""

_SEED_LIMIT = 2**63
_SEEDS = "a whole number that fits into 64 bits"


def plain(value: object) -> object:
    """numpy scalars as Python numbers, and a sequence with one number for each trial as a tuple of them."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return tuple(plain(one) for one in value)
    return value


def checked_spec(model: object, prior: object, problems: Problems, channels: Channels = None) -> ModelSpec | None:
    """The parts of the model, or None if they are not known. Channels of a `ModelSpec` stay unless others are given."""
    before = len(problems.found)
    if isinstance(model, ModelSpec):
        spec = model if channels is None else replace(model, channels=listed_channels(channels))
        spec.check(problems)
        return spec if len(problems.found) == before else None
    if not (isinstance(prior, type) and issubclass(prior, LabelPrior)):
        problems.name("prior", prior, PRIORS)
    if not isinstance(model, str):
        advice = "A module of your own goes in as g3nn.ModelSpec(posterior=module, likelihood='sbm')."
        problems.add("model", repr(model), "a name such as 'sbm-gcn', or a ModelSpec", advice)
        return None
    spec = ModelSpec("mlp", "sbm")
    with problems.gathered():
        spec = ModelSpec.parse(model)
    spec = replace(spec, channels=listed_channels(channels))
    spec.check(problems)
    return None if len(problems.found) > before else replace(spec, prior=cast("str | type[LabelPrior]", prior))


def check_outcome(
    outcome: str, spec: ModelSpec, objective: Objective, options: Mapping[str, object], problems: Problems
) -> None:
    """Whether model, objective and options make sense for an outcome."""
    spec.check_outcome(outcome, problems)
    if not OUTCOMES[outcome].exclusive and objective.label_use == "plug-in":
        plugged = f"labels plugged into the log-odds, for outcome {outcome!r}"
        problems.add("objective", plugged, "elbo or laplacian", "The authors' code handles classes only.")
    if not OUTCOMES[outcome].exclusive and np.any(objective.evenness_weight):
        problems.add("evenness_weight", f"{objective.evenness_weight!r} for outcome {outcome!r}", "0 but for classes")
    doubts_edges = any(issubclass(one, EdgeChannel) for one in spec.channel_components())
    if doubts_edges and objective.label_use == "plug-in":
        given = f"labels plugged into the log-odds, as released does, with {spec.channel_names!r}"
        problems.add("objective", given, "elbo", "The authors' code has no model of wrong edges.")
    elif doubts_edges and objective.graph_weight == 0:
        given = f"no graph term, as in laplacian, with {spec.channel_names!r}"
        problems.add("objective", given, "elbo", "Without a graph term nothing is said about edges.")
    own = rules(OUTCOMES[outcome].Options)
    for name, value in options.items():
        homes = [home for home, kind in OUTCOMES.items() if name in rules(kind.Options)]
        if homes and name not in own and name not in known_names(spec.option_groups()):
            problems.add(name, f"{value!r} for outcome {outcome!r}", f"outcome {any_of(homes)}")
    if options.get("refine") and "refine" in own and spec.likelihood is None:
        advice = "Without one, nothing but its network says anything about an unlabelled node."
        problems.add("refine", f"true for {spec.name!r}", "a model with a likelihood", advice)


def check_beliefs(task: NodeTask, spec: ModelSpec, problems: Problems) -> None:
    """Whether the task has what the prior needs."""
    prior = spec.components().get("prior")
    if prior is not None and getattr(prior, "uses_beliefs", False) and task.beliefs is None:
        advice = "NodeTask.build(..., beliefs=...) takes them; an estimator makes them with prior=LogisticRegression()."
        problems.add("prior", f"{prior.__name__} for a task without beliefs", "a task with beliefs", advice)


def check_batches(task: NodeTask, plan: Plan, problems: Problems) -> None:
    """Whether this can be trained in batches, if it is to be."""
    spec, objective, training = plan.spec, plan.objective, plan.training
    if not training.batch:
        return
    model = spec.build(Sizes.of(task, plan.options), Replicas((0,)), plan.options)
    steps = model.posterior.steps
    advice = "Train the whole graph at once, with batch=0."
    if steps is None:
        able = any_of(name for name, part in POSTERIORS.items() if part.steps is not None)
        problems.add("posterior", f"{spec.name!r} in batches", able, advice)
    elif len(training.fan_out.split("/")) < steps:
        problems.add("fan_out", repr(training.fan_out), f"{steps} numbers, since {spec.name!r} takes {steps} steps")
    if isinstance(model.prior, FeaturePrior):
        problems.add("prior", f"{spec.prior!r} in batches", "one that does not model the features", advice)
    if objective.pairs == "all" or objective.negatives == "degrees":
        given = f"{objective.pairs}, {objective.negatives}"
        problems.add("pairs, negatives", given, "sampled, and non-edges or uniform")
    if np.any(objective.consistency_weight):
        problems.add("consistency_weight", repr(objective.consistency_weight), "0 in batches", advice)
    if training.validation != "graph":
        problems.add("validation", repr(training.validation), "graph in batches", advice)


def check_workers(
    task: NodeTask, training: TrainingOptions, device: torch.device, workers: Workers, problems: Problems
) -> None:
    """Whether every process has a share of the work, and they can exchange what is on the device."""
    if workers.size == 1:
        return
    labels = len(task.train)
    batches, share = -(-labels // training.batch), labels // workers.size
    if workers.size > batches:
        advice = f"Start at most {batches}" + (f", or use batch={share} or less." if share else ".")
        given = f"{training.batch} for {labels} labelled nodes in {workers.size} processes"
        problems.add("batch", given, "at least one batch for each process", advice)
    if not workers.exchanges(device):
        advice = 'Start the group with the backend "cpu:gloo,cuda:nccl".'
        given = f"{device.type!r} in a process group without a backend for it"
        problems.add("device", given, "one that it has", advice)


def check_kept(training: TrainingOptions, replicas: int, problems: Problems) -> None:
    """Whether the training can be kept in checkpoints: each replica has one of its own."""
    if replicas > 1 and not training.batch:
        advice = "A stack of several is short work; one that is not is trained with trials=1 and ensemble=1."
        given = f"{replicas} networks that train as one stack"
        problems.add("checkpoint", given, "one, or a training in batches", advice)


def warn_without_edges(task: NodeTask) -> None:
    """At the caller of `Plan.fit`, or of the function that called it."""
    if task.num_edges == 0:
        text = "the graph has no edges: the graph term is left out and labels come from the prior p(Y | X)"
        warn_caller(text)


def checked_objective(objective: object, problems: Problems) -> tuple[str, dict[str, object]]:
    """The name of a preset, or "custom" with the fields of an objective of the caller's own."""
    if isinstance(objective, Objective):
        return CUSTOM, {name: plain(value) for name, value in vars(objective).items()}
    problems.name("objective", objective, OBJECTIVES)
    return str(objective), {}


def checked_seeds(trials: object, seed: object, problems: Problems) -> tuple[int, ...]:
    """One for each trial: seed, seed + 1, ..., or the seeds given; empty where a problem was recorded."""
    trials, seed = plain(trials), plain(seed)
    before = len(problems.found)
    counted = isinstance(trials, int) and not isinstance(trials, bool) and trials >= 1
    if not counted:
        problems.add("trials", repr(trials), "a whole number of at least 1")
    if isinstance(seed, tuple):
        if counted and len(seed) != trials:
            problems.add("seed", f"{len(seed)} values", f"one number, or one for each of the {trials} trials")
        wrong = [one for one in seed if not _is_seed(one, 1)]
        if wrong:
            problems.add("seed", repr(wrong[0]), _SEEDS)
        return seed if len(problems.found) == before else ()
    if not _is_seed(seed, trials if isinstance(trials, int) else 0):
        problems.add("seed", repr(seed), _SEEDS)
    if len(problems.found) == before and isinstance(seed, int) and isinstance(trials, int):
        return tuple(range(seed, seed + trials))
    return ()


def _is_seed(seed: object, trials: int) -> bool:
    """Whether `seed` and the numbers after it, one for each trial, fit into 64 bits."""
    return isinstance(seed, int) and not isinstance(seed, bool) and -_SEED_LIMIT <= seed <= _SEED_LIMIT - trials


def checked_device(device: object, problems: Problems) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not isinstance(device, str) or device.partition(":")[0] not in ("cpu", "cuda"):
        problems.name("device", device, ("auto", "cpu", "cuda"))
        return torch.device("cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        problems.add("device", repr(device), "cpu", "torch sees no CUDA device here: use device='cpu' or 'auto'.")
    return torch.device(device)
