"""What every page shares: the frame, the style, the scripts, the chart library, and how a page reaches the disk."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from uuid import uuid4

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from g3nn.errors import Problems

MINUS = "−"
"""A hyphen is shorter than a plus sign; this is as long."""

DASH = "–"
"""Stands where there is no number."""


def render(
    template: str, *, styles: Sequence[str], scripts: Sequence[str], data: Mapping[str, Any], **context: Any
) -> str:
    """A page from a template that extends base.html.j2.

    styles, scripts: files of the templates folder that follow shared.css and shared.js. data: what the scripts read,
    as `g3nn.data`; numbers in it must be finite.
    """
    return (
        _environment()
        .get_template(template)
        .render(
            styles=[_source(name) for name in ("shared.css", *styles)],
            library=_chart_library(),
            scripts=[_source(name) for name in ("shared.js", *scripts)],
            data=data,
            **context,
        )
    )


def number(value: float | None, digits: int = 3) -> str:
    return DASH if value is None else f"{value:.{digits}f}".replace("-", MINUS)


def signed(value: float | None, digits: int = 3) -> str:
    """With its sign, unless it rounds to zero."""
    if value is None:
        return DASH
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", MINUS)


def count(number: int, singular: str) -> str:
    return f"{number} {singular}{'' if number == 1 else 's'}"


def check_target(path: Path) -> None:
    """Raise, before any work is done, where a page cannot be put."""
    problems = Problems()
    if path.is_dir():
        problems.add("out", path, "a file, not a folder")
    elif not path.absolute().parent.is_dir():
        problems.add("out", path, "a file in a folder that exists")
    problems.raise_if_any()


def write(path: Path, text: str) -> None:
    """Put a page in place whole: a reader sees the old page or the new one, never a part."""
    check_target(path)
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        problems = Problems()
        problems.add("out", path, "a file that can be written", f"{error.strerror or error}.")
        problems.raise_if_any()
    finally:
        draft.unlink(missing_ok=True)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("g3nn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "signed": signed, "count": count}
    # A browser cannot read NaN in JSON: better no page than a page without data.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False, "ensure_ascii": False}
    return environment


@cache
def _source(name: str) -> Markup:
    """A style or script as it is written: it is ours, and holds no closing tag of its own."""
    return Markup((files("g3nn.report") / "templates" / name).read_text(encoding="utf-8"))


@cache
def _chart_library() -> Markup:
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())
