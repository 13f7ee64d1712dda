"""A written page as a test reads it, and as a browser loads it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from g3nn.pages import assets


class Tags(HTMLParser):
    """Every tag with its attributes, and the text outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.texts, self._code = [], [], False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self._code = tag in ("script", "style")
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        self._code = False

    def handle_data(self, text):
        if not self._code:
            self.texts.append(text)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


def own_text(path: Path) -> str:
    """A page without the library: that is not ours to check."""
    return path.read_text(encoding="utf-8").replace(str(assets._chart_library()), "")


def data_of(page: str) -> Any:
    (embedded,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(embedded)


def numbers(packed: str, kind: type) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed), dtype=np.dtype(kind).newbyteorder("<"))


def loader(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """A function that loads a page anew: load("#node=n1", color_scheme="dark"). `page.complaints` lists what goes
    wrong: errors, messages, and requests other than for the page itself and for pictures that charts draw."""
    contexts: list[Any] = []

    def load(hash: str = "", **settings: Any) -> Any:
        # Colours are looked at right after a change; without this they would still be on their way.
        context = browser.new_context(reduced_motion="reduce", **settings)
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.on("pageerror", lambda error: page.complaints.append(f"error: {error}"))
        page.on("console", lambda message: page.complaints.append(f"console: {message.text}"))
        page.on("request", lambda request: _note_request(request.url, address, page.complaints))
        page.goto(address + hash)
        return page

    yield load
    for context in contexts:
        context.close()


def _note_request(url: str, address: str, complaints: list[str]) -> None:
    if url.partition("#")[0] != address and not url.startswith(("data:", "blob:")):
        complaints.append(f"request: {url}")


def visitor(loaded: Any, address_of: Callable[[str], str] = str) -> Iterator[Callable[..., Any]]:
    """A function that shows a loaded page as a reader with this window sees it, with its searches set back:
    go("#node=n1", width=380). address_of: turns what is shown into the end of the address. A page that complained
    fails the test."""

    def go(asked: str | None = None, width: int = 1280, height: int = 900, scheme: str = "light") -> Any:
        loaded.set_viewport_size({"width": width, "height": height})
        loaded.emulate_media(media="screen", color_scheme=scheme)
        loaded.evaluate(
            """(address) => {
                history.replaceState(null, "", location.pathname + address);
                dispatchEvent(new PopStateEvent("popstate"));
                for (const input of document.querySelectorAll(".table-bar input")) {
                    input.value = "";
                    input.dispatchEvent(new Event("input"));
                }
            }""",
            "" if asked is None else address_of(asked),
        )
        return loaded

    yield go
    complaints = list(loaded.complaints)
    loaded.complaints.clear()
    assert complaints == []


def column(page: Any, caption: str, index: int) -> list[str]:
    """The texts of a column of a table, counted from 1."""
    return page.locator(f'[aria-label="{caption}"] tbody tr td:nth-child({index})').all_inner_texts()


def shown(page: Any) -> str:
    """The node in the middle of the explorer, by all that names it."""
    name = page.locator("#node-name").inner_text()
    assert page.locator("#find-id").input_value() == name
    assert page.locator("#neighbours-title").inner_text().startswith(f"Neighbours of {name}")
    assert page.locator("#drawing svg").get_attribute("aria-label") == f"{name} and its neighbours"
    return name


def assert_fits(page: Any, width: int) -> None:
    """Nothing makes the page scroll sideways, and no name leaves the drawing."""
    page.wait_for_function(
        "document.querySelector('#drawing svg').clientWidth <= document.getElementById('drawing').clientWidth"
    )
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    outside = """() => {
        const edge = document.getElementById("drawing").getBoundingClientRect();
        return [...document.querySelectorAll("#drawing text")].filter((one) => {
            const box = one.getBoundingClientRect();
            return box.left < edge.left || box.right > edge.right || box.top < edge.top || box.bottom > edge.bottom;
        }).length;
    }"""
    assert page.evaluate(outside) == 0


def nameless_controls(page: Any) -> int:
    nameless = """controls => controls.filter((one) =>
        !(one.ariaLabel || one.textContent || one.labels?.[0]?.textContent || "").trim()).length"""
    return page.eval_on_selector_all(
        "button, input, select, canvas, [role=region], [role=img], [role=button]", nameless
    )
