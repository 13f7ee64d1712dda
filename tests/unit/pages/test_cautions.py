"""What a page says of columns that mean something else, simple models, unequal classes and wrong labels, and that it
says nothing where there is nothing to say."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pages import Tags, data_of, own_text

import g3nn
from g3nn.estimator import PanelEntry, load_model
from g3nn.pages import write_model_report
from g3nn.queries.wrong_labels import JudgedLabels

pytestmark = pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning")

N = 90
RNG = np.random.default_rng(0)
GROUP = np.arange(N) % 3
WILD = "<b>badge</b> & more"
EDGES = np.stack([np.arange(N), (np.arange(N) + 3) % N])


@pytest.fixture(scope="module")
def frame():
    """Three quarters of the nodes have a label, which one column gives away; another holds ids, and a third codes."""
    return pd.DataFrame(
        {
            "age": RNG.normal(size=N),
            "member_id": RNG.integers(10**6, 10**9, N),
            "office_code": RNG.choice([10, 20, 70], N),
            WILD: np.array(["A7", "B2", "C9"])[GROUP],
            "group": np.where(np.arange(N) < 68, np.array(["art", "law", "tea"])[GROUP], None),
        }
    )


def fitted(X, y, **changes):
    how = {"hidden": 2, "epochs": 3, "ensemble": 1, "device": "cpu", **changes}
    kind = g3nn.G3NNRegressor if np.asarray(X[y] if isinstance(y, str) else y).dtype == float else g3nn.G3NNClassifier
    return kind("gcn", **how).fit(X, y, EDGES)


@pytest.fixture(scope="module")
def plain():
    """Not to be changed. Nothing about it is odd."""
    return fitted(RNG.normal(size=(N, 3)), np.where(np.arange(N) < 68, GROUP, -1))


@pytest.fixture
def page_of(tmp_path):
    def page(estimator):
        write_model_report(estimator, tmp_path / "page.html")
        return own_text(tmp_path / "page.html")

    return page


def ids_of(page):
    return {attributes.get("id") for _, attributes in Tags(page).tags}


def test_a_page_about_which_there_is_nothing_to_say(plain, page_of):
    page = page_of(plain)
    assert not {"columns", "simple", "labels"} & ids_of(page)
    assert (data_of(page)["traps"], data_of(page)["simple"]) == (None, None)
    for words in ("Careful. The column", "Classes are unequal", "Wrong labels", "simple model"):
        assert words not in Tags(page).text


def test_columns_to_look_at(frame, page_of, tmp_path):
    estimator = fitted(frame, "group")
    page = page_of(estimator)
    text, found = Tags(page).text, data_of(page)["traps"]
    assert "columns" in ids_of(page)
    assert "The column <b>badge</b> & more alone decides the label." in text
    assert "<b>badge" not in page
    rows = {row[0]: row[1:] for row in found["rows"]}
    assert list(rows) == ["member_id", "office_code", "<b>badge</b> & more"]
    assert [row[0] for row in rows.values()] == [
        "whole numbers that differ like ids",
        "a few whole numbers, like codes",
        "decides the label alone",
    ]
    assert rows["<b>badge</b> & more"][2] == 1
    assert all(0.3 < row[3] < 0.4 for row in rows.values())
    assert list(found["columns"])[3:] == ["right alone", "most frequent label"]
    estimator.save(tmp_path / "model")
    assert page_of(load_model(tmp_path / "model")) == page
    without = page_of(fitted(frame.drop(columns=[WILD, "member_id", "office_code"]), "group"))
    assert "columns" not in ids_of(without)
    assert "decides the label" not in without


def test_a_column_that_decides_a_number(frame, page_of):
    amounts = RNG.random(N)
    X = pd.DataFrame({"age": frame["age"], "twice": 2 * amounts})
    page = page_of(fitted(X.assign(amount=np.where(np.arange(N) < 80, amounts, np.nan)), "amount"))
    assert "The column twice alone decides the label." in Tags(page).text
    (row,) = data_of(page)["traps"]["rows"]
    assert list(data_of(page)["traps"]["columns"])[3:] == ["variance explained alone"]
    assert row[3] > 0.9


def entry(model, loss, score, **changes):
    return PanelEntry(model, "", changes, loss, score, 0, simple=model != "gcn")


@pytest.mark.parametrize(("score", "better"), [(0.8, True), (0.7, False)])
def test_simple_models_stand_beside_the_answers(plain, page_of, score, better):
    tried = (
        entry("base-rate", 1.1, 0.34),
        entry("linear", 0.7, 0.7),
        entry("linear", 0.9, 0.75, penalty=9),
        entry("trees-neighbours", np.inf, 0.0),
        entry("LogisticRegression", 0.8, 0.5),
        entry("gcn", 0.6, 0.9),
    )
    changed = copy(plain)
    changed.fitted_, changed.panel_ = replace(plain.fitted_, panel=tried, val_score=score, val_loss=0.65), list(tried)
    page = page_of(changed)
    assert "simple" in ids_of(page)
    rows = data_of(page)["simple"]["rows"]
    names = ["linear", "LogisticRegression", "base-rate"]
    names.insert(0 if better else 1, "the answers of this page")
    assert [row[0] for row in rows] == names
    assert {row[0]: row[2:4] for row in rows}["linear"] == [0.75, 0.9]
    assert [row[-1] == "chosen" for row in rows].index(True) == names.index("the answers of this page")
    text = Tags(page).text
    assert "The best simple model, linear, has a validation accuracy of 0.750; the answers here" in text
    assert ("is chosen by its loss" in text) is not better


def test_unequal_classes(page_of):
    y = np.where(np.arange(N) % 9 == 0, "yes", "no").astype(object)
    text = Tags(page_of(fitted(RNG.normal(size=(N, 3)), y))).text
    assert "88.9 % of the labels are no, so always answering no would have an accuracy of 88.9 %." in text


def judged(plain, wrong):
    """Every label is as probably wrong as `wrong` says."""
    nodes = np.union1d(plain.task_.train, plain.task_.val)
    seen, zeros = plain.task_.labels[nodes], np.zeros(len(nodes), dtype=np.int64)
    unseen = np.log(np.full((len(nodes), 3), 1 / 3))
    return JudgedLabels(nodes, zeros, zeros, unseen, seen, (seen + 1) % 3, wrong, wrong, np.eye(3))


@pytest.mark.parametrize(
    ("many", "corrected", "words"),
    [
        (10, False, "About 12 of the 68 given labels are probably wrong; each was judged by models that"),
        (0, False, "about 3 of 68 each was judged by models that had not seen it, and none is more probably wrong"),
        (10, True, "The final models were trained on what all labels probably are, and validation losses"),
    ],
)
def test_wrong_labels(plain, page_of, many, corrected, words):
    wrong = np.full(68, 0.05)
    wrong[:many] = 0.95
    changed = copy(plain)
    changed.fitted_ = replace(plain.fitted_, labels=judged(plain, wrong), corrected=corrected, refitted=corrected)
    page = page_of(changed)
    assert words in Tags(page).text
    assert ("labels" in ids_of(page)) is bool(many)
    assert len(data_of(page)["labels"]["rows"]) == many
