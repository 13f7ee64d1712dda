"""What the page of a suite needs, and what it must not wait for."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import g3nn.report

FOLDER = Path(g3nn.report.__file__).parent
HEAVY = ("torch", "torch_geometric", "numba", "sklearn")


def imported(name: str) -> set[str]:
    """The modules of this package that a module imports."""
    modules = set()
    for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "g3nn.report":
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("g3nn.report."):
            modules.add(node.module.removeprefix("g3nn.report."))
    return modules


def needed(name: str, on_the_way: tuple[str, ...] = ()) -> set[str]:
    """The same, and what these import in turn."""
    assert name not in on_the_way, f"{name} imports itself by way of {on_the_way}"
    return {name}.union(*(needed(other, (*on_the_way, name)) for other in imported(name)))


def test_a_page_of_stored_results_needs_no_heavy_package():
    code = f"import sys, g3nn.report; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_two_pages_share_what_is_below_them():
    assert needed("page") == {"page", "views", "assets", "averages"}
    assert needed("page") & needed("model_page") == {"assets", "averages"}
