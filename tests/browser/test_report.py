from __future__ import annotations

from pathlib import Path

import pytest
from pages import column

pytestmark = pytest.mark.slow

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
CELL = "2.standard.cora.sbm-gcn.elbo"
ALL = 12


def cells(page):
    """The ids of the cells that can be seen."""
    return page.eval_on_selector_all(
        ".cell", "found => found.filter((one) => one.checkVisibility()).map((one) => one.dataset.cell)"
    )


def toggle(page, name, value):
    return page.locator(f'.toggle[data-filter="{name}"][data-value="{value}"]')


def scatter_points(page):
    return page.evaluate("document.getElementById('scatter').data.slice(1).flatMap((trace) => trace.customdata)")


def test_opens_from_a_file(visit):
    page = visit()
    assert page.title() == "Tables <b>small</b>: published and measured"
    assert page.locator("h1").inner_text() == "Tables <b>small</b>"
    assert len(cells(page)) == ALL
    assert page.locator("#shown").inner_text() == f"{ALL} of {ALL} cells"
    assert page.locator('[data-cell="2.standard.pubmed.gcn.released"] .mean').inner_text() == "–"


def test_the_scatter_chart_has_every_measured_cell(visit):
    page = visit()
    assert page.locator("#scatter .main-svg").count() > 0
    assert sorted(scatter_points(page)) == sorted(set(cells(page)) - {"2.standard.pubmed.gcn.released"})


def test_a_point_names_its_cell_and_opens_it(visit):
    page = visit("#dataset=cora&setting=standard&objective=elbo&kind=generative")
    page.locator("#scatter").scroll_into_view_if_needed()
    (point,) = page.locator("#scatter .points path").all()
    box = point.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator("#scatter .hovertext").wait_for()
    assert "SBM-GCN on Cora" in page.locator("#scatter .hovertext").text_content()
    page.mouse.down()
    page.mouse.up()
    page.locator("#drawer").wait_for()
    assert page.url.endswith(f"&cell={CELL}")


def test_nothing_can_be_fetched(visit):
    page = visit()
    assert page.evaluate("fetch('data:text/plain,1').then(() => 'fetched', () => 'refused')") == "refused"
    assert any("Content Security Policy" in complaint for complaint in page.complaints)
    page.complaints.clear()


def test_filters_hide_and_show(visit):
    page = visit()
    toggle(page, "dataset", "cora").click()
    assert len(cells(page)) == ALL / 2
    assert all(".cora." in cell for cell in cells(page))
    assert page.locator("thead th", has_text="Pubmed").locator("visible=true").count() == 0
    assert toggle(page, "dataset", "cora").get_attribute("aria-pressed") == "true"
    assert toggle(page, "dataset", "").get_attribute("aria-pressed") == "false"

    toggle(page, "setting", "missing-edge").click()
    toggle(page, "objective", "elbo").click()
    assert cells(page) == ["3.missing-edge.cora.gcn.released", "3.missing-edge.cora.sbm-gcn.elbo"]
    assert scatter_points(page) == cells(page)
    assert page.locator("#shown").inner_text() == f"2 of {ALL} cells"

    toggle(page, "kind", "generative").click()
    assert cells(page) == ["3.missing-edge.cora.sbm-gcn.elbo"]
    for name in ("dataset", "setting", "objective", "kind"):
        toggle(page, name, "").click()
    assert len(cells(page)) == ALL


def test_every_value_picked_is_no_filter(visit):
    page = visit()
    toggle(page, "dataset", "cora").click()
    toggle(page, "dataset", "pubmed").click()
    assert toggle(page, "dataset", "").get_attribute("aria-pressed") == "true"
    assert "#" not in page.url


def test_the_address_restores_the_view(visit, fresh):
    page = visit()
    toggle(page, "dataset", "cora").click()
    toggle(page, "kind", "generative").click()
    seen = cells(page)
    page.locator(f'[data-cell="{CELL}"]').click()
    again = fresh(page.url[page.url.index("#") :])
    assert again.locator("#drawer-title").inner_text() == "SBM-GCN on Cora"
    again.keyboard.press("Escape")
    assert cells(again) == seen
    assert toggle(again, "kind", "generative").get_attribute("aria-pressed") == "true"
    assert again.complaints == []


def test_an_address_that_means_nothing_is_ignored(visit):
    page = visit("#dataset=nowhere&cell=nothing&other")
    assert len(cells(page)) == ALL
    assert page.locator("#drawer").is_hidden()


def test_back_closes_a_cell(visit):
    page = visit()
    page.evaluate("history.replaceState('before', '')")
    page.locator(f'[data-cell="{CELL}"]').click()
    assert page.url.endswith(f"#cell={CELL}")
    page.go_back()
    page.locator("#drawer").wait_for(state="hidden")
    assert page.evaluate("history.state") == "before"
    assert "#" not in page.url


def test_a_click_opens_the_details_with_charts(visit):
    page = visit()
    page.locator(f'[data-cell="{CELL}"]').click()
    drawer = page.locator("#drawer")
    assert drawer.locator("#drawer-where").inner_text() == "Table 2, standard, generative, elbo"
    for text in ("95 % interval", "Binomial", "t-test", "ECE", "Brier", "log-likelihood", "Chosen point"):
        assert text in drawer.inner_text()
    charts = drawer.locator("[role=img]").evaluate_all("found => found.map((one) => one.getAttribute('aria-label'))")
    for name in ("Test accuracy of every trial", "validation loss", "graph: −E log p(G | X, Y)", "Confusion matrix"):
        assert name in charts
    drawn = drawer.locator("[role=img]").evaluate_all("found => found.map((one) => one.querySelector('.main-svg'))")
    assert all(drawn)
    assert drawer.locator(".heatmaplayer image").count() == 1
    assert drawer.locator(".barlayer .point").count() > 5


def test_the_keyboard_opens_and_closes_the_details(visit):
    page = visit()
    page.locator(f'[data-cell="{CELL}"]').focus()
    page.keyboard.press("Enter")
    assert page.locator("#drawer-title").inner_text() == "SBM-GCN on Cora"
    assert page.evaluate("document.getElementById('drawer').contains(document.activeElement)")
    page.keyboard.press("Escape")
    assert page.locator("#drawer").is_hidden()
    assert page.evaluate("document.activeElement.dataset.cell") == CELL
    assert "#" not in page.url


def test_the_next_and_the_previous_cell(visit):
    page = visit(f"#dataset=cora&cell={CELL}")
    order, steps = cells(page), page.evaluate("history.length")
    page.get_by_role("button", name="Next cell").click()
    assert page.url.endswith(order[order.index(CELL) + 1])
    page.get_by_role("button", name="Previous cell").click()
    assert page.url.endswith(CELL)
    assert page.evaluate("history.length") == steps
    page.get_by_role("button", name="Close").click()
    assert page.url.endswith("#dataset=cora")


def test_a_cell_that_was_not_measured(visit):
    page = visit("#cell=2.standard.pubmed.gcn.released")
    assert "not yet" in page.locator(".facts").inner_text()
    assert "No trial of this cell is stored yet." in page.locator("#drawer").inner_text()


def test_tables_sort_both_ways(visit):
    page = visit(f"#cell={CELL}")
    head = page.locator('[aria-label="Grid"] th', has_text="mean validation loss")
    for direction in ("ascending", "descending"):
        head.get_by_role("button").click()
        losses = [float(text) for text in column(page, "Grid", 3)]
        assert losses == sorted(losses, reverse=direction == "descending")
        assert head.get_attribute("aria-sort") == direction
    assert len(losses) == 6
    assert page.locator('[aria-label="Grid"] tr.chosen td:last-child').all_inner_texts() == ["chosen"]
    page.locator('[aria-label="Trials"] th', has_text="accuracy").get_by_role("button").press("Enter")
    accuracies = column(page, "Trials", 2)
    assert accuracies == sorted(accuracies)


def test_nothing_makes_the_page_scroll_sideways(visit):
    for address in ["", f"#cell={CELL}"]:
        for width in [380, 768]:
            page = visit(address, width=width, height=800)
            assert page.evaluate("document.scrollingElement.scrollWidth") <= width
            assert page.evaluate("document.getElementById('drawer').scrollWidth") <= width


def test_every_text_can_be_read(visit):
    for scheme in ["light", "dark"]:
        page = visit(scheme=scheme)
        found = page.evaluate(CONTRAST, 4.5)
        assert found["texts"] > 100
        assert found["low"] == []
        page.locator(f'[data-cell="{CELL}"]').click()
        assert page.evaluate(CONTRAST, 4.5)["low"] == []


def ground(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def ink(page):
    return page.evaluate("document.getElementById('scatter').layout.font.color")


def test_the_theme_follows_the_system(visit):
    light = [measure(visit(scheme="light")) for measure in (ground, ink)]
    dark = [measure(visit(scheme="dark")) for measure in (ground, ink)]
    assert all(one != other for one, other in zip(light, dark, strict=True))


def test_the_reader_chooses_another_theme(visit, fresh):
    dark = [measure(visit(scheme="dark")) for measure in (ground, ink)]
    page = fresh(color_scheme="light")
    button = page.get_by_role("button", name="Dark")
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert [measure(page) for measure in (ground, ink)] == dark
    page.reload()
    assert [measure(page) for measure in (ground, ink)] == dark
    assert page.complaints == []


def test_paper_is_white(visit):
    light = ink(visit(scheme="light"))
    page = visit(scheme="dark")
    page.emulate_media(media="print")
    assert page.locator(".filters").is_hidden()
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert ink(page) == light
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert ink(page) != light


def test_every_control_has_a_name(visit):
    page = visit(f"#cell={CELL}")
    nameless = "found => found.filter((one) => !(one.ariaLabel || one.textContent).trim()).length"
    assert page.eval_on_selector_all("button, [role=region], [role=img]", nameless) == 0
