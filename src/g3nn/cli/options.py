"""Options shared by several commands, and commands whose options are the fields of a dataclass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, TypeVar, get_type_hints

import typer

T = TypeVar("T")

Alpha = Annotated[float, typer.Option(help="Share of the nodes whose set of classes, or interval, may miss the truth.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
DropUnknownEdges = Annotated[
    bool, typer.Option("--drop-unknown-edges", help="Leave out edges whose ids are not in the node table.")
]
ExecutorName = Annotated[str, typer.Option(help="Where to train: local or ray.")]
Keep = Annotated[bool, typer.Option("--keep", help="Answers come with all columns of the node table.")]
Precision = Annotated[
    str | None,
    typer.Option(help="CLASS=SHARE: likewise, so that this share of the chosen nodes is of a class."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing but notes and errors.")]
Recall = Annotated[
    str | None,
    typer.Option(help="CLASS=SHARE: a column says which nodes to choose to find this share of a class."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Whatever is unusual about a table is an error, not a note.")]
Track = Annotated[
    str | None,
    typer.Option(metavar="KIND:PLACE", help="Write every epoch to tensorboard:FOLDER or mlflow:URI meanwhile."),
]
NODES = typer.Option(metavar="FILE", help="Table with one row per node: CSV, Parquet, Excel (.xlsx) or JSON.")
EDGES = typer.Option(metavar="FILE", help="Table with one row per edge: CSV, Parquet, Excel (.xlsx) or JSON.")
SEVERAL_NODES = typer.Option(metavar="FILE", help=f"{NODES.help} Repeatable: a file for each kind of nodes.")
SEVERAL_EDGES = typer.Option(metavar="FILE", help=f"{EDGES.help} Repeatable: a file for each type of edges.")
ID = typer.Option(metavar="COL", help="Column of the node table with the ids.")


@dataclass(frozen=True)
class Options(ABC):
    """The options of a command, and what it does with them."""

    @abstractmethod
    def run(self) -> None: ...


def option(default: T, help: str, *names: str, metavar: str | None = None) -> T:
    """A field of a dataclass that is an option of a command."""
    return field(default=default, metadata={"option": typer.Option(*names, metavar=metavar, help=help)})


def column(default: T, help: str) -> T:
    """An option that names a column."""
    return option(default, help, metavar="COL")


def command_of(options: type[Options]) -> Callable[..., None]:
    """A command with the fields of a dataclass as options and its docstring as help."""
    hints = get_type_hints(options, include_extras=True)

    def parameter(one: Field[object]) -> Parameter:
        hint = Annotated[hints[one.name], one.metadata["option"]] if one.metadata else hints[one.name]
        default = Parameter.empty if one.default is MISSING else one.default
        return Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)

    def command(**given: object) -> None:
        options(**given).run()

    command.__doc__ = options.__doc__
    command.__signature__ = Signature([parameter(one) for one in fields(options)])  # type: ignore[attr-defined]
    return command


def as_list(files: list[Path] | Path | None) -> list[Path]:
    return files if isinstance(files, list) else [] if files is None else [files]


@dataclass(frozen=True, kw_only=True)
class TableOptions(Options):
    """How two tables are read: the arguments of `read_tables` that commands share."""

    nodes: list[Path] | Path | None
    edges: list[Path] | Path | None
    id: str | None
    label: list[str] | str | None
    text: list[str] | None = column(None, "Column of words, which become TF-IDF features. Repeatable.")
    categorical: list[str] | None = column(None, "Column of categories written as numbers. Repeatable.")
    ignore: list[str] | None = column(None, "Column to leave out. Repeatable.")
    source: str | None = column(None, "First end of an edge; by default source, src, from, or the first column.")
    target: str | None = column(None, "Second end of an edge; by default target, dst, to, or the second column.")
    weight: str | None = column(None, "Weights of the edges; by default a column called weight. none: all count alike.")
    edge_type: str | None = column(
        None, "Types of the edges; by default a column of few texts called type or relation. none: all are alike."
    )
    kind: str | None = column(
        None, "Kinds of the nodes; by default a column of few texts called kind or type. none: all are alike."
    )
    directed: bool = option(False, "Edges have a direction.", "--directed")
    na: list[str] | None = option(None, "A further word for an unknown value. Repeatable.", metavar="WORD")
    keep_na: bool = option(False, "NA, N/A, nan, null, None, ? and - are values like any other.", "--keep-na")
    drop_unknown_edges: DropUnknownEdges = False
    strict: Strict = False
