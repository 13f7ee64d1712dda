from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlencode

import numpy as np
import pyarrow as pa
import pytest
from pages import assert_fits, column, loader, nameless_controls, shown, visitor

import g3nn
from g3nn.estimator import G3NNClassifier
from g3nn.pages import write_model_report
from g3nn.queries import AuditTables

pytestmark = pytest.mark.slow

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
WILD = "<img src=x onerror=document.title='broken'> & <b>law</b>"
CLASSES = np.array(["art", WILD, "tea"], dtype=object)
ROW = np.dtype([("rank", np.int64), ("source", np.int64), ("target", np.int64), ("probability", np.float64)])
NODES, HUB, ISOLATED, ODD = 80, "n0", "n79", "n3 <b>\"&'#=%</b>"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page of eighty nodes: the first has edges to half of the others, the last one is isolated."""
    task = g3nn.synthetic(nodes=NODES, classes=3, degree=4, features=8, labels_per_class=6, val=36, seed=2)
    hub = np.stack([np.zeros(40, dtype=np.int64), np.arange(1, 41)])
    edges = np.unique(np.concatenate([task.edges[:, (task.edges < NODES - 1).all(axis=0)], hub], axis=1), axis=1)
    y = np.full(NODES, None, dtype=object)
    for part in (task.train, task.val):
        y[part] = CLASSES[task.labels[part]]
    classifier = G3NNClassifier("sbm-gcn", epochs=20, ensemble=2, device="cpu", validation=0.3)
    classifier.fit(task.features, y, edges, val=task.val)
    rng = np.random.default_rng(0)
    likely = np.sort(rng.random(edges.shape[1]))
    ranked = np.stack([np.zeros_like(likely), *edges[:, rng.permutation(edges.shape[1])], likely], axis=1)
    missing = [(1, 0, 60, 0.9), (2, 70, 78, 0.4)]
    audit = AuditTables(*(np.array(list(map(tuple, rows)), dtype=ROW) for rows in (ranked, missing)))
    ids = [ODD if node == 3 else f"n{node}" for node in range(NODES)]
    path = tmp_path_factory.mktemp("model") / "report.html"
    write_model_report(classifier, path, nodes=pa.table({"id": ids}), title=f"Nodes of {WILD}", audit=audit)
    return path.as_uri()


@pytest.fixture(scope="module")
def fresh(browser, address):
    yield from loader(browser, address)


@pytest.fixture(scope="module")
def loaded(fresh):
    return fresh()


@pytest.fixture
def visit(loaded):
    """The page at a node, as a reader with this window sees it."""
    yield from visitor(loaded, lambda node: f"#{urlencode({'node': node})}")


def asked(page):
    return parse_qs(page.url.partition("#")[2]).get("node", [None])[0]


def head(page, caption, label):
    return page.locator(f'[aria-label="{caption}"] th', has_text=label).first


def test_opens_from_a_file(visit):
    page = visit()
    assert page.title() == page.locator("h1").inner_text() == f"Nodes of {WILD}"
    charts = page.locator("main [role=img].chart")
    assert charts.count() >= 6
    assert all(charts.evaluate_all("found => found.map((one) => one.querySelector('.main-svg') !== null)"))
    assert column(page, "Classes", 1) == sorted(CLASSES)
    assert column(page, "Models tried", 2) == ["sbm-gcn"]


def test_names_are_text_everywhere(visit):
    page = visit(ODD)
    assert shown(page) == ODD
    assert page.locator("main img, main b:not(.warning b)").count() == 0
    ticks = page.locator("[aria-label='Confusion matrix'] .ytick")
    names = ticks.evaluate_all("found => found.map((one) => one.textContent)")
    assert names == [name if len(name) <= 16 else f"{name[:15]}…" for name in sorted(CLASSES)]


def test_tables_sort_both_ways(visit):
    page = visit()
    for direction in ("ascending", "descending"):
        head(page, "Uncertain nodes", "probability").get_by_role("button").click()
        values = [float(text) for text in column(page, "Uncertain nodes", 3)]
        assert values == sorted(values, reverse=direction == "descending")
        assert head(page, "Uncertain nodes", "probability").get_attribute("aria-sort") == direction
    head(page, "Uncertain nodes", "node").get_by_role("button").press("Enter")
    assert column(page, "Uncertain nodes", 1)[:3] == ["n0", "n1", "n2"]
    head(page, "Uncertain nodes", "entropy").get_by_role("button").click()
    head(page, "Uncertain nodes", "entropy").get_by_role("button").click()


def test_tables_are_searched(visit):
    page = visit()
    box = page.get_by_role("searchbox", name="Search: Suspicious edges")
    box.fill("n12")
    rows = page.locator('[aria-label="Suspicious edges"] tbody tr').all_inner_texts()
    assert rows
    assert all("n12" in row for row in rows)
    box.fill("n0 ART")
    ends = list(zip(*(column(page, "Suspicious edges", index) for index in (3, 4, 6, 7)), strict=True))
    assert ends
    assert all("n0" in row and any(text.startswith("art") for text in row) for row in ends)
    box.fill("nowhere")
    assert page.locator("#suspicious-table").get_by_text("No row matches.").is_visible()
    assert column(page, "Suspicious edges", 1) == []


def test_pages_of_a_table_are_turned(visit):
    page = visit()
    first = column(page, "Uncertain nodes", 1)
    assert (len(first), page.locator("#uncertain .shown").inner_text()) == (10, "1 to 10 of 80")
    assert page.get_by_role("button", name="Previous page: Uncertain nodes").is_disabled()
    page.get_by_role("button", name="Next page: Uncertain nodes").click()
    assert page.locator("#uncertain .shown").inner_text() == "11 to 20 of 80"
    assert not set(first) & set(column(page, "Uncertain nodes", 1))
    page.get_by_role("button", name="Previous page: Uncertain nodes").click()
    assert column(page, "Uncertain nodes", 1) == first


def test_suspicious_edges_begin_with_the_least_likely(visit):
    page = visit()
    likely = [float(text) for text in column(page, "Suspicious edges", 2)]
    assert likely == sorted(likely)
    assert column(page, "Suspicious edges", 1) == [str(rank) for rank in range(1, 11)]
    assert column(page, "Likely missing edges", 2) == ["0.900", "0.400"]


def orange_pixels(page):
    """How many pixels of the map have about the colour of suspicious edges."""
    return page.evaluate(
        """() => {
            const { width, height } = document.getElementById("map-canvas");
            const pen = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
            pen.drawImage(document.getElementById("map-canvas"), 0, 0);
            const { data } = pen.getImageData(0, 0, width, height);
            const [red, green, blue] = g3nn.resolved("var(--below)").match(/[0-9]+/g).map(Number);
            let found = 0;
            for (let at = 0; at < data.length; at += 4) {
                const far = Math.abs(data[at] - red) + Math.abs(data[at + 1] - green) + Math.abs(data[at + 2] - blue);
                found += far < 60 && data[at + 3] > 60 ? 1 : 0;
            }
            return found;
        }"""
    )


def test_the_switch_hides_suspicious_edges_and_shows_what_is_then_believed(visit):
    page = visit()
    told = "nodes => nodes.map((place) => [beliefs.node(place).answer, beliefs.node(place, 1).answer])"
    answers = page.evaluate(told, list(range(NODES)))
    changed = [place for place, (before, after) in enumerate(answers) if before != after]
    page = visit(f"n{changed[-1]}")
    both = page.get_by_role("switch", name="without suspicious edges")
    assert both.count() == 2
    switch = page.locator("#map").get_by_role("switch")
    texts = [page.locator(part) for part in ("#map-status", "#node dd:has(.named)")]
    before = [one.first.inner_text() for one in texts]
    edges, orange = page.locator(".edge:not(.suggested)").count(), orange_pixels(page)
    assert orange > 50
    switch.focus()
    page.keyboard.press("Space")
    assert [one.is_checked() for one in both.all()] == [True, True]
    assert orange_pixels(page) < orange / 10
    assert page.locator("#map .shown").inner_text() == f"{len(changed)} with another answer"
    assert all(one.first.inner_text() != text for one, text in zip(texts, before, strict=True))
    assert page.locator(".edge:not(.suggested)").count() < edges
    assert all(float(text) >= 0.5 for text in column(page, "Neighbours", 2))
    # The other switch of the page turns it back.
    page.locator("#explorer").get_by_role("switch").click()
    assert not switch.is_checked()
    assert (orange_pixels(page), page.locator("#map .shown").inner_text()) == (orange, "")
    assert page.locator(".edge:not(.suggested)").count() == edges


def test_suspicious_edges_say_what_is_believed_about_their_ends_without(visit):
    page = visit()
    page.get_by_role("combobox", name="Without: Suspicious edges").select_option("Without: an answer changes")
    for index in range(len(column(page, "Suspicious edges", 1))):
        answers = [[column(page, "Suspicious edges", at)[index] for at in pair] for pair in ((4, 5), (7, 8))]
        assert any(one.split("\n")[0] != other.split("\n")[0] for one, other in answers)
    page.get_by_role("combobox", name="Without: Suspicious edges").select_option("Without: any")


def test_a_node_in_a_table_opens_the_explorer(visit):
    page = visit()
    cell = page.locator('[aria-label="Uncertain nodes"] [data-node]').nth(4)
    name = cell.inner_text()
    page.evaluate("scrollTo(0, 0)")
    cell.click()
    assert shown(page) == asked(page) == name
    assert page.evaluate("document.activeElement.id") == "node-name"
    assert page.locator("#drawing svg").evaluate("one => one.getBoundingClientRect().top < innerHeight")


def test_a_neighbour_is_clicked_and_back_returns(visit):
    page = visit("n12")
    # The hub has more neighbours than are listed.
    neighbour = page.locator(f".neighbour:not([aria-label^='{HUB}:'])").first
    target = neighbour.get_attribute("aria-label").partition(":")[0]
    neighbour.locator(".fill").click()
    assert shown(page) == asked(page) == target
    assert "n12" in column(page, "Neighbours", 1)
    page.go_back()
    page.wait_for_function("document.getElementById('node-name').textContent === 'n12'")
    assert shown(page) == "n12"


def test_the_keyboard_walks_around_and_goes_there(visit):
    page = visit(HUB)
    focused = "document.activeElement.getAttribute('aria-label')"
    page.locator("#explorer-bar input").focus()
    page.keyboard.press("Tab")
    labels = page.locator(".neighbour").evaluate_all("found => found.map((one) => one.getAttribute('aria-label'))")
    assert page.evaluate(focused) == labels[0]
    for key, index in (
        ("ArrowRight", 1),
        ("ArrowDown", 2),
        ("ArrowLeft", 1),
        ("Home", 0),
        ("ArrowUp", -1),
        ("End", -1),
    ):
        page.keyboard.press(key)
        assert page.evaluate(focused) == labels[index]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert shown(page) == labels[0].partition(":")[0]
    assert page.evaluate(focused).startswith(f"{HUB}:")
    page.keyboard.press("Tab")
    assert not page.evaluate("document.getElementById('drawing').contains(document.activeElement)")


def test_an_edge_says_how_likely_it_is(visit):
    page = visit("n12")
    for label, text in page.locator(".neighbour").evaluate_all(
        "found => found.map((one) => [one.getAttribute('aria-label'), one.querySelector('title').textContent])"
    ):
        assert "edge with probability" in label
        assert label == text
    likely = dict(zip(column(page, "Neighbours", 1), column(page, "Neighbours", 2), strict=True))
    for group in page.locator(".neighbour").all():
        name, _, rest = group.get_attribute("aria-label").partition(":")
        assert likely[name] in rest
        assert group.locator(".number").text_content() == likely[name]


def test_unlikely_edges_are_thin_and_broken(visit):
    page = visit(HUB)
    lines = page.locator(".edge:not(.suggested)").evaluate_all(
        "found => found.map((one) => [Number(one.getAttribute('stroke-width')), one.hasAttribute('stroke-dasharray')])"
    )
    broken = [width for width, dashed in lines if dashed]
    whole = [width for width, dashed in lines if not dashed]
    assert broken
    assert max(broken) < min(whole)


def test_at_most_thirty_neighbours_are_drawn(visit):
    page = visit(HUB)
    assert page.locator(".edge:not(.suggested)").count() == 30
    assert page.locator(".edge.suggested").count() == 1
    degree = int(page.locator(".node-details .facts").inner_text().partition("Neighbours\n")[2].split()[0])
    assert degree >= 40
    assert f"30 of {degree} edges are drawn, the least likely ones." in page.locator("#legend").inner_text()
    assert page.locator("#neighbours-table .shown").inner_text() == f"1 to 10 of {degree + 1}"


def test_an_isolated_node(visit):
    page = visit(ISOLATED)
    assert shown(page) == ISOLATED
    assert page.locator(".neighbour").count() == 0
    assert page.locator("#drawing").inner_text() == "no edges"
    assert page.get_by_text("This node has no edges.").is_visible()


def test_a_node_is_found_by_its_id(visit):
    page = visit(HUB)
    box = page.locator("#find-id")
    box.fill("n4")
    options = page.locator("#find-list option").evaluate_all("found => found.map((one) => one.value)")
    assert options == ["n4", *(f"n4{digit}" for digit in range(10))]
    box.fill("n42")
    box.press("Enter")
    assert shown(page) == asked(page) == "n42"
    box.fill("nobody")
    page.get_by_role("button", name="Show").click()
    assert page.locator("#find-status").inner_text() == "No node has such an id or name."
    assert page.locator("#node-name").inner_text() == "n42"


def test_the_address_restores_the_node(visit, fresh):
    page = visit("n12")
    page.locator("#find-id").fill(ODD)
    page.locator("#find-id").press("Enter")
    assert asked(page) == ODD
    again = fresh(page.url[page.url.index("#") :])
    assert shown(again) == ODD
    assert again.complaints == []


def test_an_address_that_means_nothing_is_ignored(visit):
    page = visit("nobody")
    start = shown(page)
    assert start == shown(visit())
    assert start != "nobody"


def test_links_to_parts_of_the_page_keep_the_node(visit):
    page = visit("n12")
    page.get_by_role("link", name="Models tried").click()
    assert asked(page) == "n12"
    assert page.evaluate("document.activeElement.id") == "models"


def test_nothing_makes_the_page_scroll_sideways(visit):
    for node in [HUB, "n12"]:
        for width in [360, 768]:
            page = visit(node, width=width, height=800)
            assert_fits(page, width)


def test_every_text_can_be_read(visit):
    for scheme in ["light", "dark"]:
        page = visit(HUB, scheme=scheme)
        contrasts = page.evaluate(CONTRAST, 4.5)
        assert contrasts["texts"] > 100
        assert contrasts["low"] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_class_stands_out(visit, scheme):
    page = visit(scheme=scheme)
    # A mark needs less contrast than a text; the same measure is taken of the colours as if they were text.
    page.evaluate(
        """() => {
            const probe = document.createElement("div");
            probe.id = "probe";
            for (let name = 0; name < 40; name += 1) {
                const one = document.createElement("p");
                one.style.color = parts.colour(name);
                one.textContent = name;
                probe.append(one);
            }
            document.querySelector("main").append(probe);
        }"""
    )
    low = [text for _, _, text in page.evaluate(CONTRAST, 3.0)["low"]]
    page.evaluate("document.getElementById('probe').remove()")
    assert low == []


def test_the_reader_chooses_another_theme(fresh):
    page = fresh(color_scheme="light")
    ink = "document.querySelector('.chart').layout.font.color"
    disc = "getComputedStyle(document.querySelector('#drawing .fill')).fill"
    light = [page.evaluate(one) for one in (ink, disc)]
    page.get_by_role("button", name="Dark").click()
    assert all(page.evaluate(one) != before for one, before in zip((ink, disc), light, strict=True))
    assert page.complaints == []


def test_every_control_has_a_name(visit):
    page = visit(HUB)
    assert nameless_controls(page) == 0
