"""What every page shares: frame, styles, scripts and chart library, numbers as text, and writing the file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from g3nn.base.errors import Problems
from g3nn.base.folders import check_new_file, replacing

MINUS = "−"
"""As wide as a plus sign, unlike a hyphen."""

DASH = "–"
"""Stands where there is no number."""

DIGITS = 5
"""Significant digits of the numbers in a page's data: more than a chart or table shows."""


def render(
    template: str,
    *,
    styles: Sequence[str],
    scripts: Sequence[str],
    data: Mapping[str, object],
    charts: bool = True,
    **context: object,
) -> str:
    """A page from a template that extends base.html.j2.

    styles, scripts: files in the templates folder that follow shared.css, shared.js and, with charts, tables.js. data:
    what the scripts read as `g3nn.data`. charts: whether the page has charts and tables, and so the library.
    """
    return (
        _environment()
        .get_template(template)
        .render(
            style=_sources("shared.css", *styles),
            script=_sources("shared.js", *(["tables.js"] if charts else []), *scripts),
            library=_chart_library() if charts else None,
            data=plain(data),
            **context,
        )
    )


def plain(value: object) -> object:
    """Data as JSON takes it: numbers with few digits, and null for those that are not finite."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() else short


def number(value: float | None, digits: int = 3) -> str:
    return DASH if value is None else f"{value:.{digits}f}".replace("-", MINUS)


def signed(value: float | None, digits: int = 3) -> str:
    """With its sign, unless it rounds to zero."""
    if value is None:
        return DASH
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", MINUS)


def percent(share: float) -> str:
    return f"{number(100 * share, 1)} %"


def count(number: int, singular: str, plural: str | None = None) -> str:
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def check_target(path: Path, argument: str = "out") -> None:
    """Raise an InputError, before any work is done, if no page can be written to this path."""
    with Problems() as problems:
        check_new_file(path, problems, argument)


def write(path: Path, text: str) -> None:
    """Write a page in one step: a reader sees the old page or the new one, never half of it."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("g3nn.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "signed": signed, "percent": percent, "count": count}
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False, "ensure_ascii": False}
    return environment


@cache
def _sources(*names: str) -> Markup:
    """Our own styles or scripts. None holds a closing tag, so they need no escaping."""
    folder = files("g3nn.pages") / "templates"
    return Markup("\n".join((folder / name).read_text(encoding="utf-8") for name in names))


@cache
def _chart_library() -> Markup:
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())
