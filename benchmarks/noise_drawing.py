"""Accuracy against the share of wrong edges, from the store of the suite `noise`.

python benchmarks/noise_drawing.py results/noise.sqlite docs/noise.svg
"""

from __future__ import annotations

import argparse
from pathlib import Path

from svg import Panel, curves

from g3nn.base.errors import G3NNError
from g3nn.base.folders import replacing
from g3nn.studies.comparison import compare
from g3nn.studies.store import Store
from g3nn.studies.suite_file import load_suite
from g3nn.studies.suite_page import rates


def drawing(store: Store) -> str:
    """Kinds of noise on graphs that g3nn itself and others were measured on, one panel each."""
    panels = [
        Panel(panel["title"], {line["label"]: (line["rates"], line["means"]) for line in panel["lines"]})
        for panel in rates(compare(load_suite("noise"), store).cells)
    ]
    measured = [{name for name, (rates, _) in panel.lines.items() if len(rates) > 1} for panel in panels]
    whole = [panel for panel, names in zip(panels, measured, strict=True) if "g3nn" in names and len(names) > 1]
    return curves("Test accuracy against wrong edges, in percent of the edges", whole, "g3nn")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path, help="made by `g3nn bench run noise`")
    parser.add_argument("svg", type=Path, help="where to draw")
    given = parser.parse_args()
    try:
        with Store.read(given.store) as store:
            text = drawing(store)
        with replacing(given.svg) as draft:
            draft.write_text(text)
    except G3NNError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
