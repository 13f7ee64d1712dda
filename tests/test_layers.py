"""A module imports from its own package or from a layer before it, never from a later one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import g3nn

ROOT = Path(g3nn.__file__).parent

LAYERS = (
    ("errors",),
    ("options",),
    ("kernels",),
    ("sparse",),
    ("parse",),
    ("calibrate",),
    ("outcomes",),
    ("task",),
    ("data",),
    ("replicas",),
    ("inputs",),
    ("networks",),
    ("likelihoods", "priors", "posteriors"),
    ("model",),
    ("pairs",),
    ("objective",),
    ("training",),
    ("catalogue",),
    ("audit",),
    ("estimator",),
    ("experiments",),
    ("report",),
    ("cli",),
)
"""From the bottom up. The parts of one layer do not know each other."""

LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
EXEMPT = {"__init__.py", "__main__.py"}
"""Of the package itself: they only gather what it offers."""

FILES = sorted(path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).as_posix() not in EXEMPT)


def part_of(path: Path) -> str:
    """The first name below g3nn: `kernels` for kernels/cpu.py, `task` for task.py."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_modules(source: str, package: tuple[str, ...]) -> set[str]:
    """Full names of everything imported from g3nn, at any depth of the code. `package` is where the source lives."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "__import__"):
            found |= {argument.value for argument in node.args if isinstance(argument, ast.Constant)}
    return {name for name in found if name.split(".")[0] == "g3nn"}


def allowed(importer: str, imported: str) -> bool:
    return imported == importer or LEVEL.get(imported, len(LAYERS)) < LEVEL[importer]


def test_every_part_has_its_layer():
    assert {part_of(path) for path in FILES} == set(LEVEL)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_point_downwards(path):
    package = ("g3nn", *path.relative_to(ROOT).parent.parts)
    modules = imported_modules(path.read_text(encoding="utf-8"), package)
    assert "g3nn" not in modules, "import the module that defines a name, not the whole package"
    wrong = {name for name in modules if not allowed(part_of(path), name.split(".")[1])}
    assert wrong == set()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import g3nn.task", {"g3nn.task"}),
        ("from g3nn import task", {"g3nn.task"}),
        ("from g3nn.task import NodeTask", {"g3nn.task.NodeTask"}),
        ("from .gcn import GCN", {"g3nn.priors.gcn.GCN"}),
        ("from ..task import NodeTask", {"g3nn.task.NodeTask"}),
        ("from .. import task", {"g3nn.task"}),
        ("def f():\n    from g3nn.cli import app", {"g3nn.cli.app"}),
        ("importlib.import_module('g3nn.cli')", {"g3nn.cli"}),
        ("import numpy, torch.nn", set()),
    ],
)
def test_the_parser_sees_every_form_of_import(source, expected):
    assert imported_modules(source, ("g3nn", "priors")) == expected


@pytest.mark.parametrize(
    ("importer", "imported", "expected"),
    [
        ("model", "priors", True),
        ("priors", "model", False),
        ("priors", "posteriors", False),
        ("priors", "priors", True),
        ("model", "unheard_of", False),
    ],
)
def test_the_rule(importer, imported, expected):
    assert allowed(importer, imported) == expected
