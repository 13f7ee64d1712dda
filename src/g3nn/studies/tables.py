"""A comparison as text, Markdown, LaTeX or JSON."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from g3nn.base.errors import check_name
from g3nn.studies.comparison import CellResult, Comparison
from g3nn.studies.suite import ESTIMATOR, label

REPRODUCED_WITHIN = 0.010
"""A mean at most this far below the published one counts as reproduced."""

DISCRIMINATIVE = "discriminative"

_ESCAPES = str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {character: f"\\{character}" for character in "&%$#_{}"}
)


class Row(NamedTuple):
    """A model, and its cell on each dataset; None where the suite has none."""

    model: str
    variant: str
    cells: list[CellResult | None]


class Layout:
    """One table as the paper prints it: models down, datasets across.

    groups: the rows of the discriminative models, then those of the estimator and of the generative ones under each
    objective, by the name of the group.
    """

    def __init__(self, table: str, setting: str, cells: list[CellResult]) -> None:
        self.table, self.setting, self.cells = table, setting, cells
        self.datasets = list(dict.fromkeys(cell.dataset for cell in cells))
        self.groups: dict[str, list[Row]] = {}
        for name, group in sorted(grouped(cells).items(), key=lambda item: item[0] != DISCRIMINATIVE):
            place = {(cell.model, cell.variant, cell.dataset): cell for cell in group}
            models = dict.fromkeys((model, variant) for model, variant, _ in place)
            self.groups[name] = [Row(*model, [place.get((*model, one)) for one in self.datasets]) for model in models]


class PrintedTable(NamedTuple):
    """One table under one objective.

    groups: the discriminative models, repeated under every objective, then the generative ones. A row is a model and
    the text of its cells.
    """

    title: str
    datasets: list[str]
    groups: list[list[list[str]]]


class Summary:
    """Cells summed up: those of the discriminative models, of the estimator, or of the generative models under one
    objective."""

    def __init__(self, name: str, cells: Sequence[CellResult]) -> None:
        own = [cell for cell in cells if not cell.quoted]
        trials = [cell.trials for cell in own if cell.mean is not None]
        differences = [cell.difference for cell in own if cell.difference is not None]
        underlined = [cell for cell in own if cell.published_underline and cell.above is not None]
        self.name, self.cells, self.measured, self.published = name, len(own), len(trials), len(differences)
        self.close = sum(round(difference, 9) >= -REPRODUCED_WITHIN for difference in differences)
        self.underlined, self.reproduced = len(underlined), sum(cell.underline for cell in underlined)
        self.trials = min(trials, default=0), max(trials, default=0)
        self.failed = sum(cell.failed for cell in own)

    def __str__(self) -> str:
        text = f"{self.name}: {self.measured} of {self.cells} cells measured"
        if self.measured:
            few, many = self.trials
            text += f" with {few if few == many else f'{few} to {many}'} trial{'s' if many > 1 else ''} each"
        if self.published:
            text += f"; {self.close} of {self.published} within {REPRODUCED_WITHIN:.3f} of the published mean or above"
        if self.underlined:
            text += f"; {self.reproduced} of {self.underlined} published underlines reproduced"
        return f"{text}; {self.failed} trials failed" if self.failed else text


def render(comparison: Comparison, format: str = "text") -> str:
    """The comparison in one of `FORMATS`."""
    check_name("format", format, FORMATS)
    return FORMATS[format](comparison)


def layouts(cells: Sequence[CellResult]) -> list[Layout]:
    """The tables in the order of the suite."""
    tables: dict[tuple[str, str], list[CellResult]] = {}
    for cell in cells:
        tables.setdefault((cell.table, cell.setting), []).append(cell)
    return [Layout(*place, members) for place, members in tables.items()]


def grouped(cells: Iterable[CellResult]) -> dict[str, list[CellResult]]:
    """The discriminative models, the estimator, and the generative models under each objective."""
    groups: dict[str, list[CellResult]] = {}
    for cell in cells:
        alone = ESTIMATOR if cell.model == ESTIMATOR else DISCRIMINATIVE
        groups.setdefault(alone if cell.counterpart is None else cell.objective, []).append(cell)
    return groups


def printed_tables(
    comparison: Comparison, write: Callable[[CellResult, str], str], missing: str = "-"
) -> list[PrintedTable]:
    """The tables in the order of the suite, each once for every objective.

    write: the text of a cell that was measured, in a table under an objective. missing: where there is no number.
    """

    def text(cell: CellResult | None, objective: str) -> str:
        if cell is not None and cell.quoted:
            return f"{cell.published:.3f} published"
        return missing if cell is None or cell.mean is None else write(cell, objective)

    printed = []
    for layout in layouts(comparison.cells):
        for objective in dict.fromkeys(cell.objective for cell in layout.cells):
            rows = [
                [[label(row.model, row.variant), *(text(cell, objective) for cell in row.cells)] for row in group]
                for name, group in layout.groups.items()
                if name in (DISCRIMINATIVE, ESTIMATOR, objective)
            ]
            printed.append(PrintedTable(f"Table {layout.table}, {layout.setting}, {objective}", layout.datasets, rows))
    return printed


def summaries(comparison: Comparison) -> list[Summary]:
    """Of each group of models."""
    return [Summary(name, cells) for name, cells in grouped(comparison.cells).items()]


def _noted(cell: CellResult) -> str:
    """Which model was selected and how it compares with its peers, or the figures of another."""
    tests = (f"{peer} {'-' if p is None else f'{p:.1g}'}" for peer, p in cell.peers.items())
    how = " chosen by validation" if cell.counterpart else ""
    text = f"{cell.dataset} {cell.setting}: {cell.label}{how}, {cell.mean:.4f}"
    known = {"NLL": cell.nll, "ECE": cell.ece, **cell.figures} if cell.nll is not None else {}
    if known:
        text += f" ({', '.join(f'{name} {value:.3f}' for name, value in known.items())})"
    return f"{text}; p-values against {', '.join(tests)}" if cell.peers else text


def _text(comparison: Comparison) -> str:
    legend = (
        "b: best of its column. u: above the same network without a graph likelihood. *: significantly so.\n"
        "In brackets: measured minus published."
    )
    return _with_notes(map(_text_table, printed_tables(comparison, _text_cell)), legend, comparison)


def _with_notes(tables: Iterable[str], legend: str, comparison: Comparison, bullet: str = "") -> str:
    noted = (cell for cell in comparison.cells if cell.selected or cell.figures)
    notes = [map(_noted, noted), map(str, summaries(comparison))]
    lists = ["\n".join(f"{bullet}{line}" for line in lines) for lines in notes]
    return "\n\n".join([*tables, legend, *filter(None, lists)]) + "\n"


def _text_table(printed: PrintedTable) -> str:
    header = ["", *printed.datasets]
    widths = [max(map(len, column)) for column in zip(header, *itertools.chain(*printed.groups), strict=True)]
    rule = "-" * (sum(widths) + 2 * len(printed.datasets))
    lines = [printed.title]
    for row in (header, *(row for group in printed.groups for row in ([rule], *group))):
        lines.append("  ".join(map(str.ljust, row, widths)).rstrip())
    return "\n".join(lines)


def _text_cell(cell: CellResult, objective: str) -> str:
    marks = (("b", objective in cell.best_in), ("u", cell.underline), ("*", cell.star))
    shown = "".join(mark for mark, there in marks if there)
    spread = "" if cell.std is None else "±" + f"{cell.std:.3f}".removeprefix("0")
    difference = "" if cell.difference is None else f"({_signed(cell.difference)})"
    return f"{cell.mean:.3f}{spread:5} {shown:3} {difference}".rstrip()


def _signed(value: float) -> str:
    """Three digits, and no minus before a zero."""
    return f"{round(value, 3) + 0.0:+.3f}"


@dataclass(frozen=True)
class _Style:
    """How a markup language writes the parts of a cell."""

    bold: str
    underline: str
    spread: str
    star: str
    difference: str

    def cell(self, cell: CellResult, objective: str) -> str:
        text = f"{cell.mean:.3f}"
        text = self.bold % text if objective in cell.best_in else text
        text = self.underline % text if cell.underline else text
        text += self.spread % cell.std if cell.std is not None else ""
        text += self.star if cell.star else ""
        return text + (self.difference % _signed(cell.difference) if cell.difference is not None else "")


_MARKDOWN = _Style("**%s**", "<u>%s</u>", " ± %.3f", "\\*", " (%s)")
_LATEX = _Style(r"\textbf{%s}", r"\underline{%s}", r" $\pm$ {\small %.3f}", "$^*$", " ($%s$)")


def _markdown(comparison: Comparison) -> str:
    tables = []
    for title, datasets, groups in printed_tables(comparison, _MARKDOWN.cell, "–"):
        rows = [["model", *datasets], ["---"] * (len(datasets) + 1), *itertools.chain(*groups)]
        tables.append("\n".join([f"### {title}", "", *(f"| {' | '.join(row)} |" for row in rows)]))
    legend = (
        "Bold: best of its column. Underlined: above the same network without a graph likelihood, with \\* if "
        "significantly so. In brackets: measured minus published."
    )
    return _with_notes(tables, legend, comparison, bullet="- ")


def _latex(comparison: Comparison) -> str:
    lines = [r"% Needs \usepackage{booktabs}."]
    what = r"mean $\pm$ standard deviation of the test accuracy, in brackets the difference from the published mean"
    for title, datasets, groups in printed_tables(comparison, _LATEX.cell, "--"):
        lines += [r"\begin{table}", r"\centering", rf"\caption{{{title.translate(_ESCAPES)}: {what}.}}"]
        lines += [rf"\begin{{tabular}}{{l{'l' * len(datasets)}}}", r"\toprule"]
        lines.append(" & ".join(["", *(name.translate(_ESCAPES) for name in datasets)]) + r" \\")
        for group in groups:
            lines.append(r"\midrule")
            lines += [" & ".join([model.translate(_ESCAPES), *cells]) + r" \\" for model, *cells in group]
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
    return "\n".join(lines)


def _json(comparison: Comparison) -> str:
    cells = [{name: _plain(value) for name, value in cell.facts().items()} for cell in comparison.cells]
    return json.dumps({"suite": comparison.suite, "cells": cells}, indent=1, allow_nan=False) + "\n"


def _plain(value: object) -> object:
    """Numbers to six digits, and types that JSON has."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return dict(value) if isinstance(value, Mapping) else value


FORMATS: dict[str, Callable[[Comparison], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
    "json": _json,
}
"""Ways to write a comparison, by name."""
