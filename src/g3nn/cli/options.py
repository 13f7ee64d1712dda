"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
DropUnknownEdges = Annotated[
    bool, typer.Option("--drop-unknown-edges", help="Leave out edges with ids that no node has.")
]
