"""Count the lines of code of the library: no blank lines, comments or docstrings.

    python tools/lines.py [FOLDER ...]

Prints one row for each room of `src/g3nn` (or of the folders given), its files and its lines, and the sum.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1] / "src" / "g3nn"
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


def code_lines(text: str) -> int:
    """The number of lines of a Python source that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        # A string that stands alone documents what is around it.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def rooms(root: Path) -> dict[str, list[int]]:
    """The lines of each file, by the folder directly below `root` that it is in."""
    found: dict[str, list[int]] = {}
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root).parts
        found.setdefault(inside[0] if len(inside) > 1 else "top level", []).append(code_lines(path.read_text()))
    return found


def main(folders: list[str]) -> None:
    for root in [Path(folder) for folder in folders] or [LIBRARY]:
        counted = rooms(root)
        for room, lines in sorted(counted.items(), key=lambda item: -sum(item[1])):
            print(f"{sum(lines):7,} lines {len(lines):4} files  {room}")
        print(f"{sum(map(sum, counted.values())):7,} lines {sum(map(len, counted.values())):4} files  {root.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
