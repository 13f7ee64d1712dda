"""What an outcome is called is written where outcomes are defined, and nearly nowhere else."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import g3nn

ROOT = Path(g3nn.__file__).parent
NAMES = ("classes", "tags", "real", "counts")
MOST = 5
"""How often these names may stand for an outcome outside g3nn.graph.outcomes."""

OTHER_MEANINGS = [
    ("cli/datasets.py", "classes", 1, "a column of the table of datasets"),
    ("estimator/showing.py", "tags", 1, "a column of the predictions"),
    ("model/likelihoods/__init__.py", "tags", 1, "the name of a likelihood"),
    ("pages/model_views.py", "classes", 1, "the name of a view"),
    ("pages/model_views.py", "tags", 1, "the name of a view"),
    ("pages/model_views.py", "counts", 1, "a key of the data of a page"),
    ("studies/suite_page.py", "classes", 1, "a column of the table of datasets"),
]
"""File, name, how often it does not mean an outcome there, and what it means. Keys that are looked up, such as
`record["classes"]`, need no line here."""


def _is_table(node: ast.expr) -> bool:
    """Whether a value is looked up in a constant, such as OUTCOMES: then the key is the name of an outcome."""
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).rpartition(".")[2].isupper()


def names_of_outcomes(source: str) -> list[tuple[int, str]]:
    """Line and text of every string constant that is the name of an outcome: no docstring, no key that is looked up."""
    tree = ast.parse(source)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(id(node.value))
        elif isinstance(node, ast.Subscript) and not _is_table(node.value):
            skipped.add(id(node.slice))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "field":
            skipped |= {id(argument) for argument in node.args}  # a field of an Arrow struct
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in skipped)
    return sorted((node.lineno, node.value) for node in constants if node.value in NAMES)


def lines_with_names() -> dict[tuple[str, str], list[int]]:
    """The lines of each file outside g3nn.graph.outcomes that hold each name."""
    lines: dict[tuple[str, str], list[int]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        for line, name in names_of_outcomes(path.read_text(encoding="utf-8")):
            if not file.startswith("graph/outcomes/"):
                lines[file, name].append(line)
    return lines


def test_outcomes_are_named_where_they_are_defined():
    spare = Counter({(file, name): times for file, name, times, _ in OTHER_MEANINGS})
    found = [
        f"{file}:{line} {name!r}"
        for (file, name), lines in lines_with_names().items()
        for line in lines[spare[file, name] :]
    ]
    listed = "\n".join(found)
    assert len(found) <= MOST, f"{len(found)} names of outcomes, {MOST} are allowed:\n{listed}"


@pytest.mark.slow
def test_other_meanings_are_still_there():
    """A line that is out of date would hide the name of an outcome."""
    lines = lines_with_names()
    assert [row for row in OTHER_MEANINGS if len(lines[row[0], row[1]]) < row[2]] == []


NAMED = {
    'outcome = "real"': ["real"],
    'def f(outcome="counts"): pass': ["counts"],
    'if task.outcome in ("real", "tags"): pass': ["real", "tags"],
    'outcome = OUTCOMES["classes"]': ["classes"],
    'outcome = outcomes.OUTCOMES["classes"]': ["classes"],
    'made = {"real": 1}': ["real"],
    '"classes"': [],
    'def f():\n    "tags"': [],
    'record["classes"]["values"]': [],
    'struct.field("counts")': [],
    'text = "classes of nodes"': [],
}


def test_what_counts_as_the_name_of_an_outcome():
    assert {source: [value for _, value in names_of_outcomes(source)] for source in NAMED} == NAMED
