"""The pages of numbers and tags, clicked and looked at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from number_graph import known_numbers
from pages import assert_fits, column, loader, nameless_controls, shown, visitor

import g3nn
from g3nn.report import write_model_report

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
NODES, HUB, ALONE, ODD = 80, "n0", "n79", "n3 <b>\"&'#=%</b>"
TAGS = ["art", "<b>law</b>", "tea", *(f"a tag with a rather long name, number {k}" for k in range(9))]
KINDS = [("real", 1), ("counts", 2), ("tags", len(TAGS))]
IDS = [ODD if node == 3 else f"n{node}" for node in range(NODES)]


def fitted(outcome, columns):
    """Eighty nodes: the first knows half of the others, the last one nobody."""
    size = {"nodes": NODES, "degree": 4, "features": 4, "labelled": 0.4, "val": 36, "seed": 1}
    task = g3nn.synthetic_values(outcome, columns=columns, **size)
    hub = np.stack([np.zeros(40, dtype=np.int64), np.arange(1, 41)])
    edges = np.unique(np.concatenate([task.edges[:, (task.edges < NODES - 1).all(axis=0)], hub], axis=1), axis=1)
    y = known_numbers(task)
    common = {"model": "gcn", "epochs": 20, "ensemble": 2, "device": "cpu"}
    if outcome == "tags":
        import pyarrow as pa

        labels = pa.table(dict(zip(TAGS, y.T, strict=True)))
        return g3nn.G3NNClassifier(**common).fit(task.features, labels, edges, val=task.val)
    y = y[:, 0] if columns == 1 else y
    return g3nn.G3NNRegressor(**common, outcome=outcome).fit(task.features, y, edges, val=task.val)


@pytest.fixture(scope="module", params=KINDS, ids=[kind for kind, _ in KINDS])
def estimator(request):
    return fitted(*request.param)


@pytest.fixture(scope="module")
def fresh(browser, estimator, tmp_path_factory):
    path = tmp_path_factory.mktemp("outcome") / "report.html"
    write_model_report(estimator, path, ids=IDS, title="Nodes <b>&</b>", audit=estimator.audit(5))
    yield from loader(browser, path.as_uri())


@pytest.fixture(scope="module")
def loaded(fresh):
    return fresh()


@pytest.fixture
def visit(loaded):
    yield from visitor(loaded, lambda node: f"#node={node}")


def doubt(estimator):
    if estimator.task_.outcome == "tags":
        return estimator.predict_entropy()
    return estimator.predict_std().reshape(NODES, -1)[:, 0]


def test_opens_from_a_file(visit):
    page = visit()
    assert page.title() == page.locator("h1").inner_text() == "Nodes <b>&</b>"
    charts = page.locator("main [role=img].chart")
    assert charts.count() >= 2
    assert all(charts.evaluate_all("found => found.map((one) => one.querySelector('.main-svg') !== null)"))
    assert page.locator("main b:not(.warning b)").count() == 0
    assert nameless_controls(page) == 0


def test_uncertain_nodes_are_listed_searched_and_opened(visit, estimator):
    page = visit()
    order = [IDS[node] for node in np.argsort(-doubt(estimator), kind="stable")]
    assert column(page, "Uncertain nodes", 1) == order[:10]
    page.get_by_role("button", name="Next page: Uncertain nodes").click()
    assert column(page, "Uncertain nodes", 1) == order[10:20]
    page.get_by_role("searchbox", name="Search: Uncertain nodes").fill("n42")
    assert column(page, "Uncertain nodes", 1) == ["n42"]
    page.locator('[aria-label="Uncertain nodes"] [data-node]').click()
    assert shown(page) == "n42"
    assert page.url.endswith("#node=n42")
    assert page.evaluate("document.activeElement.id") == "node-name"


def test_tables_sort_by_numbers(visit):
    page = visit()
    button = page.locator('[aria-label="Uncertain nodes"] th', has_text="degree").get_by_role("button")
    for reverse in (False, True):
        button.click()
        places = [text.strip() for text in page.locator('[aria-label="Uncertain nodes"] th').all_inner_texts()]
        found = [int(text) for text in column(page, "Uncertain nodes", places.index("degree") + 1)]
        assert found == sorted(found, reverse=reverse)
    assert column(page, "Uncertain nodes", 1)[0] == HUB


def test_a_node_tells_what_is_believed_of_it(visit, estimator):
    page = visit("n5")
    assert shown(page) == "n5"
    text = page.locator("#node").inner_text()
    if estimator.task_.outcome == "tags":
        likely = estimator.predict_proba()[5]
        values = page.locator("#node .bars .value").all_inner_texts()
        assert [float(value) for value in values] == pytest.approx(sorted(likely, reverse=True)[:8], abs=6e-4)
        names = page.locator("#node .bars .text").all_inner_texts()
        assert names[0].removeprefix("✓ ") == TAGS[int(likely.argmax())]
        return
    low, high = estimator.predict_interval(0.9).reshape(2, NODES, -1)[:, 5, 0]
    told = text.partition("90 % interval")[2].split("Residual")[0].replace("−", "-").split(" to ")
    assert [float(part) for part in told] == pytest.approx([low, high], rel=1e-3, abs=1e-3)
    answer = text.partition("Answer")[2].split()[0].replace("−", "-")
    assert float(answer) == pytest.approx(estimator.predict().reshape(NODES, -1)[5, 0], rel=1e-3)


def test_neighbours_are_drawn_listed_and_walked_to(visit, estimator):
    page = visit(HUB)
    edges = estimator.task_.edges
    assert page.locator(".edge:not(.suggested)").count() == min(30, int((edges == 0).sum()))
    page.locator("#find button").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    other = shown(page)
    assert HUB in column(page, "Neighbours", 1)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith(f"{HUB}:")
    page.go_back()
    page.wait_for_function(f"document.getElementById('node-name').textContent === '{HUB}'")
    assert shown(page) == HUB != other


def test_an_edge_opens_its_end(visit):
    page = visit()
    cell = page.locator('[aria-label="Suspicious edges"] tbody tr').nth(2).locator("[data-node]").last
    name = cell.inner_text()
    cell.click()
    assert shown(page) == name


def test_a_node_is_found_by_its_id(visit):
    page = visit(HUB)
    box = page.locator("#find-id")
    box.fill(ODD)
    box.press("Enter")
    assert shown(page) == ODD
    box.fill("nobody")
    page.get_by_role("button", name="Show").click()
    assert page.locator("#find-status").inner_text() == "No node has such an id."


def test_a_node_without_edges(visit):
    page = visit(ALONE)
    assert (shown(page), page.locator(".neighbour").count()) == (ALONE, 0)
    assert page.get_by_text("This node has no edges.").is_visible()


@pytest.mark.parametrize("node", [HUB, "n12"])
@pytest.mark.parametrize("width", [360, 768])
def test_nothing_makes_the_page_scroll_sideways(visit, width, node):
    assert_fits(visit(node, width=width, height=800), width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(visit, scheme):
    found = visit(HUB, scheme=scheme).evaluate(CONTRAST, 4.5)
    assert found["texts"] > 100
    assert found["low"] == []


def test_the_reader_chooses_another_theme(fresh):
    page = fresh(color_scheme="light")
    disc = "getComputedStyle(document.querySelector('#drawing .fill')).fill"
    light = page.evaluate(disc)
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate(disc) != light
    assert page.complaints == []
