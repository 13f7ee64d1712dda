"""Drawings that suit a light and a dark page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

STYLE = """
  svg { color: #1f2328 }
  text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: currentColor }
  .title { font-weight: 600 } .small { font-size: 11px; opacity: 0.75 } .end { text-anchor: end }
  .middle { text-anchor: middle } .line { stroke: currentColor; opacity: 0.18 } .zero { stroke: currentColor }
  @media (prefers-color-scheme: dark) { svg { color: #e6edf3 } }
"""


def svg(width: int, height: int, title: str, shapes: Sequence[str], style: str = STYLE) -> str:
    """A picture of these shapes. title: what it shows, for those who cannot see it."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join([f'{head} role="img" aria-label="{title}">', f"<style>{style}</style>", *shapes, "</svg>\n"])


@dataclass(frozen=True)
class Panel:
    """A diagram. lines: what is across and what is up, by name. powers: both are exponents of ten."""

    title: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    powers: bool = False


WIDTH, HEIGHT, LEFT, TOP, ACROSS = 270, 190, 44, 60, 3
COLOURS = ("#218bff", "#8c959f", "#e16f24", "#2da44e", "#a475f9", "#bf8700", "#c24b8f", "#57606a")


def curves(title: str, panels: Sequence[Panel], ours: str) -> str:
    """An SVG with all panels, three in a row. ours: the line that stands out."""
    names = sorted({name for panel in panels for name in panel.lines}, key=lambda name: (name != ours, name))
    colours = dict(zip(names, COLOURS * 2, strict=False))
    shapes = [f'<text class="title" x="8" y="20">{escape(title)}</text>']
    x = 8
    for name in names:
        shapes.append(f'<line x1="{x}" x2="{x + 18}" y1="36" y2="36" stroke="{colours[name]}" stroke-width="3"/>')
        shapes.append(f'<text class="small" x="{x + 24}" y="40">{escape(name)}</text>')
        x += 52 + 6 * len(name)
    for place, panel in enumerate(panels):
        row, column = divmod(place, ACROSS)
        shapes += _diagram(panel, colours, ours, LEFT + column * (WIDTH + LEFT), TOP + row * (HEIGHT + 62))
    rows = -(-len(panels) // ACROSS)
    return svg(ACROSS * (WIDTH + LEFT) + 16, TOP + rows * (HEIGHT + 62), escape(title), shapes)


def _diagram(panel: Panel, colours: Mapping[str, str], ours: str, left: int, top: int) -> list[str]:
    values = [value for _, line in panel.lines.values() for value in line]
    marks = sorted({mark for line, _ in panel.lines.values() for mark in line})
    low, high = min(values), max(values)
    step = (
        1.0 if panel.powers else next(step for step in (0.02, 0.05, 0.1, 0.2) if high - low <= 5 * step or step == 0.2)
    )
    low, high = np.floor(low / step) * step, np.ceil(high / step) * step

    def across(mark: float) -> float:
        return round(left + WIDTH * (mark - marks[0]) / max(marks[-1] - marks[0], 1), 1)

    def up(value: float) -> float:
        return round(top + 22 + HEIGHT * (high - value) / max(high - low, step), 1)

    def power(exponent: float) -> str:
        return f'10<tspan dy="-4" font-size="9">{exponent:.0f}</tspan>'

    shapes = [f'<text class="small" x="{left}" y="{top + 10}">{escape(panel.title)}</text>']
    for tick in np.arange(low, high + step / 2, step):
        y = up(tick)
        shapes.append(f'<line class="line" x1="{left}" x2="{left + WIDTH}" y1="{y}" y2="{y}"/>')
        label = power(tick) if panel.powers else f"{tick:.2f}"
        shapes.append(f'<text class="small end" x="{left - 6}" y="{y + 4}">{label}</text>')
    for mark in marks:
        label = power(mark) if panel.powers else f"{mark:g}"
        shapes.append(f'<text class="small middle" x="{across(mark)}" y="{top + HEIGHT + 38}">{label}</text>')
    for name in sorted(panel.lines, key=lambda name: name == ours):
        points = " ".join(f"{across(mark)},{up(value)}" for mark, value in zip(*panel.lines[name], strict=True))
        width = 3 if name == ours else 1.5
        shapes.append(f'<polyline fill="none" stroke="{colours[name]}" stroke-width="{width}" points="{points}"/>')
    return shapes
