"""Types of edges and kinds of nodes in a browser: filters that agree, colours that can be seen, a legend."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from pages import assert_fits, column, loader, nameless_controls, visitor

from g3nn.base.errors import G3NNWarning
from g3nn.estimator import G3NNClassifier
from g3nn.pages import write_model_report

pytestmark = pytest.mark.slow

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
FILMS, PEOPLE, TYPES = 40, 20, 10
LINES = """() => [...document.querySelectorAll("#drawing .edge")].map((one) => getComputedStyle(one).stroke)"""
SHADES = """(count) => Array.from({ length: count }, (_, type) => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(--type-${type})`;
    const found = [probe, document.querySelector(".stage")].map((one, at) =>
        getComputedStyle(one)[at ? "backgroundColor" : "color"].match(/[\\d.]+/g).slice(0, 3).map(Number));
    probe.remove();
    return found;
})"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The first film has an edge of each of ten types; the first type has most edges, the last ones fewest."""
    rng, types = np.random.default_rng(0), list(range(TYPES))
    pairs = [(0, FILMS + type) for type in types]
    for type in range(TYPES):
        pairs += [(film, FILMS + int(rng.integers(PEOPLE))) for film in range(1, 3 * (TYPES - type))]
        types += [type] * (3 * (TYPES - type) - 1)
    y = np.full(FILMS + PEOPLE, None, dtype=object)
    y[:30] = [("art", "law")[i % 2] for i in range(30)]
    how = {"edge_types": [f"type {type}" for type in types], "node_kinds": ["film"] * FILMS + ["person"] * PEOPLE}
    classifier = G3NNClassifier("sbm-gcn", epochs=3, ensemble=1, device="cpu", label_noise=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        classifier.fit(rng.normal(size=(FILMS + PEOPLE, 3)), y, np.array(pairs).T, **how)
    path = tmp_path_factory.mktemp("types") / "report.html"
    write_model_report(classifier, path)
    return path.as_uri()


@pytest.fixture(scope="module")
def loaded(browser, address):
    loads = loader(browser, address)
    yield next(loads)()
    next(loads, None)


@pytest.fixture
def visit(loaded):
    yield from visitor(loaded, lambda node: f"#node={node}")


def test_the_list_of_nodes_by_kind(visit):
    page = visit()
    assert set(column(page, "Uncertain nodes", 2)) == {"film"}
    page.locator("#uncertain-table select").first.select_option(label="Kind: person")
    assert set(column(page, "Uncertain nodes", 2)) == {"person"}
    page.locator("#uncertain-table select").first.select_option(label="Kind: any")


def test_lines_have_the_colour_of_their_type(visit):
    page = visit("0")
    lines = page.evaluate(LINES)
    assert len(lines) == TYPES
    # Eight colours, and grey for the others.
    assert len(set(lines)) == 9
    legend = page.locator("#legend .lines").inner_text()
    assert "type 0" in legend
    assert "other types" in legend
    assert "type 9" not in legend
    assert "type 9" in page.locator("#drawing .neighbour").last.get_attribute("aria-label")


def test_one_type_alone(visit):
    page = visit("0")
    page.locator("#explorer-bar select").select_option(label="Edge type: type 9")
    assert page.locator("#drawing .neighbour").count() == 1
    assert column(page, "Neighbours", 3) == ["type 9"]
    assert page.locator("#map-bar select").last.input_value() == "9"
    assert "1 of 10 edges are of this type" in page.locator("#legend").inner_text()
    assert "(" not in page.locator("#neighbours-title").inner_text()
    page.locator("#map-bar select").last.select_option(label="Edge type: any")
    assert page.locator("#drawing .neighbour").count() == TYPES


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everyone_can_see_and_reach_it(visit, scheme):
    page = visit("0", scheme=scheme)
    assert page.evaluate(CONTRAST, 4.5)["low"] == []
    assert nameless_controls(page) == 0

    def light(colour):
        share = np.array(colour) / 255
        return float(
            np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]
        )

    for shade, behind in page.evaluate(SHADES, 8):
        low, high = sorted([light(shade), light(behind)])
        assert (high + 0.05) / (low + 0.05) > 3


def test_on_a_phone(visit):
    assert_fits(visit("0", width=380), 380)
