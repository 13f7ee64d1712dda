"""Draw the house: which package of the library imports which, as docs/house.svg.

    python tools/house.py            # write the picture
    python tools/house.py --check    # fail if the picture is not the one the code gives

Every package directly below `src/g3nn` stands above all packages it imports. An arrow points from a package to one it
imports; an import that other arrows already imply is not drawn. One brick is 25 lines of code.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from lines import LIBRARY, code_lines

ROOT = LIBRARY.parents[1]
PICTURE = ROOT / "docs" / "house.svg"
LAYERS = ROOT / "tests" / "test_layers.py"
OPEN = ("graph", "model")
"""Packages with components behind a contract and a registry: a new one is one file there."""

LINES_PER_BRICK = 25
BRICK, BRICK_HEIGHT, BRICK_GAP, BRICKS_PER_ROW = 6, 4, 1.5, 17
ROOM_WIDTH, HEAD, PADDING = 144, 23, 8
CHANNEL, ROOM_GAP, ROW_GAP, MARGIN = 10, 14, 22, 16
SWEEPS = 40

STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
  .name { font-weight: 600 } .lines { font-size: 11px; fill: #59636e; text-anchor: end }
  .note { font-size: 12px; fill: #6e7781 }
  .room { fill: #f6f8fa; stroke: #8c959f } .open { fill: #ddf4ff; stroke: #0969da }
  .brick { fill: #8c959f } .open-brick { fill: #218bff }
  .arrow { fill: none; stroke: #8c959f; stroke-width: 1.3 } .tip { fill: #8c959f }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .lines { fill: #9198a1 } .note { fill: #8d96a0 }
    .room { fill: #161b22; stroke: #6e7681 } .open { fill: #0c2d4d; stroke: #4493f8 }
    .brick { fill: #6e7681 } .open-brick { fill: #4493f8 }
    .arrow { stroke: #6e7681 } .tip { fill: #6e7681 }
  }
"""


@dataclass(frozen=True)
class House:
    """lines: of code in each room, in the order of the layers. imports: the rooms that each room imports."""

    lines: dict[str, int]
    imports: dict[str, set[str]]

    def reached(self, room: str) -> set[str]:
        """Every room that `room` imports, directly or through others."""
        return self.imports[room].union(*(self.reached(below) for below in self.imports[room]))

    def arrows(self) -> dict[str, list[str]]:
        """The imports that no other import implies."""
        return {
            room: sorted(below - set().union(*(self.reached(other) for other in below)))
            for room, below in self.imports.items()
        }

    def levels(self) -> dict[str, int]:
        """How high a room stands: as low as its imports allow; higher where that makes its arrows shorter."""
        level: dict[str, int] = {}
        for room in self.lines:
            level[room] = 1 + max((level[below] for below in self.imports[room]), default=-1)
        arrows = self.arrows()
        for room in reversed(self.lines):
            importers = [other for other in arrows if room in arrows[other]]
            if len(importers) > len(arrows[room]):
                level[room] = min(level[other] for other in importers) - 1
        return level


def layers() -> list[str]:
    """The order of packages that the tests enforce, from the bottom up."""
    for node in ast.parse(LAYERS.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS":
            return list(ast.literal_eval(node.value))
    raise SystemExit(f"{LAYERS}: no list called LAYERS")


def read_house(library: Path = LIBRARY) -> House:
    """Rooms, lines and imports; an import that points upwards in the list of layers is an error."""
    height = {room: number for number, room in enumerate(layers())}
    lines, imports = dict.fromkeys(height, 0), {room: set[str]() for room in height}
    for path in sorted(library.rglob("*.py")):
        inside = path.relative_to(library)
        room = inside.parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue  # of the package itself: they only gather what it offers
        if room not in height:
            raise SystemExit(f"{inside}: the room {room!r} is in no layer of {LAYERS.name}; add it there")
        source = path.read_text(encoding="utf-8")
        lines[room] += code_lines(source)
        imports[room] |= set(imported_rooms(source, ("g3nn", *inside.parent.parts))) - {room}
    for room, below in imports.items():
        if wrong := sorted(other for other in below if height.get(other, len(height)) >= height[room]):
            raise SystemExit(f"{room} imports {', '.join(wrong)}, which no lower layer of {LAYERS.name} holds")
    return House(lines, imports)


def imported_rooms(source: str, package: tuple[str, ...]) -> Iterator[str]:
    """The first name below g3nn of everything a source in `package` imports from it when it runs."""
    tree = ast.parse(source)
    typing = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    for_types = {id(inner) for node in typing for statement in node.body for inner in ast.walk(statement)}
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            if name.startswith("g3nn."):
                yield name.split(".")[1]


@dataclass
class Place:
    """A room, or a point where an arrow passes a row without stopping (room is empty). x is its centre."""

    room: str = ""
    width: float = CHANNEL
    x: float = 0.0


def arranged(house: House) -> tuple[list[list[Place]], list[list[Place]]]:
    """Rows of places from the bottom up, and the way of every arrow from place to place, from the top down."""
    level, arrows = house.levels(), house.arrows()
    places = {room: Place(room, ROOM_WIDTH) for room in house.lines}
    rows: list[list[Place]] = [[] for _ in range(max(level.values()) + 1)]
    for room in house.lines:
        rows[level[room]].append(places[room])
    ways = []
    for room, below in arrows.items():
        for other in below:
            passed = [Place() for _ in range(level[room] - level[other] - 1)]
            for row, place in enumerate(passed):
                rows[level[room] - 1 - row].append(place)
            ways.append([places[room], *passed, places[other]])
    neighbours: dict[int, list[Place]] = {}
    for way in ways:
        for upper, lower in pairwise(way):
            neighbours.setdefault(id(upper), []).append(lower)
            neighbours.setdefault(id(lower), []).append(upper)
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 else rows[::-1]:
            wanted = {id(place): mean_x(neighbours.get(id(place), [place])) for place in row}
            if sweep < SWEEPS // 2:
                row.sort(key=lambda place: wanted[id(place)])
            set_apart(row, [wanted[id(place)] for place in row])
    return rows, ways


def mean_x(places: list[Place]) -> float:
    return sum(place.x for place in places) / len(places)


def set_apart(row: list[Place], wanted: list[float]) -> None:
    """Put every place as near to where it is wanted as the widths of its row allow (least squares)."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + ROOM_GAP)
    blocks: list[list[float]] = []  # sum of wanted positions less offsets, and number of places
    for x, offset in zip(wanted, offsets, strict=True):
        blocks.append([x - offset, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    starts = [total / count for total, count in blocks for _ in range(int(count))]
    for place, start, offset in zip(row, starts, offsets, strict=True):
        place.x = start + offset


def bricks(lines: int) -> int:
    return max(1, round(lines / LINES_PER_BRICK))


def room_height(lines: int) -> float:
    rows = -(-bricks(lines) // BRICKS_PER_ROW)
    return HEAD + rows * (BRICK_HEIGHT + BRICK_GAP) + PADDING - BRICK_GAP


def drawn_room(place: Place, left: float, top: float, lines: int) -> list[str]:
    kind, brick = ("open", "open-brick") if place.room in OPEN else ("room", "brick")
    count = bricks(lines)
    right, baseline = left + ROOM_WIDTH - PADDING, top + 16
    box = f'x="{left:.0f}" y="{top:.0f}" width="{ROOM_WIDTH}" height="{room_height(lines):.0f}" rx="4"'
    parts = [
        f'<rect class="{kind}" {box}/>',
        f'<text class="name" x="{left + PADDING:.0f}" y="{baseline:.0f}">{place.room}</text>',
        f'<text class="lines" x="{right:.0f}" y="{baseline:.0f}">{count * LINES_PER_BRICK:,}</text>',
    ]
    rows = [min(BRICKS_PER_ROW, count - first) for first in range(0, count, BRICKS_PER_ROW)]
    wall = [
        f"M{left + PADDING + column * (BRICK + BRICK_GAP):.1f} {top + HEAD + row * (BRICK_HEIGHT + BRICK_GAP):.1f}"
        f"h{BRICK}v{BRICK_HEIGHT}h-{BRICK}z"
        for row, columns in enumerate(rows)
        for column in range(columns)
    ]
    return [*parts, f'<path class="{brick}" d="{"".join(wall)}"/>']


def curve(points: list[tuple[float, float]]) -> str:
    """A smooth path down through the points, vertical at both ends."""
    slopes = [0.0]
    for (x0, y0), _, (x2, y2) in zip(points, points[1:], points[2:], strict=False):
        slopes.append((x2 - x0) / (y2 - y0))
    slopes.append(0.0)
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for number, ((x0, y0), (x1, y1)) in enumerate(pairwise(points)):
        step = (y1 - y0) / 2 if len(points) == 2 else (y1 - y0) / 3
        first, second = (x0 + slopes[number] * step, y0 + step), (x1 - slopes[number + 1] * step, y1 - step)
        path += "C" + " ".join(f"{x:.0f} {y:.0f}" for x, y in (first, second, (x1, y1)))
    return path


def drawing(house: House) -> str:
    """The picture as SVG."""
    rows, ways = arranged(house)
    left = min(place.x - place.width / 2 for row in rows for place in row) - MARGIN
    width = max(place.x + place.width / 2 for row in rows for place in row) + MARGIN - left
    tops: dict[int, float] = {}
    bottoms: dict[int, float] = {}
    y = float(MARGIN)
    body: list[str] = []
    for row in reversed(rows):
        height = max(room_height(house.lines[place.room]) for place in row if place.room)
        for place in row:
            if place.room:
                own = room_height(house.lines[place.room])
                tops[id(place)], bottoms[id(place)] = y + height - own, y + height
                body += drawn_room(place, place.x - ROOM_WIDTH / 2 - left, y + height - own, house.lines[place.room])
            else:
                tops[id(place)], bottoms[id(place)] = y, y + height
        y += height + ROW_GAP
    arrows = []
    for way in ways:
        points = [(place.x - left, (tops[id(place)] + bottoms[id(place)]) / 2) for place in way]
        points[0] = (points[0][0], bottoms[id(way[0])])
        points[-1] = (points[-1][0], tops[id(way[-1])] - 5)
        path = curve(points)
        if len(way) == 3:  # passes its one row straight, or it would cross the room beside it
            x = points[1][0]
            path = curve([points[0], (x, tops[id(way[1])])]) + curve([(x, bottoms[id(way[1])]), points[2]]).replace(
                "M", "L"
            )
        arrows.append(f'<path class="arrow" d="{path}" marker-end="url(#tip)"/>')
    notes = (
        "An arrow points from a package to one it imports; what other arrows imply is not drawn.",
        f"One brick is {LINES_PER_BRICK} lines of code. Blue packages are where you add a component: one file each.",
    )
    for note in notes:
        y += 6
        body.append(f'<text class="note" x="{MARGIN}" y="{y:.0f}">{note}</text>')
        y += 12
    size = f'width="{width:.0f}" height="{y:.0f}" viewBox="0 0 {width:.0f} {y:.0f}"'
    tip = '<marker id="tip" viewBox="0 0 6 6" refX="1" refY="3" markerWidth="5" markerHeight="5" orient="auto">'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            "<title>The packages of g3nn and their imports</title>",
            f"<style>{STYLE}</style>",
            f'<defs>{tip}<path class="tip" d="M0 0L6 3L0 6z"/></marker></defs>',
            *arrows,
            *body,
            "</svg>\n",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only; exit code 1 if the picture is out of date")
    arguments = parser.parse_args()
    picture = drawing(read_house())
    if not arguments.check:
        PICTURE.write_text(picture, encoding="utf-8")
    elif not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != picture:
        sys.exit("docs/house.svg is out of date: run python tools/house.py")


if __name__ == "__main__":
    main()
