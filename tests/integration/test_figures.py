"""Every table of figures in the documentation holds what the records under results/ say."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pytest

from g3nn import cli

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NUMBER = re.compile(r"(?<![\w.^-])-?(?:\d[\d,]*)?\.?\d+(?:e-?\d+)?(?![\w^]|\.\d)")
LEAST_DECIMALS = 2
"""A table with fewer numbers that have decimals is not one of figures."""

STORES = {
    name: f"g3nn bench table {name} --store results/{name.replace('-', '_')}.sqlite"
    for name in ("paper", "beyond", "noise", "label-noise")
}
LABELLING = "python benchmarks/labelling.py --table results/labelling.json"

SOURCES: dict[str, list[str]] = {
    "README.md": ["elsewhere"],
    "docs/beyond.md": [
        STORES["beyond"] + " --format json",
        STORES["beyond"] + " --format json",
        STORES["beyond"],
        STORES["beyond"],
        "python benchmarks/without_edges.py --table results/without_edges.json",
        STORES["beyond"],
        STORES["beyond"],
    ],
    "docs/label-noise.md": ["no figures", STORES["label-noise"]],
    "docs/labelling.md": [
        "python benchmarks/updating.py --table results/updating.jsonl",
        *3 * [LABELLING],
        "three of the ten seeds",
    ],
    "docs/method.md": [STORES["paper"]],
    "docs/noise.md": [
        *4 * [STORES["noise"]],
        "python benchmarks/genuine.py --table results/genuine.json",
        "results/added_edges.json",
        "python benchmarks/adaptive_attack.py --table results/adaptive_attack.json",
    ],
    "docs/objective.md": ["python benchmarks/accuracy.py --table results/accuracy.json"],
    "docs/outcomes.md": [
        "results/outcomes.json",
        "results/new_nodes.json",
        "python benchmarks/tags.py --table results/tags.json",
    ],
    "docs/own-data-figures.md": [
        "python benchmarks/classifier.py --table results/classifier.json",
        "python benchmarks/any_graph.py --table results/any_graph.json",
    ],
    "docs/performance.md": ["results/speed-cpu.json results/speed-h200.json", "results/scale.json", "no record"],
    "docs/reproduction.md": [*3 * [STORES["paper"]], *2 * ["no record"], *3 * [STORES["paper"]]],
    "docs/scale.md": ["results/scale.json", "results/scale.json", "results/batches.json"],
}
"""By document, what each of its tables of figures shows, in their order: a command, or records.

elsewhere: measured on graphs that are not in this repository, as the text says. no record: the text says so.
three of the ten seeds: means that no command prints.
"""


class Table(NamedTuple):
    document: str
    line: int
    rows: list[str]


def tables(document: Path) -> Iterator[Table]:
    """The tables of figures outside of code."""
    lines = re.sub(
        r"```.*?```", lambda match: "\n" * match[0].count("\n"), document.read_text(), flags=re.S
    ).splitlines()
    for start, line in enumerate(lines[1:], 1):
        if re.fullmatch(r"\|[-:| ]+\|", line):
            end = start + 1
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            rows = lines[start + 1 : end]
            if sum("." in number for row in rows for number in NUMBER.findall(plain(row))) >= LEAST_DECIMALS:
                yield Table(document.relative_to(ROOT).as_posix(), start, rows)


def plain(row: str) -> str:
    return re.sub(r"</?u>|[*\\`]", "", row).replace("±", " ")


ALL_TABLES = [table for document in DOCUMENTS for table in tables(document)]


@cache
def printed(command: str) -> str:
    """What a command of the documentation prints, in this process: each would take seconds to import what it needs."""
    program, *words = command.split()
    before, said = set(sys.modules), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.chdir(ROOT)
        patch.setattr(sys, "argv", [program, *words] if program == "g3nn" else words)
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        try:
            cli.main() if program == "g3nn" else runpy.run_path(words[0], run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(ROOT / "benchmarks")):
            del sys.modules[name]
    return said.getvalue()


def leaves(record: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """Every number of a record, with the keys and words that say which it is."""
    if isinstance(record, dict):
        words = tuple(str(value) for value in record.values() if isinstance(value, str))
        for key, value in record.items():
            yield from leaves(value, (*path, *words, key))
    elif isinstance(record, list):
        for value in record:
            yield from leaves(value, path)
    elif isinstance(record, int | float) and not isinstance(record, bool):
        yield path, float(record)


def recorded(records: Any) -> list[float]:
    """Every number of the records, and the mean of each group of numbers that differ in a seed or a graph."""
    groups: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for path, number in leaves(records):
        groups[path].append(number)
    return [number for group in groups.values() for number in [*group, fmean(group), min(group), max(group)]]


def stands_for(text: str, value: float) -> bool:
    """Whether `text` is `value` rounded, perhaps in per cent or in thousandths."""
    digits, _, exponent = text.replace(",", "").partition("e")
    half = 0.5 * 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    shown = float(text.replace(",", ""))
    return any(abs(abs(shown) - abs(value) * factor) <= half * 1.02 for factor in (1, 100, 1000))


def numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(plain(text))]


def sections(text: str) -> Iterator[str]:
    """Each line, after the heading that it stands below."""
    heading = ""
    for line in text.splitlines():
        heading = line if line.startswith("#") else heading
        yield f"{heading} {line}"


@cache
def allowed(source: str, name: str) -> list[float]:
    """What may stand in the row of this name: the numbers of the lines that contain it, or all."""
    if source.startswith("results/"):
        return recorded([{file: json.loads((ROOT / file).read_text())} for file in source.split()])
    if source.endswith("--format json"):
        return recorded(json.loads(printed(source)))
    lines = list(sections(printed(source)))
    named = [line for line in lines if name and name in line.lower()]
    return [number for line in named or lines for number in numbers(line)]


@pytest.mark.parametrize("document", sorted(SOURCES))
def test_every_table_of_figures_has_a_source(document):
    assert len([table for table in ALL_TABLES if table.document == document]) == len(SOURCES[document])


def test_no_document_was_overlooked():
    assert {table.document for table in ALL_TABLES} == set(SOURCES)


def with_sources() -> Iterator[Any]:
    for document, sources in SOURCES.items():
        for table, source in zip([table for table in ALL_TABLES if table.document == document], sources, strict=False):
            if source.startswith(("g3nn", "python", "results/")):
                yield pytest.param(table, source, id=f"{document}:{table.line}")


@pytest.mark.parametrize(("table", "source"), list(with_sources()))
def test_a_table_shows_what_was_recorded(table, source):
    wrong = []
    for row in table.rows:
        values = allowed(source, plain(row).split("|")[1].strip().lower())
        cells = " | ".join(plain(row).split("|")[2:])
        for text in NUMBER.findall(cells):
            if "." in text and not any(stands_for(text, value) for value in values):
                wrong.append(f"{text} in {row}")
    assert wrong == []


README_SOURCES = {
    STORES["label-noise"]: ("0.840", "0.766"),
    STORES["noise"]: ("0.840", "0.519"),
    "results/speed-cpu.json": ("46",),
    "results/speed-h200.json": ("121",),
}


def test_sentences_of_the_readme_show_what_was_recorded():
    """All accuracies and speeds; 0.010 is how near a reproduced cell must be."""
    text = re.sub(r"```.*?```|^\|.*?$", "", (ROOT / "README.md").read_text(), flags=re.S | re.M)
    shown = {number for number in NUMBER.findall(plain(text)) if re.fullmatch(r"0\.\d+", number)} - {"0.010"}
    assert shown == {number for expected in README_SOURCES.values() for number in expected if "." in number}
    for source, expected in README_SOURCES.items():
        for number in expected:
            assert number in text
            assert any(stands_for(number, value) for value in allowed(source, "")), (source, number)


@pytest.mark.parametrize(
    ("text", "value", "right"),
    [
        ("0.849", 0.8494, True),
        ("0.849", 0.8501, False),
        ("91.6", 0.9158, True),
        ("91.6", 0.917, False),
        ("8e-5", 8.4e-5, True),
        ("8e-5", 9.2e-5, False),
        ("1,234.5", 1234.46, True),
    ],
)
def test_a_figure_is_its_record_rounded(text, value, right):
    assert stands_for(text, value) == right
