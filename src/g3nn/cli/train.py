"""`g3nn train`: trials of one model on one benchmark graph."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from g3nn.base.errors import Problems, suggestion
from g3nn.base.options import Rule
from g3nn.cli.options import AsJson, Device, ExecutorName, Options, Track, command_of, option
from g3nn.cli.results import kept
from g3nn.graph.datasets import ALL_DATASETS, SETTINGS, load
from g3nn.studies.executors import EXECUTORS
from g3nn.studies.training_ray import train_on_ray
from g3nn.training import FitResult
from g3nn.training.catalogue import all_options
from g3nn.training.checkpoint import EVERY
from g3nn.training.plan import Plan
from g3nn.training.tracking import tracker
from g3nn.training.workers import joined_by_torchrun

_RULES = all_options()


def _declared(name: str) -> Any:
    """The option of this name that parts of models declare. Left out, the default of the part applies."""
    return option(None, f"{_RULES[name].help[0].upper()}{_RULES[name].help[1:]}.")


@dataclass(frozen=True, kw_only=True)
class TrainOptions(Options):
    """Train a model and report its accuracy on validation and test nodes.

    Options that are left out keep their defaults; `g3nn.available()` in Python lists all of them. Started by torchrun,
    several processes train one model in batches.
    """

    dataset: Annotated[str, typer.Argument(help=f"One of {', '.join(ALL_DATASETS)}.")]
    setting: str = option("standard", f"One of {', '.join(SETTINGS)}.")
    model: str = option("sbm-gcn", "LIKELIHOOD-POSTERIOR such as sbm-gcn, or a network alone.")
    objective: str = option("elbo", "elbo (the paper), released (the authors' code), laplacian.")
    trials: int = option(10, "Number of independent trainings, run as one stack.")
    seed: int = option(0, "Seed of the first trial; the others follow.")
    prior: str = option("mlp", "Label prior, such as mlp, linear or uniform.")
    channels: str = option("", "How labels and edges were observed, such as flips+edges.")
    hidden: int | None = _declared("hidden")
    dropout: float | None = _declared("dropout")
    lr: float | None = _declared("lr")
    weight_decay: float | None = _declared("weight_decay")
    eta: float | None = _declared("eta")
    p0: float | None = _declared("p0")
    p1: float | None = _declared("p1")
    graph_weight: float | None = _declared("graph_weight")
    kl_weight: float | None = _declared("kl_weight")
    entropy_weight: float | None = _declared("entropy_weight")
    prior_weight: float | None = _declared("prior_weight")
    laplacian_weight: float | None = _declared("laplacian_weight")
    epochs: int | None = _declared("epochs")
    patience: int | None = _declared("patience")
    batch: int | None = _declared("batch")
    fan_out: str | None = _declared("fan_out")
    set_: list[str] | None = option(None, "Any other option.", "--set", metavar="NAME=VALUE")
    device: Device = "auto"
    checkpoint: Path | None = option(None, "Folder that keeps the training; the same command goes on from there.")
    checkpoint_every: float = option(EVERY, "Seconds between two checkpoints, at least.")
    executor: ExecutorName = "local"
    workers: int | None = option(None, "Processes that train together on a Ray cluster.")
    track: Track = None
    as_json: AsJson = False

    def run(self) -> None:
        result = self.trained()
        if result is None:
            return
        text = json.dumps(result.to_json())
        with kept(lambda elsewhere: (elsewhere / "result.json").write_text(text, encoding="utf-8")):
            if self.as_json:
                print(text, flush=True)
            else:
                _show(result)

    def trained(self) -> FitResult | None:
        """None in all processes but the first."""
        options = {name: value for name, value in vars(self).items() if name in _RULES and value is not None}
        problems, on_ray = Problems(), self.executor == "ray"
        with problems.gathered():
            options |= _assignments(self.set_ or [])
        with problems.gathered():
            task = load(self.dataset, setting=self.setting)
        with problems.gathered():
            # The device of a cluster is that of its machines.
            place = "cpu" if on_ray else self.device
            what = self.model, self.objective, self.trials, self.seed, self.prior
            plan = Plan.check(*what, place, options, self.channels)
        problems.name("executor", self.executor, EXECUTORS)
        if self.workers is not None and not on_ray:
            advice = "On one machine torchrun starts several: torchrun --nproc-per-node 2 -m g3nn train ..."
            problems.add("workers", f"{self.workers} for executor {self.executor!r}", "executor ray", advice)
        tracked = tracker(self.track, problems)
        if self.track is not None and on_ray:
            advice = "Processes on a cluster are not tracked."
            problems.add("track", f"{self.track!r} for executor 'ray'", "executor local", advice)
        problems.raise_if_any()
        if on_ray:
            folder = None if self.checkpoint is None else self.checkpoint.absolute()
            reads = partial(load, self.dataset, setting=self.setting)
            return train_on_ray(reads, plan, folder, self.checkpoint_every, self.device, self.workers)
        with joined_by_torchrun(self.device) as joined:
            if joined.size > 1 and not plan.training.batch:
                advice = "Only a training in batches can be shared: pass --batch, or start one process."
                problems.add("batch", f"0 in {joined.size} processes", "a number of labelled nodes", advice)
            problems.raise_if_any()
            result = plan.fit(task, checkpoint=self.checkpoint, checkpoint_every=self.checkpoint_every, track=tracked)
        return result if joined.leads else None


train = command_of(TrainOptions)


def _assignments(texts: list[str]) -> dict[str, Any]:
    """NAME=VALUE texts as options, each value of the declared kind."""
    problems, values = Problems(), {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.replace("-", "_")
        if not equals:
            problems.add("--set", repr(text), "NAME=VALUE")
        elif name not in _RULES:
            allowed = f"one of the options {', '.join(sorted(_RULES))}"
            problems.add("--set", repr(name), allowed, suggestion(name, _RULES))
        else:
            values[name] = _read(value, _RULES[name])
    problems.raise_if_any()
    return values


def _read(text: str, rule: Rule) -> Any:
    """The text as a value of the kind that the rule declares; unchanged, for the rule to refuse, if it is not one."""
    if rule.kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        return rule.kind(text)
    except ValueError:
        return text


def _show(result: FitResult) -> None:
    console = Console()
    title = f"{result.model_name} [{result.objective}] on {result.dataset}, {result.setting}"
    table = Table(title=title.replace("[", r"\["))
    for column in ("seed", "test accuracy", "val accuracy", "val loss", "epochs", "status"):
        table.add_column(column, justify="right")
    for t, seed in enumerate(result.seeds):
        scores = (result.test_score[t], result.val_score[t], result.val_loss[t])
        table.add_row(str(seed), *(f"{score:.3f}" for score in scores), str(result.epochs[t]), result.status[t])
    console.print(table)
    spread = f" ± {result.test_score.std(ddof=1):.3f}" if result.trials > 1 else ""
    console.print(f"test {result.outcome.score_title} {result.test_score.mean():.3f}{spread}, {result.seconds:.1f} s")
