"""Labelling by keyboard in a browser, with a server that is killed in between."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pages import nameless_controls

from g3nn.labelling.opinions import opinions
from g3nn.labelling.project import Project

pytestmark = pytest.mark.slow

SUPPORT = Path(__file__).parents[1] / "support"
CLASSES = ("art", "law", "tea")
READY = """(before) => document.querySelector(".question").ariaBusy === "false"
    && document.getElementById("id").textContent !== before && document.getElementById("id").textContent"""


class Server:
    """The server of a project, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join([str(SUPPORT), *filter(None, sys.path)])
        self.process = subprocess.Popen(
            [sys.executable, str(SUPPORT / "label_desk.py"), str(folder)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": path},
        )
        self.address = self.process.stdout.readline().strip()
        assert self.address.startswith("http")

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def start(tmp_path):
    running = []

    def begin() -> Server:
        running.append(Server(tmp_path))
        return running[-1]

    yield begin
    for server in running:
        if server.process.poll() is None:
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


def digit(node):
    return str(1 + int(node[1:]) % 3)


def saved(folder):
    with Project.open(folder / "project") as project:
        return {node: one.label for node, one in opinions(project.current()).items()}


def test_thirty_nodes_five_corrections_and_a_kill(tmp_path, start, visit):
    server = start()
    page = visit(server)
    given = {press(page, digit(page.node)): None for _ in range(15)}
    waiting = page.node
    server.kill()
    assert len(saved(tmp_path)) == 15
    page.keyboard.press("1")
    page.wait_for_function("() => document.getElementById('alert').textContent.includes('does not answer')")
    assert len(saved(tmp_path)) == 15

    server = start()
    page = visit(server)
    assert page.locator("#place").inner_text() == "15 labels given"
    while len(given) < 30:
        given[press(page, digit(page.node))] = None
    assert waiting in given or page.node != waiting
    wrong = list(given)[-5:]
    for node in wrong:
        page.locator("#node-id").fill(node)
        page.keyboard.press("Enter")
        page.wait_for_function("(node) => document.getElementById('id').textContent === node", arg=node)
        page.node = node
        press(page, str(1 + int(digit(node)) % 3))
    expected = {node: CLASSES[int(digit(node)) - 1] for node in given}
    expected |= {node: CLASSES[int(digit(node)) % 3] for node in wrong}
    assert saved(tmp_path) == expected

    again = page.locator("#doubted")
    again.filter(has_text="(5)").wait_for()
    page.wait_for_function("() => !document.getElementById('why').textContent.startsWith('Working out')")
    again.click()
    assert again.get_attribute("aria-pressed") == "true"
    rows = page.locator("#answers tbody tr")
    rows.filter(has_text="nodes like it are rather").nth(4).wait_for()
    assert rows.count() == 5
    rows.first.get_by_role("button", name=re.compile("^Look again: ")).click()
    page.wait_for_function("(nodes) => nodes.includes(document.getElementById('id').textContent)", arg=wrong)
    node = page.node = page.locator("#id").inner_text()
    press(page, digit(node))
    expected[node] = CLASSES[int(digit(node)) - 1]
    assert saved(tmp_path) == expected
    again.filter(has_text="(4)").wait_for()
    server.kill()

    page = visit(start())
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
    press(page, "4")
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
            seen.append(press(one, digit(one.node)))
    assert len({*shown[0], *shown[1]}) == 12
    assert re.fullmatch(r"<b>Person</b> \d+", page.locator("#title").inner_text())
    assert page.locator("main b").count() == 0
    page.wait_for_function("() => document.getElementById('learner').textContent.includes('learned from')")
    press(page, digit(page.node))
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
