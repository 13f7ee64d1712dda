"""Labelling by keyboard in a browser, with a server that is killed in between."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from multiprocessing import forkserver, get_context
from pathlib import Path
from typing import Any

import label_desk
import pytest
from pages import nameless_controls

from g3nn.labelling.opinions import opinions
from g3nn.labelling.project import Project

pytestmark = pytest.mark.slow

SUPPORT = Path(__file__).parents[1] / "support"
CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
CLASSES = ("art", "law", "tea")
READY = """(before) => document.querySelector(".question").ariaBusy === "false"
    && document.getElementById("id").textContent !== before && document.getElementById("id").textContent"""


class Server:
    """The server of a project, in a process of its own. apart: so is its learner."""

    def __init__(self, forks: Any, folder: Path, classes: Sequence[str], apart: bool) -> None:
        here, there = forks.Pipe()
        self.process = forks.Process(target=label_desk.serving, args=(folder, classes, apart, there.send))
        self.process.start()
        assert here.poll(60), "the server did not start"
        self.address = here.recv()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


@pytest.fixture(scope="module")
def forks():
    """Starts processes that need not import anything: they are copies of one that has."""
    context = get_context("forkserver")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), *filter(None, sys.path)]))
        context.set_forkserver_preload(["label_desk"])
        forkserver.ensure_running()
    return context


@pytest.fixture
def start(tmp_path, forks):
    running = []

    def begin(*classes: str, apart: bool = False) -> Server:
        running.append(Server(forks, tmp_path, classes or CLASSES, apart))
        return running[-1]

    yield begin
    for server in running:
        server.kill()


@pytest.fixture
def visit(browser):
    contexts, complaints = [], []

    def open_page(server, **settings):
        context = browser.new_context(reduced_motion="reduce", **settings)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("request", lambda one: one.url.startswith(server.address) or complaints.append(one.url))
        page.goto(server.address)
        page.complaints = complaints
        page.node = page.wait_for_function(READY, arg="").json_value()
        return page

    yield open_page
    for context in contexts:
        context.close()


def press(page, *keys):
    """Keys that lead to another question; the node that they answered."""
    answered = page.node
    for key in keys:
        page.keyboard.press(key)
    page.node = page.wait_for_function(READY, arg=answered).json_value()
    return answered


def turn(node, more=0):
    """What the node is, or what one may take it for."""
    return CLASSES[(int(node[1:]) + more) % 3]


def digit(page, name):
    """The key that chooses a class in the question that is shown."""
    return page.locator(f'.class[data-name="{name}"] kbd').inner_text()


def choose(page, name=None):
    return press(page, digit(page, name or turn(page.node)))


def saved(folder):
    with Project.open(folder / "project") as project:
        return {node: one.label for node, one in opinions(project.current()).items()}


def test_thirty_nodes_five_corrections_and_a_kill(tmp_path, start, visit):
    server = start(apart=True)
    page = visit(server)
    given = {choose(page): None for _ in range(15)}
    waiting = page.node
    server.kill()
    assert len(saved(tmp_path)) == 15
    page.keyboard.press("1")
    page.wait_for_function("() => document.getElementById('alert').textContent.includes('does not answer')")
    assert len(saved(tmp_path)) == 15

    server = start(apart=True)
    page = visit(server)
    assert page.locator("#place").inner_text() == "15 labels given"
    while len(given) < 30:
        given[choose(page)] = None
    assert waiting in given or page.node != waiting
    wrong = list(given)[-5:]
    for node in wrong:
        page.locator("#node-id").fill(node)
        page.keyboard.press("Enter")
        page.wait_for_function("(node) => document.getElementById('id').textContent === node", arg=node)
        page.node = node
        choose(page, turn(node, 1))
    expected = {node: turn(node) for node in given} | {node: turn(node, 1) for node in wrong}
    assert saved(tmp_path) == expected

    again = page.locator("#doubted")
    again.filter(has_text="(5)").wait_for()
    page.wait_for_function("() => !document.getElementById('why').textContent.startsWith('Working out')")
    again.click()
    assert again.get_attribute("aria-pressed") == "true"
    rows = page.locator("#answers tbody tr")
    rows.filter(has_text=re.compile("nodes like it are rather.*; wrong with probability 0.75")).nth(4).wait_for()
    assert rows.count() == 5
    rows.first.get_by_role("button", name=re.compile("^Look again: ")).click()
    page.wait_for_function("(nodes) => nodes.includes(document.getElementById('id').textContent)", arg=wrong)
    node = page.node = page.locator("#id").inner_text()
    choose(page)
    expected[node] = turn(node)
    assert saved(tmp_path) == expected
    again.filter(has_text="(4)").wait_for()
    server.kill()

    page = visit(start(apart=True))
    assert page.locator("#place").inner_text() == "30 labels given"
    assert saved(tmp_path) == expected
    with Project.open(tmp_path / "project") as project:
        assert len(project.history()) == 36


def test_everything_by_keyboard(tmp_path, start, visit):
    page = visit(start())
    first = press(page, "/", "l", "Enter")
    assert saved(tmp_path) == {first: "law"}
    # A new class is confirmed by a second Enter.
    new = press(page, "/", "j", "a", "z", "z", "Enter", "Enter")
    assert saved(tmp_path)[new] == "jazz"
    assert page.locator(".class .word").all_inner_texts() == [*CLASSES, "jazz"]
    page.keyboard.press("u")
    page.wait_for_function("(node) => document.getElementById('id').textContent === node", arg=new)
    page.node = new
    assert new not in saved(tmp_path)
    page.keyboard.press("n")
    page.keyboard.type("1 <b>note</b>")
    page.keyboard.press("Escape")
    choose(page, "jazz")
    unknown = press(page, "d")
    skipped = press(page, "s")
    assert saved(tmp_path) == {first: "law", new: "jazz", unknown: None}
    assert skipped not in saved(tmp_path)
    rows = page.locator("#answers tbody tr").all_inner_texts()
    assert any("1 <b>note</b>" in row for row in rows)
    assert "Next:" in page.locator("#announce").inner_text()
    # With the keys off, a digit does nothing.
    page.locator("#keys").click()
    page.keyboard.press("1")
    assert len(saved(tmp_path)) == 3
    assert page.complaints == []


def test_two_people_one_of_them_on_a_phone(start, visit):
    server = start()
    page = visit(server, viewport={"width": 390, "height": 844}, color_scheme="dark")
    pages, shown = [page, visit(server)], [[], []]
    for _ in range(6):
        for one, seen in zip(pages, shown, strict=True):
            assert one.node not in {other.node for other in pages if other is not one}
            seen.append(choose(one))
    assert len({*shown[0], *shown[1]}) == 12
    assert re.fullmatch(r"<b>Person</b> \d+", page.locator("#title").inner_text())
    assert page.locator("main b").count() == 0
    page.wait_for_function("() => document.getElementById('learner').textContent.includes('learned from')")
    choose(page)
    page.wait_for_selector("#why li, #guess .note")
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    assert nameless_controls(page) == 0
    assert page.locator("[aria-live=polite]").count() == 1
    # What a finger needs is in view.
    assert page.locator(".class").first.bounding_box()["y"] < 844
    assert page.complaints == []


def test_a_list_stays_under_the_pointer_when_the_question_above_it_grows(start, visit):
    page = visit(start())
    button = page.locator("#disputed")
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.evaluate("""() => {
        document.getElementById("why").style.height = "300px";
        return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    }""")
    page.mouse.up()
    assert button.get_attribute("aria-pressed") == "true"


KEYS = """() => Object.fromEntries([...document.querySelectorAll(".class[aria-keyshortcuts]")].map(
    (one) => [one.getAttribute("aria-keyshortcuts"), one.dataset.name]))"""


def test_keys_go_to_the_likeliest_classes_and_stay_while_a_question_is_shown(start, visit):
    names = [f"class-{letter}" for letter in "abcdefghijklmn"]
    server = start(*names)
    page = visit(server)
    in_order = {str(1 + place): name for place, name in enumerate(names[:9])}
    assert page.evaluate(KEYS) == in_order
    for name in (names[13], names[11], names[13]):
        page.locator("#search").fill(name)
        press(page, "Enter")
    page.wait_for_function("() => document.getElementById('learner').textContent === 'learned from 3 labels'")
    # Keys do not change for a guess that comes while the question is open, nor tell of one that is hidden.
    while page.evaluate(KEYS) == in_order:
        press(page, "s")
    likely = {"1": names[13], "2": names[11]} | {str(3 + place): name for place, name in enumerate(names[:7])}
    assert page.evaluate(KEYS) == likely
    assert page.locator("#guess li kbd").all_inner_texts() == ["1", "2"]
    assert page.locator(".class kbd:visible").count() == 9

    other = visit(server)
    press(other, "/", "n", "e", "w", "Enter", "Enter")
    page.locator("#finish").click()
    page.locator('.class[data-name="new"]').wait_for()
    assert page.evaluate(KEYS) == likely
    assert "key 1." in page.locator("#announce").inner_text()
    press(page, "1")
    assert page.locator("#said").inner_text().endswith("The model guessed so too (0.67).")
    assert page.complaints == []


COLOURS = """(count) => {
    const probe = document.createElement("p");
    const edge = Object.assign(document.createElement("p"), { id: "probe" });
    document.querySelector("main").append(probe, edge);
    const found = Array.from({ length: count }, (_, place) => {
        probe.style.color = palette.colour(place);
        const one = edge.appendChild(document.createElement("span"));
        one.style.color = palette.colour(place);
        one.textContent = place;
        const [lightness, chroma, hue] = getComputedStyle(probe).color.match(/[0-9.]+/g).map(Number);
        return [lightness, chroma * Math.cos(hue * Math.PI / 180), chroma * Math.sin(hue * Math.PI / 180)];
    });
    const apart = (one, other) => Math.hypot(...one.map((part, axis) => part - other[axis]));
    return Math.min(...found.flatMap((one, place) => found.slice(0, place).map((other) => apart(one, other))));
}"""


@pytest.mark.parametrize(("count", "apart"), [(14, 0.1), (60, 0.05)])
def test_many_classes_are_all_in_view_and_differ(start, visit, count, apart):
    names = [f"class {place} of them" for place in range(count)]
    page = visit(start(*names), viewport={"width": 1280, "height": 900})
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width
        # None is behind the edge of a box that scrolls.
        hidden = page.eval_on_selector_all(
            ".class",
            """(buttons) => buttons.filter((one) => {
                const [own, around] = [one, one.parentElement].map((box) => box.getBoundingClientRect());
                return own.bottom > around.bottom + 1 || own.right > around.right + 1 || !own.width;
            }).length""",
        )
        assert (page.locator(".class").count(), hidden) == (count, 0)
        low = page.evaluate(CONTRAST, 4.5)
        assert (low["texts"] > count, low["low"]) == (True, [])
        # A mark needs less contrast than a text; the same measure is taken of the colours as if they were text.
        assert page.evaluate(COLOURS, count) > apart
        marks = page.evaluate(CONTRAST, 3.0)
        page.evaluate("() => document.getElementById('probe').remove()")
        assert marks["low"] == []
    # On a desk the buttons stay beside a long text; where they would cover it, they follow it.
    page.set_viewport_size({"width": 1280, "height": 900})
    assert page.locator(".answering").evaluate("(one) => getComputedStyle(one).position") == (
        "sticky" if count == 14 else "static"
    )
    page.locator("#search").fill("13")
    assert page.locator(".class:visible .word").all_inner_texts()[0] == names[13]
    assert page.complaints == []
