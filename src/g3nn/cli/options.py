"""Options shared by several commands."""

from __future__ import annotations

from typing import Annotated

import typer

Alpha = Annotated[float, typer.Option(help="Share of the nodes whose set of classes, or interval, may miss the truth.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
ExecutorName = Annotated[str, typer.Option(help="Where to train: local or ray.")]
Keep = Annotated[bool, typer.Option("--keep", help="Answers come with all columns of the node table.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing but notes and errors.")]
Track = Annotated[
    str | None,
    typer.Option(metavar="KIND:PLACE", help="Write every epoch to tensorboard:FOLDER or mlflow:URI meanwhile."),
]

# How two tables are read
CategoricalColumns = Annotated[
    list[str] | None, typer.Option(metavar="COL", help="Column of categories written as numbers. Repeatable.")
]
IgnoredColumns = Annotated[list[str] | None, typer.Option(metavar="COL", help="Column to leave out. Repeatable.")]
SourceColumn = Annotated[
    str | None,
    typer.Option(metavar="COL", help="First end of an edge; by default source, src, from, or the first column."),
]
TargetColumn = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Second end of an edge; by default target, dst, to, or the second column."),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Weights of the edges; by default a column called weight. none: all count alike."),
]
Directed = Annotated[bool, typer.Option("--directed", help="Edges have a direction.")]
NullWords = Annotated[
    list[str] | None, typer.Option(metavar="WORD", help="A further word for an unknown value. Repeatable.")
]
KeepNulls = Annotated[
    bool, typer.Option("--keep-na", help="NA, N/A, nan, null, None, ? and - are values like any other.")
]
DropUnknownEdges = Annotated[
    bool, typer.Option("--drop-unknown-edges", help="Leave out edges whose ids are not in the node table.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Whatever is unusual about a table is an error, not a note.")]
