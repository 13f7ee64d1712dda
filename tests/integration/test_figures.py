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
    "README.md": ["python benchmarks/scarce.py --table results/scarce.jsonl"],
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
        "in a test",
    ],
    "docs/method.md": [STORES["paper"], "python benchmarks/relations.py --table results/relations.jsonl"],
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
        "results/real_values.json",
        "python benchmarks/classifier.py --table results/classifier.json",
        "python benchmarks/any_graph.py --table results/any_graph.json",
        *2 * ["python benchmarks/calibration.py --table results/calibration.json"],
    ],
    "docs/performance.md": ["results/speed-cpu.json results/speed-h200.json", "results/scale.json", "no record"],
    "docs/reproduction.md": [*3 * [STORES["paper"]], *2 * ["in a test"], *3 * [STORES["paper"]]],
    "docs/scale.md": ["results/scale.json", "results/scale.json", "results/batches.json"],
}
"""By document, what each of its tables of figures shows, in their order: a command, or records.

no record: the text says so.
in a test: no command prints it, and a test below compares it with its record.
"""


class Table(NamedTuple):
    document: str
    line: int
    head: str
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
                yield Table(document.relative_to(ROOT).as_posix(), start, lines[start - 1], rows)


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


def record(name: str) -> Any:
    return json.loads((ROOT / "results" / name).read_text())


def figures_below(document: str, heading: str) -> list[list[float]]:
    """The numbers of each row of the first table below this line."""
    text = (ROOT / document).read_text().partition(heading)[2]
    rows = re.search(r"^\|[-:| ]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert rows is not None
    return [numbers(row) for row in rows[1].splitlines()]


def test_damaged_inputs_and_kills_are_counted_as_recorded():
    fuzzed = [[one["inputs"], len(one["findings"]), round(one["seconds"])] for one in record("fuzz.json")]
    assert figures_below("docs/trust.md", "## Damaged and forged inputs") == fuzzed
    killed = [
        [one["kills"], one["hit"]["while"], len(one["faults"]), round(one["seconds"])] for one in record("kills.json")
    ]
    assert figures_below("docs/trust.md", "## Killed processes") == killed


def test_wrong_answers_cost_what_was_recorded():
    """The same seeds with wrong answers and with right ones."""
    runs = [one for one in record("labelling.json") if "learner" in one and one["last"] == 20]
    ends: dict[tuple[Any, ...], float] = {
        tuple(one[name] for name in ("graph", "learner", "wrong", "seed")): one["accuracy"]["20"]
        for one in runs
        if one["strategy"] == "default"
    }
    seeds = {seed for _, _, wrong, seed in ends if wrong}
    assert len(seeds) == 3
    expected = [
        [round(fmean(ends[graph, learner, wrong, seed] for seed in seeds), 3) for learner, wrong in COMPARED]
        for graph in ("cora", "citeseer", "pubmed", "amazon_photo", "chameleon_filtered", "actor")
    ]
    rows = figures_below("docs/labelling.md", "With one answer in ten wrong")
    assert [row[-4:] for row in rows] == expected


COMPARED = [(learner, wrong) for learner in ("gcn-128", "small") for wrong in (0.1, 0.0)]


def test_all_cells_that_differ_from_the_published_ones_are_explained():
    cells = json.loads(printed(STORES["paper"] + " --format json"))["cells"]
    released = [cell["difference"] for cell in cells if cell["objective"] == "released"]
    recorded = [round(difference, 3) for difference in released if abs(difference) > 0.010]
    shown = [
        float(number)
        for table in ALL_TABLES
        if table.document == "docs/reproduction.md" and "difference" in table.head
        for row in table.rows
        for number in re.findall(r"[-+]0\.\d+", row.split("|")[2])
    ]
    assert sorted(shown) == sorted(recorded)


def test_seconds_of_fits_that_were_alone_on_a_device():
    text = (ROOT / "docs" / "own-data-figures.md").read_text()
    found = re.findall(r"(\w+) (\d+) s\b", text.partition("results/default_alone.json")[2].partition("\n\n")[0])
    assert found == [(one["graph"], f"{one['seconds']:.0f}") for one in record("default_alone.json")]


SENTENCES = {
    ("docs/own-data-figures.md", "results/classifier.json"): ("0.024", "0.034", "0.017", "0.031", "0.036", "0.042"),
    ("docs/scale.md", "results/large_tables.json"): ("95.8 %", "12.6 GiB"),
    ("docs/label-noise.md", "results/judged_labels.json"): ("0.034", "0.191"),
    ("docs/noise.md", "results/adaptive_attack_short.json"): ("0.791", "0.831", "0.806", "0.805"),
}
"""By document and the record that a paragraph names, what the paragraph shows of it."""


@pytest.mark.parametrize(("document", "source"), SENTENCES)
def test_a_sentence_shows_what_was_recorded(document, source):
    paragraphs = [" ".join(text.split()) for text in (ROOT / document).read_text().split("\n\n") if source in text]
    for shown in SENTENCES[document, source]:
        assert any(shown in text for text in paragraphs), shown
        assert any(stands_for(shown.split()[0], value) for value in allowed(source, "")), shown


README_SOURCES = {
    "python benchmarks/scarce.py --table results/scarce.jsonl": ("0.193",),
    "python benchmarks/scarce.py --table results/scarce_fourteen.jsonl": ("0.574", "0.489", "0.483"),
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
