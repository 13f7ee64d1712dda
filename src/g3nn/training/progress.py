"""A progress bar with the current terms, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from g3nn.training.stack import Stack

_SHOWN = {"graph": "graph", "supervised": "sup", "val_loss": "val", "val_score": "score"}
_EVERY = 10


Watch = Callable[[Stack, int], None]
"""Called after each step, with the number of trials that it finished."""


@contextmanager
def monitor(title: str, trials: int, show: bool | None) -> Iterator[Watch]:
    """A bar that counts finished trials. `show`: None shows it only on a terminal."""
    if show is False or (show is None and not sys.stderr.isatty()):
        yield lambda stack, finished: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=10), MofNCompleteColumn())
    with Progress(
        *columns, TextColumn("{task.fields[terms]}"), TimeElapsedColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        job = bar.add_task(title, total=trials, terms="")

        def update(stack: Stack, finished: int) -> None:
            if finished or stack.epoch % _EVERY == 0:
                latest = stack.latest
                values = " ".join(f"{short} {latest[name]:.2f}" for name, short in _SHOWN.items())
                bar.update(job, advance=finished, terms=f"epoch {stack.epoch} {values}")

        yield update
