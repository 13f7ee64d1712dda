"""Tables and the picture of `any_graph.py`, from stored records alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from statistics import fmean
from typing import Any

from svg import STYLE, svg

Record = dict[str, Any]

CITATION = ("cora", "citeseer", "pubmed")
PEERS = ("portfolio", "trees")
TITLES = {
    "5": "5 labels per class",
    "20": "20 labels per class",
    "10/10/80": "10 % for training, 10 % for validation",
    "public": "Public split",
}
FORMS = {"rows": "row-normalised", "scaled": "scaled"}
MANY_TEST_NODES = 1000


@dataclass(frozen=True)
class Results:
    """Records by graph, split, form and method, and then by seed. A figure without records is NaN."""

    cells: dict[tuple[str, str, str, str], dict[int, Record]]

    @classmethod
    def of(cls, records: Iterable[Record]) -> Results:
        cells: dict[tuple[str, str, str, str], dict[int, Record]] = defaultdict(dict)
        for one in records:
            cells[one["graph"], one["split"], one["form"], one["method"]][one["seed"]] = one
        return cls(dict(cells))

    def graphs(self, split: str | None = None, *, citation: bool = True) -> list[str]:
        """Sorted, the citation graphs last."""
        found = {graph for graph, own, _, _ in self.cells if split in (None, own)}
        others = sorted(found - set(CITATION))
        return others + [name for name in CITATION if name in found and citation]

    def splits(self) -> list[str]:
        found = {split for _, split, _, _ in self.cells}
        return [split for split in TITLES if split in found]

    def cell(self, graph: str, split: str, method: str = "default", form: str = "raw") -> dict[int, Record]:
        return self.cells.get((graph, split, form, method), {})

    def mean(self, graph: str, split: str, method: str = "default", key: str = "accuracy") -> float:
        """Over the seeds that every method with records here has: methods are compared on the same splits."""
        present = [cell for name in ("default", *PEERS) if (cell := self.cell(graph, split, name))]
        seeds = set.intersection(*map(set, present)) if present else set()
        cell = self.cell(graph, split, method)
        return average(cell[seed][key] for seed in seeds if seed in cell)

    def gain(self, graph: str, split: str, peers: Sequence[str] = PEERS) -> float:
        """Accuracy of the default minus that of the best of the peers."""
        known = [value for peer in peers if not math.isnan(value := self.mean(graph, split, peer))]
        return self.mean(graph, split) - max(known, default=math.nan)

    def change(self, graph: str, form: str) -> float:
        """What another form of the features changes in the accuracy of the default, on the same splits."""
        one, other = (self.cell(graph, "20", form=name) for name in ("raw", form))
        return average(other[seed]["accuracy"] - one[seed]["accuracy"] for seed in one if seed in other)

    def doubted(self) -> list[tuple[Record, Record]]:
        """Records of the default, and those of the same splits where every edge is believed."""
        return [
            (cell[seed], other[seed])
            for (graph, split, form, method), cell in self.cells.items()
            if method == "default" and (other := self.cells.get((graph, split, form, "believing")))
            for seed in cell.keys() & other.keys()
        ]


def average(values: Iterable[float]) -> float:
    """The mean without NaN; NaN if nothing is left."""
    known = [value for value in values if not math.isnan(value)]
    return fmean(known) if known else math.nan


def shown(value: float, form: str = ".3f") -> str:
    return "–" if math.isnan(value) else f"{value:{form}}"


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


COLUMNS: dict[str, tuple[Callable[[Results, str, str], float], str]] = {
    "default": (Results.mean, ".3f"),
    "portfolio": (lambda results, graph, split: results.mean(graph, split, "portfolio"), ".3f"),
    "trees": (lambda results, graph, split: results.mean(graph, split, "trees"), ".3f"),
    "default - better peer": (Results.gain, "+.3f"),
    "ECE": (lambda results, graph, split: results.mean(graph, split, key="ece"), ".3f"),
    "coverage": (lambda results, graph, split: results.mean(graph, split, key="coverage"), ".3f"),
    "seconds": (lambda results, graph, split: results.mean(graph, split, key="seconds"), ".0f"),
}


def split_table(results: Results, split: str) -> str:
    """Every graph, and the means over all of them."""
    graphs = results.graphs(split)
    values = {graph: [figure(results, graph, split) for figure, _ in COLUMNS.values()] for graph in graphs}
    values["mean"] = [average(column) for column in zip(*values.values(), strict=True)]
    forms = [form for _, form in COLUMNS.values()]
    lines = [f"{TITLES[split]}\n", row("graph", *COLUMNS), f"|{'---|' * (1 + len(COLUMNS))}"]
    lines += [row(name, *map(shown, figures, forms)) for name, figures in values.items()]
    return "\n".join(lines)


def targets(results: Results) -> dict[str, str]:
    """What is to be reached, and the figure. `Others` are the graphs that are no citation graphs."""
    found: dict[str, str] = {}
    others = results.graphs("20", citation=False)
    gains = {graph: results.gain(graph, "20", ["portfolio"]) for graph in others}
    found["20 labels: default - portfolio, mean of the others"] = shown(average(gains.values()), "+.4f")
    found["20 labels: default - portfolio, worst of the others"] = furthest(gains, key=lambda gain: -gain)
    for form, title in FORMS.items():
        changes = {graph: results.change(graph, form) for graph in results.graphs("20")}
        mean = average(changes[graph] for graph in others)
        found[f"20 labels: change if {title}, mean of the others"] = shown(mean, "+.4f")
        found[f"20 labels: change if {title}, largest of all graphs"] = furthest(changes, key=abs)
    for split, peers, title in (("5", ["portfolio"], "portfolio"), ("10/10/80", PEERS, "better peer")):
        mean = average(results.gain(graph, split, peers) for graph in results.graphs(split, citation=False))
        found[f"{split}{' labels' * split.isdigit()}: default - {title}, mean of the others"] = shown(mean, "+.4f")
    found["10/10/80: accuracy on pubmed"] = shown(results.mean("pubmed", "10/10/80"), ".4f")
    for graph in CITATION:
        found[f"public split: accuracy on {graph}"] = shown(results.mean(graph, "public"), ".4f")
    pairs = results.doubted()
    changed = average(one["accuracy"] - other["accuracy"] for one, other in pairs)
    found["what doubting edges changes in the accuracy of the default"] = shown(changed, "+.4f")
    times = average(one["seconds"] / other["seconds"] for one, other in pairs)
    found["and in its time, as a factor"] = shown(times, ".2f")
    large = f"mean ECE of graphs with at least {MANY_TEST_NODES:,} test nodes"
    found[large] = by_split(results, "ece", MANY_TEST_NODES)
    found["mean coverage of 90 % sets"] = by_split(results, "coverage", 0)
    return found


def furthest(figures: dict[str, float], key: Callable[[float], float]) -> str:
    """The figure with the largest key, and its graph."""
    known = {graph: value for graph, value in figures.items() if not math.isnan(value)}
    if not known:
        return shown(math.nan)
    graph = max(known, key=lambda name: key(known[name]))
    return f"{known[graph]:+.4f} ({graph})"


def by_split(results: Results, key: str, test_nodes: int) -> str:
    """The mean of a figure of the default over graphs and splits, and over the graphs of each split."""
    figures: dict[str, list[float]] = {}
    for split in results.splits():
        cells = {graph: results.cell(graph, split) for graph in results.graphs(split)}
        large = [name for name, cell in cells.items() if any(one["test_nodes"] >= test_nodes for one in cell.values())]
        figures[split] = [results.mean(graph, split, key=key) for graph in large]
    every = shown(average(value for values in figures.values() for value in values), ".4f")
    each = ", ".join(f"{split}: {shown(average(values), '.4f')}" for split, values in figures.items())
    return f"{every} ({each})"


def table(records: Iterable[Record]) -> str:
    """One table for each split, then the targets."""
    results = Results.of(records)
    tables = [split_table(results, split) for split in results.splits()]
    lines = [row("target", "figure"), "|---|---|", *(row(*pair) for pair in targets(results).items())]
    return "\n\n".join([*tables, "\n".join(lines)])


NAMES, PANEL, GAP, FIGURE = 150, 190, 24, 58
TOP, LINE, BAR = 62, 24, 12
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
COLOURS = """
  .better { fill: #218bff } .worse { fill: #e16f24 } .seed { fill: currentColor; opacity: 0.6 }
"""


def drawing(records: Iterable[Record]) -> str:
    """An SVG: for each split a panel, for each graph a bar, default minus portfolio; a dot is one seed."""
    results = Results.of(records)
    order = {graph: results.gain(graph, "20", ["portfolio"]) for graph in results.graphs()}
    graphs = sorted(order, key=lambda graph: (math.isnan(order[graph]), -order[graph]))
    splits, dots = results.splits(), {}
    for graph in graphs:
        for split in splits:
            one, other = results.cell(graph, split), results.cell(graph, split, "portfolio")
            seeds = one.keys() & other.keys()
            if seeds:
                dots[graph, split] = [one[seed]["accuracy"] - other[seed]["accuracy"] for seed in sorted(seeds)]
    graphs = [graph for graph in graphs if any(own == graph for own, _ in dots)]
    splits = [split for split in splits if any(own == split for _, own in dots)]
    reach = max((abs(value) for values in dots.values() for value in values), default=0.0)
    step = next((step for step in STEPS if reach <= 2 * step), STEPS[-1])
    width = NAMES + len(splits) * (PANEL + FIGURE + GAP)
    height = TOP + LINE * len(graphs) + 34
    title = "Test accuracy: default minus portfolio, mean (bar) and each seed (dot)"
    shapes = [f'<text class="title" x="8" y="20">{title}</text>']
    for place, graph in enumerate(graphs):
        shapes.append(f'<text x="8" y="{TOP + LINE * place + 16}">{escape(graph)}</text>')
    for place, split in enumerate(splits):
        left = NAMES + place * (PANEL + FIGURE + GAP)
        shapes += panel(left, split, graphs, {graph: dots.get((graph, split), []) for graph in graphs}, step)
    return svg(width, height, title, shapes, STYLE + COLOURS)


def panel(left: int, split: str, graphs: Sequence[str], dots: dict[str, list[float]], step: float) -> list[str]:
    """One split: an axis of two steps to each side of zero, and the graphs from top to bottom."""
    bottom = TOP + LINE * len(graphs)

    def across(value: float) -> float:
        return round(left + PANEL / 2 * (1 + max(-1.0, min(1.0, value / (2 * step)))), 1)

    shapes = [f'<text class="small middle" x="{left + PANEL / 2:g}" y="{TOP - 12}">{TITLES[split]}</text>']
    for tick in range(-2, 3):
        x, kind, label = across(tick * step), "line" if tick else "zero", f"{tick * step:+g}" if tick else "0"
        shapes.append(f'<line class="{kind}" x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}"/>')
        shapes.append(f'<text class="small middle" x="{x}" y="{bottom + 16}">{label}</text>')
    for place, graph in enumerate(graphs):
        if not dots[graph]:
            continue
        mean, y = fmean(dots[graph]), TOP + LINE * place + LINE / 2
        start, end = sorted((across(0), across(mean)))
        kind = "better" if mean >= 0 else "worse"
        bar = f'x="{start}" y="{y - BAR / 2:g}" width="{end - start:.1f}" height="{BAR}"'
        shapes.append(f'<rect class="{kind}" {bar}/>')
        shapes += [f'<circle class="seed" cx="{across(value)}" cy="{y:g}" r="2"/>' for value in dots[graph]]
        shapes.append(f'<text class="small end" x="{left + PANEL + FIGURE - 8}" y="{y + 4:g}">{mean:+.3f}</text>')
    return shapes
