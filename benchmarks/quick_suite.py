"""Make the suite `quick` from a store of the suite `paper`: the points chosen there for Cora and Citeseer, as TOML.

    python benchmarks/quick_suite.py --store results/paper.sqlite > src/g3nn/studies/suites/quick/suite.toml

A trial of an attention network with 512 hidden units takes minutes on two cores. For attention we therefore take the
best point, by the same validation losses, among those that count hidden units in total, and only for the standard
setting.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from g3nn.studies.records import Option, Point
from g3nn.studies.selection import chosen, losses
from g3nn.studies.store import Store
from g3nn.studies.suite import Entry, Suite
from g3nn.studies.suite_file import load_suite

HEAD = """# Made by benchmarks/quick_suite.py from results/paper.sqlite: what the validation loss chose.

title = "The paper's tables for Cora and Citeseer, without the search"
source = "{source}"
published_trials = {trials}
objectives = ["released"]

[protocol]
trials = 3
first_seed = 0
"""


def quick_point(suite: Suite, store: Store, entry: Entry) -> Point:
    """The chosen point; for attention, the best of the narrow networks."""
    points, known = suite.points(entry), losses(store.records())
    if "gat" not in entry.cell.model:
        point = chosen(points, known, suite.protocol)
        assert point is not None, f"{entry}: the store does not hold the whole selection"
        return point
    narrow = [point for point in points if point.options["hidden_is"] == "total"]
    return min(narrow, key=lambda point: known[point.key, suite.protocol.first_selection_seed])


def axis(entry: Entry, point: Point, fixed: Mapping[str, Option]) -> str:
    options = {name: value for name, value in point.options.items() if name not in fixed}
    values = ", ".join(f"{name} = {json.dumps(value)}" for name, value in options.items())
    return f"{axis_name(entry)} = [{{ {values} }}]"


def axis_name(entry: Entry) -> str:
    return f"{entry.cell.model}-{entry.cell.dataset}-{entry.cell.setting}"


def grid(entry: Entry) -> str:
    limits = (
        f'models = ["{entry.cell.model}"]\ndatasets = ["{entry.cell.dataset}"]\nsettings = ["{entry.cell.setting}"]'
    )
    return f'\n[[grids]]\n{limits}\naxes = ["{axis_name(entry)}"]\n'


def table(name: str, setting: str, entries: list[Entry]) -> str:
    lines = [f'\n[[tables]]\nname = "{name}"\nsetting = "{setting}"\ncells = [']
    for entry in entries:
        cell = entry.cell
        marks = "".join(f", {mark} = true" for mark in ("bold", "underline", "star") if getattr(cell, mark))
        published = f"published = {cell.published}, published_std = {cell.published_std}{marks}"
        lines.append(f'    {{ model = "{cell.model}", dataset = "{cell.dataset}", {published}, row = "{cell.row}" }},')
    return "\n".join([*lines, "]\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("results/paper.sqlite"))
    arguments = parser.parse_args()
    suite = load_suite("paper")
    entries = [
        entry
        for entry in suite.entries({"dataset": "cora,citeseer", "objective": "released"})
        if "gat" not in entry.cell.model or entry.cell.setting == "standard"
    ]
    fixed = "".join(f"{name} = {value}\n" for name, value in suite.fixed.items())
    text = HEAD.format(source=suite.source, trials=suite.published_trials) + f"\n[fixed]\n{fixed}\n[axes]\n"
    with Store.read(arguments.store) as store:
        text += "".join(axis(entry, quick_point(suite, store, entry), suite.fixed) + "\n" for entry in entries)
    tables: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        text += grid(entry)
        tables.setdefault((entry.cell.table, entry.cell.setting), []).append(entry)
    print(text + "".join(table(*key, found) for key, found in tables.items()), end="")


if __name__ == "__main__":
    main()
