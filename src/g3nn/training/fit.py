"""`fit`: from a task and the names of the parts to trained replicas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from g3nn.base.errors import refuse
from g3nn.graph.task import NodeTask
from g3nn.model.generative import Channels, ModelSpec
from g3nn.model.objective import Objective
from g3nn.model.priors import LabelPrior
from g3nn.training.checkpoint import EVERY
from g3nn.training.plan import Plan
from g3nn.training.result import FitResult
from g3nn.training.tracking import Tracker


def fit(
    task: NodeTask,
    model: str | ModelSpec = "sbm-gcn",
    objective: str | Objective = "elbo",
    *,
    trials: int = 1,
    seed: int | Sequence[int] = 0,
    prior: str | type[LabelPrior] = "mlp",
    channels: Channels = None,
    device: str = "auto",
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = EVERY,
    track: Tracker | str | None = None,
    **options: object,
) -> FitResult:
    """Train `trials` replicas at once and evaluate each at its lowest validation loss.

    model:     "likelihood-posterior" (`sbm-gcn`), a posterior alone (`gcn`), or a `ModelSpec` with parts of your own.
    objective: "elbo" (the paper), "released" (the authors' code), "laplacian", or an `Objective`.
    seed:      trial t uses seed + t, or the t-th of several seeds; its result depends on nothing else.
    channels:  how labels and edges were observed, if they may be wrong, such as "flips+edges" (see
               `g3nn.available()`); without any they are true, as in the paper.
    device:    "cpu", "cuda", or "auto" for CUDA where there is one.
    checkpoint: a folder in which the training is kept, at most every `checkpoint_every` seconds. Started again with it,
               an interrupted training goes on and ends as if nothing had happened.
    track:     "tensorboard:FOLDER", "mlflow:URI" or a `g3nn.training.tracking.Tracker`, which receives every epoch.
               The result is the same with it and without.
    options:   anything that the parts, the objective or the training declare, e.g. hidden, lr, eta, p0; see
               `g3nn.available()`. Scalar ones marked per-replica may be sequences with one number for each trial.

    In a process group of torch, with `batch`, its processes train together, and each returns the same result.
    """
    if not isinstance(task, NodeTask):
        refuse("task", type(task).__name__, "a NodeTask", 'g3nn.load("cora") and NodeTask.build(...) give one.')
    plan = Plan.check(model, objective, trials, seed, prior, device, options, channels)
    return plan.fit(task, progress, checkpoint=checkpoint, checkpoint_every=checkpoint_every, track=track)
