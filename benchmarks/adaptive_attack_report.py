"""Tables of `adaptive_attack.py`, from stored records alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean

from any_graph_report import row, shown
from records import Record

_KNOWS = {"training": "the attacker knows the training labels", "all": "the attacker knows all labels"}

Row = tuple[str, str, str]
"""What happens, the victim for which an attack is made, and the victim that suffers it."""


def table(records: Iterable[Record]) -> str:
    """One table for each graph and kind of attacker: the mean accuracy over seeds, by the share of flipped edges."""
    groups: dict[str, list[Record]] = defaultdict(list)
    for one in records:
        quick = ", quick" if one["effort"] == "quick" else ""
        groups[f"{one['graph']}, {one['setting']}: {_KNOWS[one['knows']]}{quick}"].append(one)
    return "\n\n".join(f"{title}\n\n{_of_group(group)}" for title, group in groups.items())


def _of_group(records: Iterable[Record]) -> str:
    cells: dict[Row, dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    sound: dict[str, dict[int, float]] = defaultdict(dict)
    for one in records:
        seed, rate = one["seed"], one["rate"]
        if one["attack"] == "nobody":
            sound[one["victim"]][seed] = one["accuracy"]
        elif one["victim"] == "attacker":
            for name, accuracy in one["evasion"].items():
                cells["evasion", one["attack"], name][rate][seed] = accuracy
                cells["evasion", one["attack"], name][0][seed] = one["sound"][name]
        else:
            cells["poisoning", one["attack"], one["victim"]][rate][seed] = one["accuracy"]
    for (kind, _, name), rates in cells.items():
        if kind == "poisoning" and sound[name]:
            rates[0] = sound[name]
    rates = sorted({0, *(rate for found in cells.values() for rate in found)})
    lines = [row("", "attack made for", "victim", *(f"{rate} %" for rate in rates)), f"|{'---|' * (3 + len(rates))}"]
    for key, found in sorted(cells.items()):
        means = (fmean(found[rate].values()) if found.get(rate) else float("nan") for rate in rates)
        lines.append(row(*key, *map(shown, means)))
    return "\n".join(lines)
