"""`g3nn fit`: from a table of nodes and a table of edges to labels, suspicious edges and a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from g3nn.cli import options

_TABLE = "CSV, Parquet or Excel (.xlsx)"


def fit(
    nodes: Annotated[Path, typer.Option(metavar="FILE", help=f"Table with one row per node: {_TABLE}.")],
    edges: Annotated[Path, typer.Option(metavar="FILE", help=f"Table with one row per edge: {_TABLE}.")],
    id: Annotated[str, typer.Option(metavar="COL", help="Column of the node table with the ids.")],
    label: Annotated[
        list[str],
        typer.Option(
            metavar="COL", help="Column with the labels; empty where unknown. Repeatable: a column for each tag."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR|FILE",
            help="A new or empty folder for the results, or a file for the answers alone: .csv, .parquet or .xlsx.",
        ),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="Column of words, which become TF-IDF features. Repeatable.")
    ] = None,
    categorical: options.CategoricalColumns = None,
    ignore: options.IgnoredColumns = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="Column of train, val and test; by default one called split. Test labels only judge."
        ),
    ] = None,
    source: options.SourceColumn = None,
    target: options.TargetColumn = None,
    weight: options.WeightColumn = None,
    directed: options.Directed = False,
    outcome: Annotated[
        str,
        typer.Option(
            help="What labels are: classes, tags, real (numbers), counts, or auto: tags in several columns, numbers if "
            "there are fractions or many different whole numbers, else classes."
        ),
    ] = "auto",
    na: options.NullWords = None,
    keep_na: options.KeepNulls = False,
    drop_unknown_edges: options.DropUnknownEdges = False,
    strict: options.Strict = False,
    model: Annotated[str, typer.Option(help="auto (try a panel of models), or a name such as sbm-gcn.")] = "auto",
    objective: Annotated[str, typer.Option(help="auto, elbo, released or laplacian.")] = "auto",
    prior: Annotated[
        str,
        typer.Option(
            help="Who learns labels from features alone: auto (a network), trees (boosted trees of scikit-learn), or "
            "linear-model (its logistic, ridge or Poisson regression)."
        ),
    ] = "auto",
    effort: Annotated[str, typer.Option(help="How much is tried: quick, default or thorough.")] = "default",
    budget: Annotated[float | None, typer.Option(help="Seconds that may be spent on trying models.")] = None,
    denoise: Annotated[
        str,
        typer.Option(
            help="Doubt edges that features and labels do not explain: auto (if validation says so), yes or no."
        ),
    ] = "auto",
    label_noise: Annotated[
        str,
        typer.Option(help="Look for wrong labels and train on what they probably are: auto (if many are), yes or no."),
    ] = "auto",
    ensemble: Annotated[int, typer.Option(help="Number of replicas whose answers are averaged.")] = 5,
    alpha: options.Alpha = 0.1,
    no_audit: Annotated[bool, typer.Option("--no-audit", help="Do not judge the edges.")] = False,
    keep: options.Keep = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how the tables are read, and stop.")] = False,
    device: options.Device = "auto",
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    track: options.Track = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Learn from the labels of some nodes and answer for all of them.

    Writes a folder with the model, predictions.parquet, edges.parquet (the least likely edges first), labels.parquet
    (the given labels, the most suspicious first) and report.html to look at. Each row of the predictions has the id,
    the label that was given, its role (train, validation, test or unlabelled) and the answer. Of classes that is label,
    probabilities, entropy, a set of classes that holds the true one 9 times in 10, and has_edges; of tags the likely
    ones and their probabilities; of numbers mean, deviation, and low and high ends of an interval that holds the true
    one 9 times in 10.
    """
    given = dict(locals())
    from g3nn.cli.fit_tables import fit_tables  # Here: `g3nn fit --help` loads nothing else.

    fit_tables(given)
