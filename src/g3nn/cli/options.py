"""Options shared by several commands."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
DropUnknownEdges = Annotated[
    bool, typer.Option("--drop-unknown-edges", help="Leave out edges whose ids are not in the node table.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Whatever is unusual about a table is an error, not a note.")]
Keep = Annotated[bool, typer.Option("--keep", help="Answers come with all columns of the node table.")]
Track = Annotated[
    str | None,
    typer.Option(metavar="KIND:PLACE", help="Write every epoch to tensorboard:FOLDER or mlflow:URI meanwhile."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing but notes and errors.")]
Alpha = Annotated[float, typer.Option(help="Share of the nodes whose set of classes, or interval, may miss the truth.")]
