"""Docstrings of the code base as marked-up text: they are plain sentences, formulas and lists of "name: what it is"."""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import Any

from sphinx.application import Sphinx

ITEM = re.compile(r"(\w+(?:, \w+)*): +(?=\S)")
SPECIAL = re.compile(r"([\\*_|\[\]<>$#])")


def marked_up(docstring: str, literal: str) -> str:
    """For reStructuredText with literal="::", for Markdown with ""."""
    return "\n\n".join(_block(block, literal) for block in re.split(r"\n\s*\n", cleandoc(docstring)))


def _block(block: str, literal: str) -> str:
    lines = block.splitlines()
    if all(line.startswith("    ") for line in lines):
        return f"{literal}\n\n{block}"
    if not (ITEM.match(lines[0]) or lines[0].startswith("- ")):
        return _sentence(" ".join(line.strip() for line in lines))
    items: list[str] = []
    for line in lines:
        if ITEM.match(line) or line.startswith("- "):
            items.append(line.removeprefix("- "))
        else:
            items[-1] += " " + line.strip()
    return "\n".join(f"- {_item(item)}" for item in items)


def _item(text: str) -> str:
    found = ITEM.match(text)
    return f"``{found[1]}``: {_sentence(text[found.end() :])}" if found else _sentence(text)


def _sentence(text: str) -> str:
    """Code in backticks, everything else as it is."""
    parts = re.split(r"`([^`]+)`", text)
    return "".join(f"``{part}``" if odd % 2 else SPECIAL.sub(r"\\\1", part) for odd, part in enumerate(parts))


def _of_autodoc(app: Sphinx, what: str, name: str, member: Any, options: Any, lines: list[str]) -> None:
    if lines:
        lines[:] = [*marked_up("\n".join(lines), "::").splitlines(), ""]


def _made_by_others(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """scikit-learn adds methods such as `set_fit_request`; they are described there."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", _of_autodoc)
    app.connect("autodoc-skip-member", _made_by_others)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
