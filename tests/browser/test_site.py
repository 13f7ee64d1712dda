"""The documentation builds without a warning, its links lead somewhere, and it can be read and searched offline."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from pages import Tags

ROOT = Path(__file__).parents[2]
LOADED = {
    "script": "src",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
    "link": "href",
}
"""What a browser fetches when it shows a page, by tag and attribute."""

QUICK_JUDGING = f"""
import sys
sys.path.append({str(ROOT / "tests" / "support")!r})
import quick_judging
for limit in [*quick_judging.LABELS, *quick_judging.EDGES, quick_judging.TREES]:
    setattr(*limit)
quick_judging.EFFORTS.update(quick_judging.FEW_MODELS)
"""
"""Tutorials run as written, but labels and edges are judged quickly, and panels are small."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # Five tutorials import the same packages. Where Python keeps no compiled files, that would cost a minute.
    bare = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    kept = {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONDONTWRITEBYTECODE": ""} if bare else {}
    startup = folder / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00-judging.py").write_text(QUICK_JUDGING)
    kept["IPYTHONDIR"] = str(folder / "ipython")
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "docs", str(folder / "docs")]
    ended = subprocess.run(build, cwd=ROOT, env={**os.environ, **kept}, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return folder / "docs"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Tags]:
    return {path: Tags(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def is_outside(address: str) -> bool:
    return re.match(r"[a-z][a-z0-9+.-]*:|//", address, re.I) is not None


def links(tags: Tags) -> Iterator[str]:
    for tag, attributes in tags.tags:
        address = attributes.get("href" if tag == "a" else LOADED.get(tag, "")) or ""
        if address and not is_outside(address):
            yield address


def broken(pages: dict[Path, Tags]) -> list[str]:
    """Links to files or to places in them that do not exist."""
    places = {path: {attributes.get("id") for _, attributes in tags.tags} for path, tags in pages.items()}
    found = []
    for path, tags in pages.items():
        for address in links(tags):
            file, _, place = address.partition("#")
            target = (path.parent / unquote(file.partition("?")[0])).resolve() if file else path
            known = target.exists() and (not place or target not in places or unquote(place) in places[target])
            found += [] if known else [f"{path.name}: {address}"]
    return found


def test_every_link_leads_somewhere(pages):
    assert sum(1 for tags in pages.values() for _ in links(tags)) > 1000
    assert broken(pages) == []


@pytest.mark.parametrize("address", ["absent.html", "other.html#absent", "#absent", "sub/other.html"])
def test_a_link_to_nothing_is_found(address, tmp_path):
    texts = {"page.html": f'<a href="{address}">', "other.html": '<p id="here"><a href="#here"><a href="page.html">'}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert broken({tmp_path / name: Tags(text) for name, text in texts.items()}) == [f"page.html: {address}"]


def test_nothing_is_loaded_from_elsewhere(site, pages):
    asked = [
        f"{path.name}: {attributes[LOADED[tag]]}"
        for path, tags in pages.items()
        for tag, attributes in tags.tags
        if is_outside(attributes.get(LOADED.get(tag, "")) or "") and not attributes[LOADED[tag]].startswith("data:")
    ]
    assert asked == []
    drawn = [path for path in site.rglob("*") if path.suffix in (".css", ".svg")]
    assert drawn
    fetched = re.compile(r"url\(\s*[\"']?(?:https?:)?//|@import\s+[\"'](?:https?:)?//|<image[^>]+href=\"https?:")
    assert [path.name for path in drawn if fetched.search(path.read_text(encoding="utf-8"))] == []


def test_formulas_need_no_script(pages):
    method = next(tags for path, tags in pages.items() if path.name == "method.html")
    assert sum(tag == "math" for tag, _ in method.tags) > 10
    assert not [
        path for path, tags in pages.items() for _, one in tags.tags if "mathjax" in (one.get("src") or "").lower()
    ]


def test_the_search_index_is_a_script(site, pages):
    """A browser lets a page in a folder load scripts, but read no files."""
    scripts = [attributes.get("src", "") for tag, attributes in pages[site / "search.html"].tags if tag == "script"]
    assert any(re.fullmatch(r"searchindex\.js(\?.*)?", source) for source in scripts)
    assert (site / "searchindex.js").read_text(encoding="utf-8").startswith("Search.setIndex(")


@pytest.fixture
def opened(browser: Any, site: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page of the site from its folder; a page that complains or asks for more than the site fails the test."""
    complaints: list[str] = []
    contexts: list[Any] = []

    def note(request: Any) -> None:
        if not request.url.startswith((site.as_uri(), "data:")):
            complaints.append(request.url)

    def load(name: str, width: int = 1280, scheme: str = "light") -> Any:
        contexts.append(browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("request", note)
        page.goto((site / name).as_uri())
        return page

    yield load
    for context in contexts:
        context.close()
    assert complaints == []


def test_a_reader_searches_and_finds(opened):
    page = opened("index.html")
    page.get_by_role("textbox", name="Search").fill("planted partition")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?*")
    found = page.locator("#search-results ul.search li a")
    found.first.wait_for()
    assert any("likelihoods.html" in (one.get_attribute("href") or "") for one in found.all())
    found.first.click()
    assert "planted" in page.inner_text("article").lower()


@pytest.mark.parametrize(
    "name", ["index.html", "method.html", "components/posteriors.html", "tutorials/own-table.html"]
)
def test_a_page_fits_on_a_phone(opened, name):
    page = opened(name, width=390)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390


def test_formulas_and_tables_are_shown(opened):
    page = opened("method.html", scheme="dark")
    box = page.locator("article math").first.bounding_box()
    assert box["width"] > 5
    assert box["height"] > 5
    page = opened("components/likelihoods.html")
    assert "probability of an edge within a class" in page.locator("section#sbm table").inner_text()
