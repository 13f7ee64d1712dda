"""The page of estimators of numbers and tags, read as a browser would read it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import g3nn
from g3nn.errors import InputError
from g3nn.report import write_model_report

WILD = "</script><b>bold</b> & 茶"


def fitted(outcome, **changes):
    columns = 3 if outcome == "bernoulli" else 1
    task = g3nn.synthetic_values(outcome, nodes=120, columns=columns, degree=6, features=4, labelled=0.3, val=35)
    y = np.full(task.labels.shape, np.nan)
    for part in (task.train, task.val):
        y[part] = task.labels[part]
    common = {"model": "gcn", "epochs": 5, "ensemble": 2, "device": "cpu", **changes}
    if outcome == "bernoulli":
        return g3nn.G3NNClassifier(**common).fit(task.features, y, task.edges, val=task.val), task
    return g3nn.G3NNRegressor(**common, outcome=outcome).fit(task.features, y[:, 0], task.edges, val=task.val), task


def read(path):
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return text, json.loads(found.group(1))


@pytest.mark.parametrize("outcome", ["gaussian", "poisson"])
def test_a_page_of_numbers(tmp_path, outcome):
    estimator, task = fitted(outcome)
    ids = [WILD, *range(1, 120)]
    test = estimator.evaluate(task.test, task.labels[task.test, 0])
    write_model_report(estimator, tmp_path / "page.html", ids=ids, title=WILD, audit=estimator.audit(5), test=test)
    text, data = read(tmp_path / "page.html")
    assert "<b>bold" not in text
    assert f"{test['rmse']:.4g}" in text
    tables = data["tables"]
    assert set(tables) == {
        "columns-table", "panel-table", "uncertain-table", "suspicious-table", "missing-table",
    }  # fmt: skip
    assert all(len(row) == len(table["columns"]) for table in tables.values() for row in table["rows"])
    assert len(tables["suspicious-table"]["rows"]) == task.num_edges
    widest = tables["uncertain-table"]["rows"]
    assert widest[0][2] == pytest.approx(estimator.predict_std().max(), rel=1e-3)
    residuals = data["charts"]["residuals"]
    np.testing.assert_allclose(residuals["answers"], estimator.predict()[task.val], rtol=1e-3)
    np.testing.assert_allclose(
        residuals["residuals"], task.labels[task.val, 0] - estimator.predict()[task.val], rtol=1e-3, atol=1e-3
    )
    claimed, found = np.array(data["charts"]["coverage"]).T
    assert (np.diff(found) >= 0).all()
    assert claimed[-1] == 0.95
    assert data["curves"]["terms"]


def test_a_page_of_tags(tmp_path):
    estimator, task = fitted("bernoulli")
    write_model_report(estimator, tmp_path / "page.html")
    _, data = read(tmp_path / "page.html")
    rows = data["tables"]["columns-table"]["rows"]
    assert [row[0] for row in rows] == ["0", "1", "2"]
    given, has = estimator.predict()[task.val], task.labels[task.val]
    for t, row in enumerate(rows):
        hits = (given[:, t] * has[:, t]).sum()
        assert row[1] == pytest.approx(task.labels[task.train, t].mean(), rel=1e-3)
        assert row[5] == pytest.approx(hits / has[:, t].sum(), rel=1e-3)
    assert sum(one[2] for one in data["charts"]["reliability"]) == has.size
    assert "suspicious-table" not in data["tables"]


def test_what_was_learned_is_not_judged(tmp_path):
    estimator, _ = fitted("gaussian", refit=True)
    write_model_report(estimator, tmp_path / "page.html")
    text, data = read(tmp_path / "page.html")
    assert data["charts"] == {}
    assert "cannot judge it" in text


def test_names_that_do_not_fit_are_refused(tmp_path):
    estimator, _ = fitted("gaussian")
    with pytest.raises(InputError, match="one for each of the 120 nodes"):
        write_model_report(estimator, tmp_path / "page.html", ids=[1, 2])
