"""The picture of the labelling page in the documentation: python tools/label_picture.py [--chromium FILE]

Makes two tables of short notices about music, plants and the sea, answers forty questions in a headless
browser, and writes docs/label.png.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from playwright.sync_api import Page, sync_playwright

import g3nn

WORDS = {
    "music": "violin concert melody choir rehearsal score tempo quartet stage singer",
    "plants": "seed leaf root blossom greenhouse soil moss orchard pollen fern",
    "sea": "harbour tide reef current sailor lighthouse shell coast wave anchor",
}
COMMON = "report about early notes on how why near old new first small long survey of study letter evening"
SIZE, QUESTIONS, PAUSE = 400, 40, 1500
READY = """(before) => document.querySelector(".question").ariaBusy === "false"
    && document.getElementById("id").textContent !== before && document.getElementById("id").textContent"""


def tables(folder: Path) -> dict[str, str]:
    """Writes both tables. The class of each node, by id."""
    rng, names = np.random.default_rng(0), list(WORDS)
    task = g3nn.synthetic(nodes=SIZE, classes=3, degree=3, features=4, labels_per_class=5, val=10, seed=1)
    truth = {f"n{node}": names[label] for node, label in enumerate(task.labels.tolist())}
    with (folder / "nodes.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", "title", "text", "year"])
        for node, name in truth.items():
            own, other = rng.choice(WORDS[name].split(), 2), rng.choice(" ".join(WORDS.values()).split(), 3)
            words = rng.permutation([*own, *other, *rng.choice(COMMON.split(), 6)]).tolist()
            title = " and ".join(rng.permutation([own[0], other[0]]).tolist()).capitalize()
            out.writerow([node, title, " ".join(words).capitalize() + ".", int(rng.integers(1990, 2025))])
    with (folder / "edges.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["from", "to"], *[[f"n{i}", f"n{j}"] for i, j in task.edges.T.tolist()]])
    return truth


def answer(page: Page, truth: dict[str, str]) -> None:
    """One question. Classes are added when they come up for the first time."""
    node = page.locator("#id").inner_text()
    name = truth[node]
    known = page.locator("#classes button", has_text=name)
    if known.count():
        known.first.click()
    else:
        for key in ("/", *name, "Enter", "Enter"):
            page.keyboard.press(key)
    page.wait_for_function(READY, arg=node)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chromium", default="chromium", help="the browser")
    parser.add_argument("--out", type=Path, default=Path("docs/label.png"))
    given = parser.parse_args()
    with TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        truth = tables(folder)
        command = "label --nodes nodes.csv --edges edges.csv --id id --label subject --title title --text text"
        server = subprocess.Popen(
            [sys.executable, "-m", "g3nn", *command.split(), "--out", "labels", "--no-open", "--person", "Ann"],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdout is not None
        address = next(word for line in server.stdout for word in line.split() if word.startswith("http"))
        browser = playwright.chromium.launch(executable_path=given.chromium)
        page = browser.new_page(viewport={"width": 1200, "height": 1180})
        page.goto(address)
        page.wait_for_function(READY, arg="")
        for _ in range(QUESTIONS):
            answer(page, truth)
            page.wait_for_timeout(PAUSE)
        page.wait_for_function("() => document.body.textContent.includes('learned from')", timeout=120_000)
        page.wait_for_timeout(20_000)
        page.screenshot(path=given.out)
        browser.close()
        server.kill()


if __name__ == "__main__":
    main()
