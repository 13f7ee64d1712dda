"""The command line: thin, every command a call of the library."""

from __future__ import annotations

import sys
import warnings

import typer

from g3nn.cli.bench import bench
from g3nn.cli.datasets import datasets
from g3nn.cli.fit import fit
from g3nn.cli.predict import predict
from g3nn.cli.reproduce import reproduce
from g3nn.cli.train import train
from g3nn.errors import G3NNError, G3NNWarning

app = typer.Typer(
    name="g3nn",
    help="Label the nodes of a partly labelled, noisy graph with a joint generative model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(datasets)
app.command()(train)
app.command()(fit)
app.command()(predict)
app.add_typer(bench, name="bench")
app.command()(reproduce)


@app.callback()
def _version_option() -> None:
    """Commands share nothing but the name of the program."""


def main() -> None:
    """Run a command. Bad input ends with exit code 2 and a message on standard error, never a traceback."""
    warnings.simplefilter("always", G3NNWarning)
    warnings.formatwarning = _note
    try:
        app()
    except G3NNError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def _note(message: Warning | str, *_: object, **__: object) -> str:
    return f"note: {message}\n"
