"""Options shared by several commands."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
DropUnknownEdges = Annotated[
    bool, typer.Option("--drop-unknown-edges", help="Leave out edges whose ids are not in the node table.")
]
