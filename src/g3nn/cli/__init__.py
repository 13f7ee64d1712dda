"""The command line: a thin layer over the library. A command and what it needs are loaded when it is called."""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
import warnings
from ast import literal_eval
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from g3nn.base.errors import G3NNError, G3NNWarning, refuse
from g3nn.base.version import __version__

COMMANDS = {
    "datasets": "Sizes of the benchmark graphs, with the mean number of nodes within two hops.",
    "train": "Train a model and report its accuracy on validation and test nodes.",
    "fit": "Learn from the labels of some nodes and answer for all of them.",
    "label": "Label nodes in a page on this machine, while a model learns and chooses what to ask.",
    "predict": "Answer for the nodes of a table, without a new fit.",
    "bench": "Run suites of experiments and compare them with published results.",
    "reproduce": "Train everything in the paper's tables, print them, and write a report.",
}
"""What `g3nn --help` says about each command, without loading it."""

PACKAGES = (
    "torch",
    "torch_geometric",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "pyarrow",
    "narwhals",
    "polars",
    "pandas",
)
"""`g3nn --version` prints their versions: what computes, and what reads tables. The last two are optional."""

NOTES: list[str] = []
"""The notes that the command has given so far."""

TYPED: list[str] = []
"""What was typed, if the command came from a command line."""

INTERRUPTED = 130
"""The exit code after control-C."""

_ARGUMENT = re.compile(
    r"""(?<![\w-])(?P<name>\w+)=(?P<value>\[.*?\]|"[^"]*"|'[^']*'|True|False)"""
    r"|(?P<place>^(?:  - )?)(?P<about>\w+)(?=: got )",
    re.MULTILINE,
)
"""An argument with its value, or one that a problem is about."""


class _OnDemand(TyperGroup):
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, command(str(name)), rest


def command(name: str) -> TyperCommand | TyperGroup:
    """A command with all its options."""
    found = getattr(import_module(f"g3nn.cli.{name}"), name)
    if not isinstance(found, typer.Typer):
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name)(found)
        found = single
    made = typer.main.get_command(found)
    assert isinstance(made, TyperCommand | TyperGroup)
    return made


app = typer.Typer(
    name="g3nn",
    cls=_OnDemand,
    help="Label the nodes of a partly labelled, noisy graph with a joint generative model.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"g3nn {__version__}")
        print(f"python {platform.python_version()} on {platform.system()} {platform.machine()}")
        for package in PACKAGES:
            try:
                print(package, version(package))
            except PackageNotFoundError:
                print(package, "is not installed")
        raise typer.Exit


@app.callback()
def _options(
    ctx: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the versions of g3nn and of what it uses, and stop.",
            is_eager=True,
            callback=_show_version,
        ),
    ] = False,
) -> None:
    started = os.environ.get("WORLD_SIZE", "1")
    if ctx.invoked_subcommand != "train" and started != "1":
        given = f"{started} processes for `g3nn {ctx.invoked_subcommand}`"
        refuse("torchrun", given, "one", "Only `g3nn train` shares its work among processes.")


for _name, _help in COMMANDS.items():
    app.command(_name, help=_help, short_help=_help)(lambda: None)


def main() -> None:
    """Run a command. Bad input ends with exit code 2 and a message on standard error, never a traceback."""
    NOTES.clear()
    TYPED[:] = ["g3nn", *sys.argv[1:]]
    with warnings.catch_warnings():
        warnings.simplefilter("always", G3NNWarning)
        warnings.showwarning = _note
        try:
            try:
                app()
            except SystemExit as end:
                if end.code == INTERRUPTED:
                    print("interrupted", file=sys.stderr)
                print(end="", flush=True)  # While it can still be said that it fails.
                raise
        except (G3NNError, OSError) as error:
            code = 1 if isinstance(error, BrokenPipeError) else 2  # The reader of a closed pipe has read enough.
            if code == 2 and _speaks("LOCAL_RANK"):
                print(f"error: {said(error)}", file=sys.stderr)
            if _output_fails():
                # Otherwise Python tries again when it ends.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(code) from None


def said(error: Exception) -> str:
    """In one line, a failure of the system too: what it is about, and what is wrong."""
    if not isinstance(error, OSError):
        return with_options(str(error))
    about = error.filename or ("standard output" if _output_fails() else "")
    return ": ".join(filter(None, (str(about), error.strerror or str(error))))


def with_options(text: str) -> str:
    """A message of the library that names options of the command that was typed, not arguments."""
    typed = next((word for word in TYPED[1:] if not word.startswith("-")), "")
    parameters = command(typed).params if typed in COMMANDS else []
    options = {one.name: one for one in parameters if one.opts[0].startswith("-")}

    def named(found: re.Match[str]) -> str:
        one = options.get(found["name"] or found["about"])
        if one is None:
            return found[0]
        flag = one.opts[0]
        if found["about"]:
            return f"{found['place']}{flag}"
        try:
            value = literal_eval(found["value"])
        except (ValueError, SyntaxError):  # Not of our making.
            return found[0]
        words = {"True": "" if getattr(one, "is_flag", False) else "yes", "False": "no", "Ellipsis": ""}
        parts = map(str, value if isinstance(value, list) else [value])
        return " ".join(f"{flag} {words.get(part, shlex.quote(part))}".strip() for part in parts)

    found = re.sub(r"`(\w+)=\.\.\.`", lambda one: f"--{one[1].replace('_', '-')}", text)
    return _ARGUMENT.sub(named, found)


def _output_fails() -> bool:
    try:
        print(end="", flush=True)
    except OSError:
        return True
    return False


def _note(message: Warning | str, *_: object, **__: object) -> None:
    NOTES.append(with_options(str(message)))
    if _speaks("RANK"):
        print(f"note: {NOTES[-1]}", file=sys.stderr)


def _speaks(among: str) -> bool:
    """Whether this is the first of the processes that torchrun started, in all or on this machine; alone, it is."""
    return os.environ.get(among, "0") == "0"
