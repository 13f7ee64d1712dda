"""A module imports from its own package or from a layer before it, never from a later one, and never in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import networkx as nx
import pytest

import g3nn

ROOT = Path(g3nn.__file__).parent

LAYERS = (
    "base",
    "kernels",
    "graph",
    "model",
    "training",
    "queries",
    "pages",
    "estimator",
    "labelling",
    "studies",
    "testing",
    "cli",
)
"""From the bottom up."""

LEVEL = {part: level for level, part in enumerate(LAYERS)}
EXEMPT = {"__init__.py", "__main__.py"}
"""Of the package itself: they only gather what it offers."""

FILES = sorted(path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).as_posix() not in EXEMPT)


def part_of(path: Path) -> str:
    """The first name below g3nn: `kernels` for kernels/cpu.py, `task` for task.py."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


class WithoutTypeChecking(ast.NodeTransformer):
    """Leaves out what only a type checker sees."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            return [self.visit(statement) for statement in node.orelse]
        return self.generic_visit(node)


def imported_modules(source: str, package: tuple[str, ...], when_run: bool = False) -> set[str]:
    """Full names of everything imported from g3nn, at any depth of the code. `package` is where the source lives.

    when_run: leave out what is imported for a type checker alone.
    """
    found: set[str] = set()
    tree = ast.parse(source)
    for node in ast.walk(WithoutTypeChecking().visit(tree) if when_run else tree):
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
    assert len(LAYERS) <= 12


def package_of(path: Path) -> tuple[str, ...]:
    return ("g3nn", *path.relative_to(ROOT).parent.parts)


def test_imports_point_downwards():
    wrong = []
    for path in FILES:
        for name in imported_modules(path.read_text(encoding="utf-8"), package_of(path)):
            # A name taken from the whole package says nothing about the module that defines it.
            if "." not in name or not allowed(part_of(path), name.split(".")[1]):
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong, "\n".join(wrong)


def circles(sources: Mapping[str, tuple[str, tuple[str, ...]]]) -> list[str]:
    """One circle of imports of each group of modules that need each other, as "a -> b -> a".

    sources: by the full name of a module, its text and the package that it lives in. A package is imported by whoever
    takes a name from it that is no module, not by its own modules merely because they are in it.
    """
    graph = nx.DiGraph()
    for module, (source, package) in sources.items():
        for name in imported_modules(source, package, when_run=True):
            while name not in sources and "." in name:
                name = name.rpartition(".")[0]
            graph.add_edge(module, name)
    found = []
    for group in sorted(sorted(group) for group in nx.strongly_connected_components(graph)):
        if len(group) > 1 or graph.has_edge(group[0], group[0]):
            steps = nx.find_cycle(graph.subgraph(group), group[0])
            found.append(" -> ".join([*(module for module, _ in steps), steps[0][0]]))
    return found


def all_sources() -> dict[str, tuple[str, tuple[str, ...]]]:
    """By the full name of each module, its text and the package that it lives in."""
    sources = {}
    for path in ROOT.rglob("*.py"):
        package = package_of(path)
        module = ".".join(package if path.stem == "__init__" else (*package, path.stem))
        sources[module] = path.read_text(encoding="utf-8"), package
    return sources


@pytest.mark.slow
def test_no_imports_go_in_a_circle():
    """Imports inside functions count: they hide a circle, they do not remove it."""
    found = circles(all_sources())
    assert not found, "\n".join(found)


KERNELS = ("g3nn", "kernels")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("from g3nn.kernels.two import f", "from g3nn.kernels import one", True),
        ("from .two import f", "def f():\n    from .one import g", True),
        ("import g3nn.kernels.two", "import g3nn.kernels.one", True),
        ("from g3nn.kernels import two", "if TYPE_CHECKING:\n    from g3nn.kernels import one", False),
        ("from g3nn.kernels import two", "if TYPE_CHECKING:\n    x = 1\nelse:\n    from .one import g", True),
        ("from g3nn.kernels import two", "import numpy", False),
        ("from g3nn.kernels import f", "", True),
    ],
)
def test_a_circle_is_found_however_it_is_written(one, other, expected):
    sources = {
        "g3nn.kernels": ("from g3nn.kernels.one import g\nfrom g3nn.kernels.two import f", KERNELS),
        "g3nn.kernels.one": (one, KERNELS),
        "g3nn.kernels.two": (other, KERNELS),
        "g3nn.above": ("from g3nn.kernels import f", ("g3nn",)),
    }
    found = circles(sources)
    assert bool(found) == expected
    assert all(circle.split(" -> ")[0] == circle.split(" -> ")[-1] for circle in found)


IMPORTS = {
    "import g3nn.task": {"g3nn.task"},
    "from g3nn import task": {"g3nn.task"},
    "from g3nn.task import NodeTask": {"g3nn.task.NodeTask"},
    "from .gcn import GCN": {"g3nn.priors.gcn.GCN"},
    "from ..task import NodeTask": {"g3nn.task.NodeTask"},
    "from .. import task": {"g3nn.task"},
    "def f():\n    from g3nn.cli import app": {"g3nn.cli.app"},
    "importlib.import_module('g3nn.cli')": {"g3nn.cli"},
    "import numpy, torch.nn": set(),
}


def test_the_parser_sees_every_form_of_import():
    assert {source: imported_modules(source, ("g3nn", "priors")) for source in IMPORTS} == IMPORTS


def test_the_rule():
    assert allowed("model", "graph")
    assert allowed("model", "model")
    assert not allowed("graph", "model")
    assert not allowed("model", "training")
    assert not allowed("model", "unknown")


UNCHECKED = {
    "g3nn.base.parse.Matrix": "scipy has no types, and an array may be sparse or dense",
    "g3nn.base.parse.is_networkx": "networkx has no types",
    "g3nn.base.parse.linked": "networkx has no types",
    "g3nn.estimator.base.GraphEstimator": "parameters as the caller gave them",
    "g3nn.estimator.estimators.estimator_for": "parameters as the caller gave them",
    "g3nn.estimator.panel.Candidate": "options as the caller gave them",
    "g3nn.estimator.panel.candidates": "options as the caller gave them",
    "g3nn.estimator.panel.check_candidates": "options as the caller gave them",
    "g3nn.estimator.problem.COMMON": "default values of parameters, of several types",
    "g3nn.estimator.problem.check_parameters": "parameters as the caller gave them",
    "g3nn.estimator.problem.read_problem": "parameters as the caller gave them",
    "g3nn.kernels.compiled.kernel": "numba has no types",
    "g3nn.labelling.project.Project": "what a file says, as JSON has it",
    "g3nn.labelling.tables.check_unchanged": "options as the caller gave them",
    "g3nn.labelling.tables.read_unlabelled": "options as the caller gave them",
}
"""What other packages use although `Any` is in its signature, and why."""


class Signatures:
    """What the modules of a package define, take from each other, and say of its types.

    sources: by the full name of a module, its text and the package that it lives in.
    """

    def __init__(self, sources: Mapping[str, tuple[str, tuple[str, ...]]]) -> None:
        self.imports = {
            module: {name.rpartition(".")[2]: name for name in sorted(imported_modules(*source))}
            for module, source in sources.items()
        }
        self.defined = {
            f"{module}.{name}": node
            for module, (source, _) in sources.items()
            for node in ast.parse(source).body
            if (name := name_of(node))
        }
        self.packages = {module: package[1:2] for module, (_, package) in sources.items()}
        self.public: dict[str, set[str]] = {}
        for full in self.defined:
            module, _, name = full.rpartition(".")
            if not name.startswith("_"):
                self.public.setdefault(module, set()).add(full)

    def origin(self, module: str, name: str) -> str:
        """The full name of what a module calls by a name, which may come from another module."""
        full = f"{module}.{name}"
        other = self.imports.get(module, {}).get(name, full)
        return full if full in self.defined or other == full else self.origin(*other.rpartition(".")[::2])

    def used_by_others(self) -> set[str]:
        """What some other package imports: names, or modules with all that is public in them."""
        found = set()
        for module, names in self.imports.items():
            for name in names.values():
                if tuple(name.split(".")[1:2]) != self.packages[module]:
                    inside = self.public.get(name)
                    found |= inside or {self.origin(*name.rpartition(".")[::2])}
        return found

    def is_unchecked(self, full: str, known: frozenset[str] = frozenset()) -> bool:
        """Whether `Any` is in a signature, or a name that stands for it and is not among those `known`."""
        module = full.rpartition(".")[0]
        for part in types_of(self.defined.get(full)):
            for node in ast.walk(part):
                if isinstance(node, ast.Name):
                    other = self.origin(module, node.id)
                    alias = isinstance(self.defined.get(other), ast.Assign) and other not in {full, *known}
                    if node.id == "Any" or (alias and self.is_unchecked(other, known | {full})):
                        return True
        return False


def name_of(node: ast.AST) -> str:
    """The name that a statement defines; empty if there is none."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        return target.id if isinstance(target, ast.Name) else ""
    return getattr(node, "name", "")


def types_of(node: ast.AST | None) -> Iterator[ast.AST]:
    """The annotations of a function, a variable or the public parts of a class; what another name for a type means."""
    if isinstance(node, ast.ClassDef):
        for part in node.body:
            if not isinstance(part, ast.Assign) and (not name_of(part).startswith("_") or name_of(part) == "__init__"):
                yield from types_of(part)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from (part for part in (node.returns, *(one.annotation for one in arguments_of(node))) if part)
    elif isinstance(node, ast.AnnAssign):
        yield node.annotation
    elif isinstance(node, ast.Assign):
        yield node.value


def arguments_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [part for part in ast.walk(node.args) if isinstance(part, ast.arg)]


def unchecked(sources: Mapping[str, tuple[str, tuple[str, ...]]], known: Iterable[str] = ()) -> set[str]:
    signatures = Signatures(sources)
    return {name for name in signatures.used_by_others() if signatures.is_unchecked(name, frozenset(known) - {name})}


def test_signatures_between_packages_have_types():
    assert unchecked(all_sources(), UNCHECKED) == set(UNCHECKED)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(x: Any) -> int: ...", True),
        ("def f(*x: int, y: dict[str, Any]) -> int: ...", True),
        ("def f(x: int) -> Other: ...", True),
        ("def f(x: int) -> object:\n    y: Any = x", False),
        ("class f:\n    x: Any", True),
        ("class f:\n    def g(self) -> list[Any]: ...", True),
        ("class f:\n    def _g(self) -> Any: ...", False),
        ("f: dict[str, Any] = {}", True),
        ("def g(x: Any) -> int: ...\ndef f(x: int) -> int: ...", False),
    ],
)
def test_a_signature_without_types_is_found(source, expected):
    sources = {
        "g3nn.base.one": (f"Other = list[Any]\n{source}", ("g3nn", "base")),
        "g3nn.base": ("from g3nn.base.one import f", ("g3nn", "base")),
        "g3nn.graph.two": ("from g3nn.base import f", ("g3nn", "graph")),
    }
    assert unchecked(sources) == ({"g3nn.base.one.f"} if expected else set())
