"""`g3nn train`: trials of one model on one benchmark graph."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from g3nn.base.errors import Problems, suggestion
from g3nn.base.options import Rule
from g3nn.cli.datasets import LISTED
from g3nn.cli.options import AsJson, Device, ExecutorName, Track
from g3nn.cli.results import kept
from g3nn.graph.datasets import SETTINGS, load
from g3nn.studies.executors import EXECUTORS
from g3nn.studies.training_ray import SharedTraining
from g3nn.training import FitResult
from g3nn.training.catalogue import all_options
from g3nn.training.checkpoint import EVERY
from g3nn.training.plan import Plan
from g3nn.training.tracking import tracker
from g3nn.training.workers import joined_by_torchrun

_RULES = all_options()


def _option(name: str) -> Any:
    """A flag with the help text of the declared option. Left out, the default of the model's parts applies."""
    return typer.Option(help=f"{_RULES[name].help[0].upper()}{_RULES[name].help[1:]}.", show_default=False)


def train(
    dataset: Annotated[str, typer.Argument(help=f"One of {', '.join(LISTED)}.")],
    setting: Annotated[str, typer.Option(help=f"One of {', '.join(SETTINGS)}.")] = "standard",
    model: Annotated[str, typer.Option(help="LIKELIHOOD-POSTERIOR such as sbm-gcn, or a network alone.")] = "sbm-gcn",
    objective: Annotated[str, typer.Option(help="elbo (the paper), released (the authors' code), laplacian.")] = "elbo",
    trials: Annotated[int, typer.Option(help="Number of independent trainings, run as one stack.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the first trial; the others follow.")] = 0,
    prior: Annotated[str, typer.Option(help="Label prior, such as mlp, linear or uniform.")] = "mlp",
    channels: Annotated[str, typer.Option(help="How labels and edges were observed, such as flips+edges.")] = "",
    hidden: Annotated[int | None, _option("hidden")] = None,
    dropout: Annotated[float | None, _option("dropout")] = None,
    lr: Annotated[float | None, _option("lr")] = None,
    weight_decay: Annotated[float | None, _option("weight_decay")] = None,
    eta: Annotated[float | None, _option("eta")] = None,
    p0: Annotated[float | None, _option("p0")] = None,
    p1: Annotated[float | None, _option("p1")] = None,
    graph_weight: Annotated[float | None, _option("graph_weight")] = None,
    kl_weight: Annotated[float | None, _option("kl_weight")] = None,
    entropy_weight: Annotated[float | None, _option("entropy_weight")] = None,
    prior_weight: Annotated[float | None, _option("prior_weight")] = None,
    laplacian_weight: Annotated[float | None, _option("laplacian_weight")] = None,
    epochs: Annotated[int | None, _option("epochs")] = None,
    patience: Annotated[int | None, _option("patience")] = None,
    batch: Annotated[int | None, _option("batch")] = None,
    fan_out: Annotated[str | None, _option("fan_out")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any other option.")] = None,
    device: Device = "auto",
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder that keeps the training; the same command goes on from there.")
    ] = None,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds between two checkpoints, at least.")] = EVERY,
    executor: ExecutorName = "local",
    workers: Annotated[int | None, typer.Option(help="Processes that train together on a Ray cluster.")] = None,
    track: Track = None,
    as_json: AsJson = False,
) -> None:
    """Train a model and report its accuracy on validation and test nodes.

    Options that are left out keep their defaults; `g3nn.available()` in Python lists all of them. Started by torchrun,
    several processes train one model in batches.
    """
    result = _trained(dict(locals()))
    if result is None:
        return
    text = json.dumps(result.to_json())
    with kept(lambda elsewhere: (elsewhere / "result.json").write_text(text, encoding="utf-8")):
        if as_json:
            print(text, flush=True)
        else:
            _show(result)


def _trained(given: dict[str, Any]) -> FitResult | None:
    """given: the options of the command, by name. None where another process speaks for all."""
    dataset, setting, device, executor, track = (
        given[name] for name in ("dataset", "setting", "device", "executor", "track")
    )
    options = {name: value for name, value in given.items() if name in _RULES and value is not None}
    problems = Problems()
    with problems.gathered():
        options |= _assignments(given["set_"] or [])
    with problems.gathered():
        task = load(dataset, setting=setting)
    with problems.gathered():
        # The device of a cluster is that of its machines.
        place = "cpu" if executor == "ray" else device
        what = given["model"], given["objective"], given["trials"], given["seed"], given["prior"]
        plan = Plan.check(*what, place, options, given["channels"])
    problems.name("executor", executor, EXECUTORS)
    workers = given["workers"]
    if workers is not None and executor != "ray":
        advice = "On one machine torchrun starts several: torchrun --nproc-per-node 2 -m g3nn train ..."
        problems.add("workers", f"{workers} for executor {executor!r}", "executor ray", advice)
    tracked = tracker(track, problems)
    if track is not None and executor == "ray":
        problems.add("track", f"{track!r} for executor 'ray'", "executor local", "Processes on a cluster tell nobody.")
    problems.raise_if_any()
    checkpoint, every = given["checkpoint"], given["checkpoint_every"]
    if executor == "ray":
        reads = partial(load, dataset, setting=setting)
        folder = None if checkpoint is None else checkpoint.absolute()
        return SharedTraining(reads, plan, folder, every).fit(device, workers)
    with joined_by_torchrun(device) as joined:
        if joined.size > 1 and not plan.training.batch:
            advice = "Only a training in batches can be shared: pass --batch, or start one process."
            problems.add("batch", f"0 in {joined.size} processes", "a number of labelled nodes", advice)
        problems.raise_if_any()
        result = plan.fit(task, checkpoint=checkpoint, checkpoint_every=every, track=tracked)
    return result if joined.leads else None


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
