"""What a page shows of the reader's own table: names, columns, reasons, filters, files, and the map of the graph."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pages import assert_fits, column, loader, shown, visitor

import g3nn
from g3nn.estimator.showing import Neighbour
from g3nn.pages import layout, write_model_report

pytestmark = pytest.mark.slow

NODES = 40
NAMES = ["<b>Ann</b>", '=HYPERLINK("x")', 'Bo, the "2nd"\nof two', "-12", "+cmd", " Eve "]
IDS = [f"n{node}" for node in range(NODES)]


def title(node):
    return NAMES[node] if node < len(NAMES) else f"Person {node}"


def explain(nodes, *, ids=True):
    """The first neighbour pulls the answer up, the second down."""
    return [([Neighbour(0, 0.5), Neighbour(1, -0.25)], [("<i>age</i>", 0.125)])] * len(nodes)


@pytest.fixture(scope="module")
def classifier():
    task = g3nn.synthetic(nodes=NODES, classes=2, degree=4, features=4, labels_per_class=6, val=12, seed=2)
    y = np.full(NODES, None, dtype=object)
    for part in (task.train, task.val):
        y[part] = np.array(["art", "law"], dtype=object)[task.labels[part]]
    fitted = g3nn.G3NNClassifier("gcn", epochs=20, ensemble=1, device="cpu")
    fitted.fit(task.features, y, task.edges, val=task.val)
    fitted.explain = explain
    return fitted


@pytest.fixture(scope="module")
def nodes():
    return pd.DataFrame({"id": IDS, "name": [title(node) for node in range(NODES)], "town": ["<b>Oslo</b>", None] * 20})


@pytest.fixture(scope="module", params=["nodes", "bubbles"])
def loaded(request, browser, classifier, nodes, tmp_path_factory):
    """A page whose map has all edges, and one whose map has bubbles, as that of a large graph."""
    path = tmp_path_factory.mktemp("own") / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "bubbles":
            patch.setattr(layout, "MOST_FREE", 10)
        write_model_report(classifier, path, nodes=nodes)
    load = loader(browser, path.as_uri())
    yield next(load)()
    next(load, None)


@pytest.fixture
def visit(loaded):
    yield from visitor(loaded, lambda node: f"#node={node}")
    loaded.evaluate(
        """() => document.querySelectorAll("select").forEach((one) => {
            one.value = -1;
            one.dispatchEvent(new Event("change"));
        })"""
    )


def saved(page, caption) -> list[list[str]]:
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Download as CSV: {caption}").click()
    text = Path(download.value.path()).read_bytes().decode("utf-8-sig")
    return list(csv.reader(text.splitlines(keepends=True)))


def on_map(page, node) -> tuple[float, float]:
    """Where a node stands on the screen."""
    page.locator("#map-canvas").scroll_into_view_if_needed()
    box = page.locator("#map-canvas").bounding_box()
    x, y = page.evaluate("map.at", node)
    return box["x"] + x, box["y"] + y


COLOUR = """(node) => {
    const drawn = document.getElementById("map-canvas");
    const copy = Object.assign(document.createElement("canvas"), { width: drawn.width, height: drawn.height });
    const pen = copy.getContext("2d", { willReadFrequently: true });
    pen.drawImage(drawn, 0, 0);
    const [x, y] = map.at(node).map((value) => Math.round(value * devicePixelRatio));
    return [...pen.getImageData(x, y, 1, 1).data];
}"""
"""Read from a copy: a browser complains about a canvas that is drawn to and read often."""


def colour_at(page, node) -> list[int]:
    return page.evaluate(COLOUR, node)


def test_nodes_have_their_names_and_columns(visit):
    page = visit("n0")
    assert shown(page) == title(0)
    assert "id n0" in page.locator("#node").inner_text()
    assert page.locator("#more").inner_text().partition("From your table")[2].split() == [
        "town",
        title(0).replace("Ann", "Oslo"),
    ]
    assert page.locator("main b:not(.warning b), main i:empty b").count() == 0
    page.locator("#find-id").fill("person 17")
    assert page.locator("#find-list option").evaluate_all("found => found.map((one) => one.value)") == ["n17"]
    page.locator("#find-id").press("Enter")
    assert shown(page) == "Person 17"
    assert page.url.endswith("#node=n17")


def test_reasons_say_what_pulled_the_answer(visit):
    page = visit("n9")
    rows = [row.split("\n") for row in page.locator("#more .pulls li").all_inner_texts()]
    assert [[text.strip() for text in row] for row in rows] == [
        [title(0), "+0.500"],
        [title(1), "−0.250"],
        ["feature <i>age</i>", "+0.125"],
    ]
    assert "the edge was left out" in page.locator("#more").inner_text()


def test_a_list_is_filtered_by_answer_and_label(visit, classifier):
    page = visit()
    answers, labelled = (
        classifier.predict(),
        np.isin(np.arange(NODES), [*classifier.task_.train, *classifier.task_.val]),
    )
    page.get_by_label("Answer: Uncertain nodes").select_option("Answer: law")
    assert set(column(page, "Uncertain nodes", 2)) == {"law"}
    assert page.locator("#uncertain .shown").inner_text().endswith(str((answers == "law").sum()))
    page.get_by_label("Label: Uncertain nodes").select_option("Label: not given")
    rows = saved(page, "Uncertain nodes")[1:]
    assert {row[0] for row in rows} == {IDS[node] for node in np.flatnonzero((answers == "law") & ~labelled)}


def test_a_file_keeps_every_text_and_runs_none(visit, classifier):
    header, *rows = saved(visit(), "Uncertain nodes")
    assert header[:4] == ["id", "name", "answer", "probability"]
    assert header[-1] == "town"
    assert len(rows) == NODES
    names = {row[0]: row[1] for row in rows}
    expected = [NAMES[0], f"'{NAMES[1]}", NAMES[2], "-12", "'+cmd", " Eve "]
    assert [names[id] for id in IDS[: len(NAMES)]] == expected
    probabilities = dict(zip(IDS, classifier.predict_proba().max(1), strict=True))
    assert {row[0]: float(row[3]) for row in rows} == pytest.approx(probabilities, abs=1e-4)
    assert {row[-1] for row in rows} == {"<b>Oslo</b>", ""}


def test_every_list_has_a_file(visit):
    page = visit("n0")
    lists = page.locator(".paged").count()
    assert page.locator(".paged .save:visible").count() == lists
    assert saved(page, "Classes")[0][0] == "class"
    assert saved(page, "Neighbours")[0][:2] == ["id", "name"]


def test_a_node_of_the_map_is_pointed_at_and_opened(visit):
    page = visit("n0")
    x, y = on_map(page, 23)
    page.mouse.move(x, y)
    assert page.locator("#map-status").inner_text().startswith("Person 23 (n23): ")
    page.mouse.click(x, y)
    assert shown(page) == "Person 23"
    assert page.evaluate("document.activeElement.id") == "node-name"


def test_what_is_opened_is_what_the_pointer_went_down_on(visit):
    """A click knows its place in whole pixels only: among thousands of dots that may be another node."""
    page = visit("n0")
    page.evaluate(
        """([x, y]) => {
            const canvas = document.getElementById("map-canvas");
            canvas.dispatchEvent(new PointerEvent("pointerdown", { clientX: x, clientY: y }));
            canvas.dispatchEvent(new MouseEvent("click", { clientX: 0, clientY: 0 }));
            dispatchEvent(new PointerEvent("pointerup"));
        }""",
        on_map(page, 23),
    )
    assert shown(page) == "Person 23"


def test_a_node_whose_neighbours_are_not_on_the_page_is_not_opened(visit):
    page = visit("n0")
    whole = page.evaluate("graph.packed.explorable")
    page.evaluate("graph.packed.explorable = 5")
    page.mouse.click(*on_map(page, 23))
    assert page.locator("#map-status").inner_text() == "Person 23: the neighbours of this node are not on this page."
    page.evaluate("(count) => { graph.packed.explorable = count; }", whole)
    assert shown(page) == title(0)


def test_the_keyboard_walks_over_the_map(visit):
    page = visit("n0")
    page.locator("#map-canvas").focus()
    page.keyboard.press("+")
    walked = set()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp") * 3:
        page.keyboard.press(key)
        walked.add(page.evaluate("map.pointed()"))
    assert len(walked) > 2
    name = page.locator("#map-status").inner_text().partition(" (")[0]
    page.keyboard.press("Enter")
    assert shown(page) == name
    page.get_by_role("button", name="Whole map").click()


def test_the_map_is_filtered(visit, classifier):
    page = visit("n0")
    art, law = (int(np.flatnonzero(classifier.predict() == name)[-1]) for name in ("art", "law"))
    before = [colour_at(page, node) for node in (art, law)]
    page.get_by_label("Answer: Map").select_option("Answer: law")
    assert page.locator("#map-bar .shown").inner_text() == f"{(classifier.predict() == 'law').sum()} of {NODES} nodes"
    after = [colour_at(page, node) for node in (art, law)]
    assert after[1] == before[1]
    assert after[0] != before[0]


def test_the_map_follows_the_theme_and_the_window(visit):
    page = visit("n0")
    light = colour_at(page, 23)
    dark = visit("n0", scheme="dark")
    # It is drawn again soon after.
    dark.wait_for_function(f"([node, light]) => String(({COLOUR})(node)) !== String(light)", arg=[23, light])
    page = visit("n0", width=360, height=800)
    page.wait_for_function("document.getElementById('map-canvas').clientWidth < 340")
    assert_fits(page, 360)
