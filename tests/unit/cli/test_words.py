"""Messages of the library name its arguments; on the command line they name options."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import g3nn
from g3nn.cli import with_options

OF_OTHERS = {"pip download", "--only-binary", "torchrun"}
"""Commands whose options a message may name."""


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("ignore=[...] leaves it out", "--ignore leaves it out"),
        ('keep_na=True and weight="none"', "--keep-na and --weight none"),
        ('use na=["-1"].', "use --na -1."),
        ("give `store=...` a file, such as a=b", "give --store a file, such as a=b"),
        ("`g3nn fit` and `weights` and `clf.fit(x=1)`", "`g3nn fit` and `weights` and `clf.fit(x=1)`"),
    ],
)
def test_arguments_become_options_of_the_command(said, meant, monkeypatch):
    monkeypatch.setattr("g3nn.cli.TYPED", ["g3nn", "fit"])
    assert with_options(said) == meant


def texts(path):
    """The strings of a file, without docstrings."""
    tree = ast.parse(path.read_text())
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value


def test_no_message_of_the_library_names_an_option_of_the_command_line():
    root = Path(g3nn.__file__).parent
    found = [
        f"{path.relative_to(root)}: {text}"
        for path in sorted(root.rglob("*.py"))
        for text in ([] if path.is_relative_to(root / "cli") else texts(path))
        if re.search(r"(?<![\w-])--[a-z]", re.sub("`g3nn [^`]*(`|$)", "", text)) and not any(map(text.count, OF_OTHERS))
    ]
    assert found == [], "write name=VALUE or `name=...`: g3nn.cli translates both"
