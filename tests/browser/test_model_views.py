"""What the pages of numbers and tags show that a page of classes does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from number_graph import known_numbers
from pages import assert_fits, column, loader, nameless_controls, shown, visitor

import g3nn
from g3nn.pages import write_model_report

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("labels_judged_quickly", "edges_judged_quickly")]

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
NODES, HUB = 80, "n0"
TAGS = ["art", "<b>law</b>", "tea", *(f"a tag with a rather long name, number {k}" for k in range(9))]
KINDS = [("real", 1), ("counts", 2), ("tags", len(TAGS))]
IDS = [f"n{node}" for node in range(NODES)]
CHARTS = {
    "real": ["Residuals of the validation nodes", "Interval coverage", "validation R²"],
    "counts": ["Residuals of the validation nodes", "Interval coverage", "validation share of deviance explained"],
    "tags": ["Reliability diagram", "validation share of tags right"],
}


def fitted(outcome, columns):
    """Eighty nodes: the first has edges to half of the others, the last one is isolated."""
    size = {"nodes": NODES, "degree": 4, "features": 4, "labelled": 0.4, "val": 36, "seed": 1}
    task = g3nn.synthetic_values(outcome, columns=columns, **size)
    hub = np.stack([np.zeros(40, dtype=np.int64), np.arange(1, 41)])
    edges = np.unique(np.concatenate([task.edges[:, (task.edges < NODES - 1).all(axis=0)], hub], axis=1), axis=1)
    y = known_numbers(task)
    common = {"model": "gcn", "epochs": 20, "ensemble": 2, "device": "cpu"}
    if outcome == "tags":
        labels = pa.table(dict(zip(TAGS, y.T, strict=True)))
        return g3nn.G3NNClassifier(**common).fit(task.features, labels, edges, val=task.val)
    y = y[:, 0] if columns == 1 else y
    return g3nn.G3NNRegressor(**common, outcome=outcome).fit(task.features, y, edges, val=task.val)


@pytest.fixture(scope="module", params=KINDS, ids=[kind for kind, _ in KINDS])
def estimator(request):
    return fitted(*request.param)


@pytest.fixture(scope="module")
def loaded(browser, estimator, tmp_path_factory):
    path = tmp_path_factory.mktemp("views") / "report.html"
    write_model_report(estimator, path, nodes=pa.table({"id": IDS}), audit=estimator.audit(5))
    load = loader(browser, path.as_uri())
    yield next(load)()
    next(load, None)


@pytest.fixture
def visit(loaded):
    yield from visitor(loaded, lambda node: f"#node={node}")


def doubt(estimator):
    if estimator.task_.outcome == "tags":
        return estimator.predict_entropy()
    return estimator.predict_std().reshape(NODES, -1)[:, 0]


def test_every_chart_is_drawn_and_every_control_has_a_name(visit, estimator):
    page = visit()
    charts = page.locator("main [role=img].chart")
    assert all(charts.evaluate_all("found => found.map((one) => one.querySelector('.main-svg') !== null)"))
    names = charts.evaluate_all("found => found.map((one) => one.getAttribute('aria-label'))")
    assert set(CHARTS[estimator.task_.outcome]) <= set(names)
    assert page.locator("main b:not(.warning b)").count() == 0
    assert nameless_controls(page) == 0


def test_uncertain_nodes_are_listed_searched_and_opened(visit, estimator):
    page = visit()
    order = [IDS[node] for node in np.argsort(-doubt(estimator), kind="stable")]
    assert column(page, "Uncertain nodes", 1) == order[:10]
    page.get_by_role("searchbox", name="Search: Uncertain nodes").fill("n42")
    page.locator('[aria-label="Uncertain nodes"] [data-node]').click()
    assert shown(page) == "n42"


def test_a_node_says_what_is_believed_about_it(visit, estimator):
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
    ends = text.partition("90 % interval")[2].split("Residual")[0].replace("−", "-").split(" to ")
    assert [float(end) for end in ends] == pytest.approx([low, high], rel=1e-3, abs=1e-3)
    answer = text.partition("Answer")[2].split()[0].replace("−", "-")
    assert float(answer) == pytest.approx(estimator.predict().reshape(NODES, -1)[5, 0], rel=1e-3)


def likely_places(estimator):
    """Where each edge of the task stands in the audit."""
    rows, n = estimator.audit(1).edges, estimator.task_.num_nodes
    order = {code: place for place, code in enumerate((rows["source"] * n + rows["target"]).tolist())}
    return np.array([order[code] for code in (estimator.task_.edges[0] * n + estimator.task_.edges[1]).tolist()])


def test_the_switch_shows_what_is_believed_without_suspicious_edges(visit, estimator):
    page = visit(HUB, width=390, height=800)
    likely = estimator.audit(1).edges["probability"]
    other = estimator.fitted_.without(np.isin(likely_places(estimator), np.flatnonzero(likely < 0.5)))
    mean = other.outcome.moments(other.calibrated())[0][0]
    details, neighbours = page.locator("#node"), len(column(page, "Neighbours", 1))
    before = details.inner_text()
    page.locator("#explorer").get_by_role("switch", name="without suspicious edges").press("Space")
    assert details.inner_text() != before
    if estimator.task_.outcome == "tags":
        values = [float(value) for value in page.locator("#node .bars .value").all_inner_texts()]
        assert values == pytest.approx(sorted(mean, reverse=True)[:8], abs=6e-4)
    else:
        answer = details.inner_text().partition("Answer")[2].split()[0].replace("−", "-").replace(",", "")
        assert float(answer) == pytest.approx(mean[0], rel=1e-3)
    assert page.locator("#map .shown").inner_text().endswith("with another answer")
    assert_fits(page, 390)
    page.locator("#map").get_by_role("switch").press("Space")
    assert (details.inner_text(), len(column(page, "Neighbours", 1))) == (before, neighbours)


def test_nothing_makes_the_page_scroll_sideways(visit):
    assert_fits(visit(HUB, width=360, height=800), 360)


def test_every_text_can_be_read(visit):
    for scheme in ["light", "dark"]:
        contrasts = visit(HUB, scheme=scheme).evaluate(CONTRAST, 4.5)
        assert contrasts["texts"] > 100
        assert contrasts["low"] == []
