"""`g3nn fit`: from a table of nodes and a table of edges to labels, suspicious edges and a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from g3nn.cli import options
from g3nn.cli.options import column, option

LABEL = typer.Option(
    metavar="COL", help="Column with the labels; empty where unknown. Repeatable: a column for each tag."
)


@dataclass(frozen=True, kw_only=True)
class FitOptions(options.TableOptions):
    """Learn from the labels of some nodes and answer for all of them.

    Writes a folder with the model, predictions.parquet, edges.parquet (the least likely edges first), labels.parquet
    (the given labels, the most suspicious first) and report.html to look at. Each row of the predictions has the id,
    the label that was given, its role (train, validation, test or unlabelled) and the answer. Of classes that is label,
    probabilities, entropy, a set of classes that holds the true one 9 times in 10, and has_edges; of tags the likely
    ones and their probabilities; of numbers mean, deviation, and low and high ends of an interval that holds the true
    one 9 times in 10.
    """

    nodes: Annotated[list[Path], options.SEVERAL_NODES]
    edges: Annotated[list[Path], options.SEVERAL_EDGES]
    id: Annotated[str, options.ID]
    label: Annotated[list[str], LABEL]
    out: Path | None = option(
        None,
        "A new or empty folder for the results, or a file for the answers alone: .csv, .parquet or .xlsx.",
        metavar="DIR|FILE",
    )
    split: str | None = column(
        None, "Column of train, val and test; by default one called split. Test labels only judge."
    )
    target_kind: str | None = option(None, "The only kind of nodes that is asked about.", metavar="KIND")
    edges_from: list[str] | None = column(
        None, "Column of names such as A | B: a node for each name, and an edge to it. Repeatable."
    )
    time: str | None = column(
        None,
        "Column of times of nodes, edges or both: the latest labels validate, and no later edge speaks for a label.",
    )
    outcome: str = option(
        "auto",
        "What labels are: classes, tags, real (numbers), counts, or auto: tags in several columns, numbers if there "
        "are fractions or many different whole numbers, else classes.",
    )
    model: str = option("auto", "auto (try a panel of models), or a name such as sbm-gcn.")
    objective: str = option("auto", "auto, elbo, released or laplacian; none tries no joint models.")
    prior: str = option(
        "auto",
        "What learns labels from features alone: auto (a network), trees (boosted trees of scikit-learn), or "
        "linear-model (its logistic, ridge or Poisson regression).",
    )
    effort: str = option("default", "How much is tried: quick, default or thorough.")
    budget: float | None = option(None, "Seconds that may be spent on trying models.")
    denoise: str = option(
        "auto", "Doubt edges that features and labels do not explain: auto (if validation says so), yes or no."
    )
    label_noise: str = option(
        "auto", "Look for wrong labels and train on what they probably are: auto (if many are), yes or no."
    )
    ensemble: int = option(5, "Number of replicas whose answers are averaged.")
    class_weight: str | None = option(None, "How much labels count: balanced, or CLASS=WEIGHT,CLASS=WEIGHT,...")
    recall: options.Recall = None
    precision: options.Precision = None
    alpha: options.Alpha = 0.1
    no_audit: bool = option(False, "Do not judge the edges.", "--no-audit")
    keep: options.Keep = False
    dry_run: bool = option(False, "Say how the tables are read, and stop.", "--dry-run")
    device: options.Device = "auto"
    seed: int = option(0, "Everything random follows from it.")
    track: options.Track = None
    quiet: options.Quiet = False
    as_json: options.AsJson = False

    def run(self) -> None:
        from g3nn.cli.fit_tables import fit_tables  # Here: `g3nn fit --help` loads nothing else.

        fit_tables(self)


fit = options.command_of(FitOptions)
