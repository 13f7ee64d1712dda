"""The tables of a project: what is shown of a node, labels put into the graph, and tables that have changed."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow.parquet as pq
import pytest
import quick_judging
from label_desk import SHOWN, people
from small_tables import node_columns, write

from g3nn.base.errors import G3NNWarning, InputError, Problems
from g3nn.estimator import G3NNClassifier, load_model
from g3nn.graph.relations import read_relations
from g3nn.labelling.learner import ClassifierLearner
from g3nn.labelling.records import FAR, NEAR, Records, ShownColumns
from g3nn.labelling.tables import Known, check_ids, differences, digest_of, read_unlabelled, with_edges, with_labels


def read(folder, shown=SHOWN, **tables):
    nodes, edges = people(folder, **tables)
    return read_unlabelled(nodes, edges, shown, (), Problems(), id="id")


def test_labels_are_no_features_and_need_not_be_there(tmp_path):
    graph = read(tmp_path, labelled=45)
    assert not [name for name in graph.features.names if "group" in name]
    codes, names = Records(graph, SHOWN, tmp_path).given
    assert (names, (codes >= 0).sum()) == (["art", "law", "tea"], 45)
    empty = read(tmp_path, labelled=0)
    assert Records(empty, SHOWN, tmp_path).given[1] == []
    with pytest.warns(G3NNWarning, match="no column 'grup'.*begins from nothing.*Did you mean 'group'"):
        read(tmp_path, ShownColumns("grup"), labelled=45)


def test_classes_stay_as_they_are_written(tmp_path):
    graph = read(tmp_path, group=["007", "10", "NA", ""] * 15)
    codes, names = Records(graph, SHOWN, tmp_path).given
    assert (names, codes[:4].tolist()) == (["007", "10"], [0, 1, -1, -1])


def test_labels_of_people_make_the_graph_of_a_fit(tmp_path):
    graph = with_labels(read(tmp_path), "group", Known({3: "2", 5: "1", 7: "2"}))
    assert graph.labels.names.tolist() == [1, 2]
    assert with_labels(graph, "group", Known({3: "1.0", 5: "2"}), as_text=True).labels.names.tolist() == ["1.0", "2"]
    assert graph.labels.labelled.tolist() == [3, 5, 7]
    assert graph.nodes.columns.labels == ("group",)
    assert "group" not in graph.nodes.columns.ignore
    assert next(one.kind for one in graph.columns if one.column == "group") == "label (classes)"
    with pytest.raises(InputError, match="at least 2 classes"):
        with_labels(graph, "group", Known({3: "x"}))


def test_edges_that_people_judged(tmp_path):
    graph = read(tmp_path)
    edges = set(zip(*graph.edges.tolist(), strict=True))
    judged = with_edges(graph, Known({}, removed=((3, 0), (50, 2)), added=((0, 2), (0, 1))))
    assert set(zip(*judged.edges.tolist(), strict=True)) == edges - {(0, 3)} | {(0, 2)}
    relations = read_relations(tuple(graph.edges), graph.nodes.num_nodes, False, Problems(), types=["by"] * len(edges))
    typed = with_edges(replace(graph, relations=relations), Known({}, removed=((3, 0),), added=((0, 2),)))
    assert set(zip(*typed.relations.pairs.tolist(), strict=True)) == edges - {(0, 3)} | {(0, 2)}


@pytest.mark.slow
def test_a_learner_learns_explains_and_writes(tmp_path, monkeypatch):
    quick = partial(G3NNClassifier, "gcn", epochs=20, ensemble=1)
    monkeypatch.setattr("g3nn.estimator.G3NNClassifier", quick)
    graph = read(tmp_path)
    learner = ClassifierLearner(graph, "group", device="cpu")
    assert learner.why(3) == type(learner.why(3))()
    truth = node_columns(labelled=60)["group"]
    known = Known({row: truth[row] for row in range(12)}, removed=((0, 3),))
    beliefs = learner.learn(known)
    assert beliefs.classes == ["art", "law", "tea"]
    assert beliefs.probabilities.shape == (60, 3)
    assert sorted(beliefs.order.tolist()) == list(range(12, 60))
    assert beliefs.learned_from == 12
    assert learner.classifier.task_.num_edges == graph.edges.shape[1] - 1
    why = learner.why(20)
    assert {row for row, _ in why.neighbours} <= set(Records(graph, SHOWN, tmp_path).neighbours(20).tolist())
    assert why.features
    assert learner.write(known, tmp_path / "out", "quick")["labels"] == 12
    assert pq.read_table(tmp_path / "out" / "predictions.parquet")["role"].to_pylist().count("unlabelled") == 48
    written = load_model(tmp_path / "out")
    assert written.fitted_.outcome.name == "classes"
    assert written.schema_


@pytest.mark.slow
def test_few_labels_never_make_a_learner_sure(tmp_path):
    """Two labels of two classes, five, an update with a sixth, and ten: by chance, so that nothing can be learned."""
    learner, rng = ClassifierLearner(read(tmp_path, labelled=0), "group", device="cpu"), np.random.default_rng(0)
    rows = rng.permutation(60)[:10].tolist()
    given = dict(zip(rows, ["art", "law", *rng.choice(["art", "law"], 8)], strict=True))
    for count, most in ((2, 0.75), (5, 0.8), (6, 0.8), (10, 0.8)):
        known = Known(dict(list(given.items())[:count]))
        found = learner.learn(known).probabilities
        assert learner._fitted is known or count == 6
        assert found.max() <= most + 1e-6
        assert found.max(1).mean() <= 0.75


@pytest.mark.slow
def test_labels_that_were_made_wrong_are_to_be_looked_at_again(tmp_path, monkeypatch):
    monkeypatch.setattr(*quick_judging.JUDGES)
    monkeypatch.setattr("g3nn.estimator.G3NNClassifier", partial(G3NNClassifier, "gcn", epochs=20, ensemble=1))
    learner = ClassifierLearner(read(tmp_path), "group", device="cpu")
    names, planted = node_columns(labelled=45)["group"], {5, 16, 27, 38}
    beliefs = learner.learn(Known(dict(enumerate(names[:45]))))
    assert len(beliefs.doubted) <= 0.15 * 45
    assert planted >= set(list(beliefs.doubted)[:3])
    for row in planted & set(beliefs.doubted):
        label, instead, wrong = beliefs.doubted[row]
        assert (label, instead) == (names[row], ("art", "law", "tea")[row % 3])
        assert 0 < wrong < 1
    # The order and the probabilities are those of the audit.
    audited = learner.classifier.audit_labels(ids=False)
    audited = dict(zip(audited["node"].tolist(), audited["probability"].tolist(), strict=True))
    assert [audited[row] for row in beliefs.doubted] == [wrong for *_, wrong in beliefs.doubted.values()]
    assert [row for row in audited if row in beliefs.doubted] == list(beliefs.doubted)


@pytest.mark.slow
def test_a_value_that_was_filled_in_is_no_reason(tmp_path, monkeypatch):
    monkeypatch.setattr("g3nn.estimator.G3NNClassifier", partial(G3NNClassifier, "gcn", epochs=20, ensemble=1))
    monkeypatch.setattr("g3nn.labelling.learner.MOST_REASONS", 99)
    columns = node_columns(labelled=0)
    gaps = {"age": [None, *columns["age"][1:]], "city": [None, *columns["city"][1:]]}
    with pytest.warns(G3NNWarning, match="'age': missing numbers; filled in"):
        graph = read(tmp_path, **gaps)
    learner = ClassifierLearner(graph, "group", device="cpu")
    learner.learn(Known(dict(enumerate(node_columns(labelled=60)["group"][:12]))))
    named = [{name.partition(" = ")[0] for name, _ in learner.why(row).features} for row in (0, 3)]
    assert [found & {"age", "city"} for found in named] == [set(), {"age", "city"}]


def test_a_record_holds_what_a_page_shows(tmp_path):
    columns = {"name": ["<b>A</b>", *["B"] * 59], "link": ["javascript:alert(1)", *["https://x.org/?q=<i>"] * 59]}
    shown = ShownColumns("group", text=("notes",), url="link")
    records = Records(read(tmp_path, shown, **columns), shown, tmp_path)
    record = records.record(0)
    assert (record["id"], record["title"]) == ("p0", "<b>A</b>")
    assert record["texts"] == [("notes", "paint colour brush day 0")]
    assert [name for name, _ in record["columns"]] == ["age", "member", "city"]
    assert record["url"]["safe"] is False
    assert records.record(1)["url"]["safe"] is True
    assert (records.row("p7"), records.row("nobody")) == (7, None)
    assert records.rows(["p7", "nobody", "p3"]).tolist() == [7, 3]


def test_a_name_is_shown_and_only_learned_from_as_words(tmp_path):
    names = {"called": [f"paper {row % 5}" for row in range(60)]}
    for words in ((), ("called",)):
        shown = ShownColumns("group", "called", words)
        graph = read(tmp_path, shown, **names)
        assert ("called" in {one.column for one in graph.schema.read}) == bool(words)
        assert Records(graph, shown, tmp_path).record(7)["title"] == "paper 2"


def test_labels_are_never_learned_from_as_words(tmp_path):
    with pytest.raises(InputError, match="group"):
        read(tmp_path, ShownColumns("group", text=("group",)))


def test_pictures_come_from_below_the_table(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("out.png", "in/a.png", "in/a.txt"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "in" / "link.png").symlink_to(tmp_path / "out.png")
    cells = ["a.png", "../out.png", str(tmp_path / "out.png"), "a.txt", "link.png", "none.png", ""]
    shown = ShownColumns("group", image="photo")
    graph = read(tmp_path, shown, photo=cells + [""] * 53)
    records = Records(graph, shown, tmp_path / "in")
    assert [records.picture(row) is not None for row in range(7)] == [True, *[False] * 6]


def test_a_neighbourhood_is_small(tmp_path):
    edges = {"source": ["p0"] * 40 + [f"p{i}" for i in range(1, 41)], "target": [f"p{i}" for i in range(1, 41)] * 2}
    nodes, _ = people(tmp_path)
    path = write(tmp_path / "star.csv", edges)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = read_unlabelled(nodes, path, SHOWN, (), Problems(), id="id")
    records = Records(graph, SHOWN, tmp_path)
    drawn, pairs = records.surroundings(0, first=[40, 39])
    assert drawn[:3] == [0, 39, 40]
    assert len(drawn) <= 1 + NEAR + FAR
    assert len([pair for pair in pairs if 0 in pair]) == NEAR
    assert records.neighbours(50).size == 0
    assert records.surroundings(50) == ([50], [])


def test_what_has_changed_is_said(tmp_path):
    nodes, edges = people(tmp_path)
    before = digest_of(read(tmp_path), nodes, edges)
    assert differences(before, before) == []
    ages = digest_of(read(tmp_path, age=[1.5] * 30 + [2.5] * 30, more=["x", "y"] * 30), nodes, edges)
    assert differences(before, ages) == ["new columns 'more'", "other values in 'age'"]
    check_ids(before, ages, ["p1"], read(tmp_path).nodes.ids)


def test_other_ids_are_refused(tmp_path):
    nodes, edges = people(tmp_path)
    graph = read(tmp_path)
    before = digest_of(graph, nodes, edges)
    write(nodes, node_columns(range(59)))
    other = read_unlabelled(nodes, edges, SHOWN, (), Problems(), id="id")
    with pytest.raises(InputError, match=r"60 rows became 59.*1 answered id no longer there \('p59'\).*`export=...`"):
        check_ids(before, digest_of(other, nodes, edges), ["p1", "p59"], other.nodes.ids)
    assert np.array_equal(graph.edges, other.edges)
