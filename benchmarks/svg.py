"""Drawings that suit a light and a dark page."""

from __future__ import annotations

from collections.abc import Sequence

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
