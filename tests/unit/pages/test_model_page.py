from __future__ import annotations

import re
from copy import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pages import Tags, data_of, numbers, own_text
from sklearn.linear_model import LogisticRegression

import g3nn
from g3nn.base.errors import InputError
from g3nn.estimator import G3NNClassifier, load_model
from g3nn.graph.calibrate import wilson_interval
from g3nn.pages import layout, model_graph, model_page, model_views, write_model_report
from g3nn.queries import AuditTables

MEGABYTE = 1_000_000
WILD = "</title><img src=x onerror=alert(1)> & <b>bold</b>"
CLASSES = ("art", WILD, "Tee – 茶")
ROW = np.dtype([("rank", np.int64), ("source", np.int64), ("target", np.int64), ("probability", np.float64)])
NO_ROWS = np.zeros(0, dtype=ROW)


def named(ids):
    return pd.DataFrame({"id": pd.Series(ids, dtype=object)})


def quick(**changes):
    return G3NNClassifier(**{"model": "sbm-gcn", "epochs": 4, "ensemble": 2, "device": "cpu", **changes})


def known_labels(task, classes):
    y = np.full(task.num_nodes, None, dtype=object)
    for part in (task.train, task.val):
        y[part] = np.array(classes, dtype=object)[task.labels[part]]
    return y


@pytest.fixture(scope="module")
def fitted(learnable):
    """Not to be changed."""
    return quick().fit(learnable.features, known_labels(learnable, CLASSES), learnable.edges, val=learnable.val)


@pytest.fixture(scope="module")
def likely(fitted):
    """Made-up probabilities of the edges of the task."""
    return np.random.default_rng(0).random(fitted.task_.num_edges)


@pytest.fixture(scope="module")
def audit(fitted, likely):
    """Every edge of the task, the least likely first, and three pairs without one."""
    edges = np.array([(0, *ends, value) for *ends, value in zip(*fitted.task_.edges, likely, strict=True)], dtype=ROW)
    missing = np.array([(1, 0, 2, 0.9), (2, 1, 3, 0.5), (3, 0, 1, 0.2)], dtype=ROW)
    edges.sort(order="probability")
    edges["rank"] = np.arange(1, len(edges) + 1)
    return AuditTables(edges, missing)


@pytest.fixture
def made(tmp_path):
    """The page of a classifier without the library: that is not ours to check."""

    def make(classifier, **parts):
        path = tmp_path / "report.html"
        write_model_report(classifier, path, **parts)
        return own_text(path)

    return make


def test_a_loaded_model_has_the_same_page(fitted, audit, made, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = made(load_model(tmp_path / "model"), audit=audit)
    assert data_of(loaded)["curves"]
    assert loaded == made(fitted, audit=audit)


def test_the_page_says_how_it_was_calibrated(fitted, made, monkeypatch):
    for temperature, words in [
        (0.5, "0.50 answers were made more certain than trained"),
        (2.0, "2.00 answers were made less certain than trained"),
        (1.02, "1.02 answers are about as certain as trained"),
    ]:
        monkeypatch.setattr(fitted, "temperature_", temperature)
        monkeypatch.setattr(fitted, "class_offsets_", np.array([0.25, -0.5, 0.1]))
        text = Tags(made(fitted)).text
        assert words in text
        assert "−0.50 to 0.25" in text


def test_a_page_without_offsets_says_nothing_of_them(fitted, made, monkeypatch):
    monkeypatch.setattr(fitted, "class_offsets_", None)
    assert "Offsets of classes" not in Tags(made(fitted)).text


def test_the_page_says_what_was_fitted_and_how_well(fitted, audit, made):
    text = Tags(made(fitted, title="Sixty nodes", audit=audit)).text
    scores = fitted.evaluate(fitted.task_.val, fitted.classes_[fitted.task_.labels[fitted.task_.val]])
    for words in (
        "Sixty nodes",
        f"60 nodes joined by {fitted.task_.num_edges} edges. The model learned 3 classes from 12 labels; 15 more",
        f"{scores['accuracy']:.1%}".replace("%", " %"),
        f"Validation loss {scores['nll']:.3f}",
        f"Validation calibration error (ECE) {scores['ece']:.3f}",
        f"{round(15 * scores['accuracy'])} of 15 validation nodes got their true class",
        "There are only 15 validation nodes, so every figure on validation is rough",
        "sbm-gcn one model",
        "2 replicas in all",
        "This model was asked for; no other was tried.",
    ):
        assert words in text
    assert "No other model was tried." in Tags(made(copy(fitted).set_params(model="auto"))).text


def test_corrected_labels_are_not_said_to_be_held_back(fitted, made):
    corrected = copy(fitted)
    corrected.fitted_ = replace(fitted.fitted_, corrected=True, refitted=True)
    text = Tags(made(corrected)).text
    assert "learned 3 classes from 27 labels, corrected where they are probably wrong; models were chosen by" in text
    assert "more labels served" not in text


def members(*given):
    """Networks by their role for isolated nodes, models of scikit-learn by their name; each has a weight there."""
    made = {role: SimpleNamespace(isolated_answer=role) for role in ("prior", "posterior", "both")}
    return [
        SimpleNamespace(name=one, learned=made.get(one, SimpleNamespace()), isolated_weight=weight)
        for one, weight in given
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([("prior", 1.0)], "the label prior p(y | x)"),
        ([("posterior", 1.0)], "a network without edges"),
        ([("both", 1.0)], "the label prior p(y | x) and a network without edges together"),
        ([("posterior", 0.0), ("trees", 1.0)], "trees"),
        (
            [("posterior", 0.4), ("both", 0.3), ("trees", 0.3)],
            "the label prior p(y | x), 2 networks without edges and trees together",
        ),
    ],
)
def test_who_answers_for_isolated_nodes(given, words):
    assert model_page._isolated_answer(members(*given)) == words


@pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning")
def test_where_no_network_answers_the_page_speaks_of_none(learnable, made):
    alone = quick(model="auto", effort="quick", budget=1e-9, prior=LogisticRegression())
    alone.fit(learnable.features, known_labels(learnable, CLASSES), learnable.edges, val=learnable.val)
    answerer = alone.fitted_.answerer
    members = [one for one in answerer.members if one.name == "LogisticRegression"]
    alone.fitted_ = replace(alone.fitted_, answerer=answerer.of(members))
    text = Tags(made(alone)).text
    for words in (
        "LogisticRegression one model",
        "none models of scikit-learn answer",
        "answered by LogisticRegression, temperature",
    ):
        assert words in text
    assert "trained for" not in text


def test_scores_on_test_nodes_come_first(fitted, made):
    test = {"accuracy": 0.75, "nll": 0.7, "ece": 0.021, "brier": 0.3, "nodes": 40}
    text = Tags(made(fitted, test=test)).text
    assert text.index("Test accuracy 75.0 % 30 of 40 test nodes") < text.index("Validation accuracy")
    assert "Test calibration error (ECE) 0.021" in text


def test_every_belief_is_embedded(fitted, audit, made):
    data = data_of(made(fitted, audit=audit))
    graph, n = data["graph"], fitted.task_.num_nodes
    assert data["names"] == fitted.classes_.tolist()
    assert (graph["whole"], graph["explorable"], graph["width"]) == (True, n, 3)
    ranked = numbers(graph["ranked"], np.uint16).reshape(n, 3)
    beliefs = np.zeros((n, 3))
    np.put_along_axis(beliefs, ranked, numbers(graph["beliefs"], np.uint16).reshape(n, 3) / 65535, 1)
    np.testing.assert_allclose(beliefs, fitted.predict_proba(), atol=1e-5)
    entropy = numbers(graph["entropy"], np.uint16) / 65535
    np.testing.assert_allclose(entropy, fitted.predict_entropy() / np.log(3), atol=1e-5)
    assert graph["uncertain"] == np.argsort(-fitted.predict_entropy(), kind="stable").tolist()
    label, use = numbers(graph["label"], np.uint16), numbers(graph["use"], np.uint8)
    np.testing.assert_array_equal(np.flatnonzero(use == 1), fitted.task_.train)
    np.testing.assert_array_equal(np.flatnonzero(use == 2), fitted.task_.val)
    np.testing.assert_array_equal(label[use > 0], fitted.task_.labels[use > 0])
    assert (label[use == 0] == 65535).all()


def test_a_set_is_the_first_classes_of_a_node(fitted, made, monkeypatch):
    sets = np.random.default_rng(1).random((fitted.task_.num_nodes, 3)) < 0.5
    monkeypatch.setattr("g3nn.estimator.fitted.Fitted.conformal", lambda self, alpha: sets)
    graph = data_of(made(fitted))["graph"]
    ranked = numbers(graph["ranked"], np.uint16).reshape(-1, 3)
    for own, order, size in zip(sets, ranked, numbers(graph["sets"], np.uint16), strict=True):
        assert set(order[:size]) == set(np.flatnonzero(own))


def test_edges_are_ranked(fitted, audit, likely, made):
    graph = data_of(made(fitted, audit=audit))["graph"]
    ends = np.stack([numbers(graph[name], np.uint16) for name in ("source", "target")])
    np.testing.assert_array_equal(ends, fitted.task_.edges)
    np.testing.assert_allclose(numbers(graph["probability"], np.float32), likely, rtol=1e-6)
    assert (np.diff(likely[graph["suspicious"]]) >= 0).all()
    assert set(graph["suspicious"]) == set(np.flatnonzero(likely < 0.5))
    assert graph["missing"] == [[0, 2, 0.9], [1, 3, 0.5], [0, 1, 0.2]]
    assert len(graph["quantiles"]) == 101
    assert graph["start"] in graph["uncertain"]


def test_what_is_believed_without_suspicious_edges(fitted, audit, likely, made, learnable):
    """Asked about the same nodes in a graph without those edges, a model of features and edges says the same."""
    page = made(fitted, audit=audit)
    graph, n, kept = data_of(page)["graph"], fitted.task_.num_nodes, likely >= 0.5
    other = {**graph, **graph["without"]}
    beliefs = np.zeros((n, 3))
    ranked, shares = (numbers(other[name], np.uint16).reshape(n, 3) for name in ("ranked", "beliefs"))
    np.put_along_axis(beliefs, ranked, shares / 65535, 1)
    asked = g3nn.Nodes(learnable.features, fitted.task_.edges[:, kept])
    np.testing.assert_allclose(beliefs, fitted.predict_proba(asked), atol=1e-4)
    assert np.abs(beliefs - fitted.predict_proba()).max() > 0.01
    left = np.bincount(fitted.task_.edges[:, kept].ravel(), minlength=n)
    np.testing.assert_array_equal(numbers(other["degree"], np.uint32), left)
    assert "label" not in graph["without"]
    text = Tags(page).text
    assert f"below 0.5: {(~kept).sum()} of {len(kept)}, the least likely first." in text
    assert f"not trained again, believes when all {(~kept).sum()} suspicious edges are left out at once;" in text
    assert "with every edge counted in full" in text


@pytest.mark.parametrize(("probability", "suspects"), [(0.5, "none"), (0.499, "all")])
def test_no_edge_is_suspicious_or_all_are(fitted, audit, made, probability, suspects):
    rows = audit.edges.copy()
    rows["probability"] = probability
    page = made(fitted, audit=AuditTables(rows, NO_ROWS))
    graph = data_of(page)["graph"]
    if suspects == "none":
        assert (graph["suspicious"], graph["without"]) == ([], None)
        assert "The switch" not in page
        return
    assert (graph["suspects"], len(graph["suspicious"])) == (len(rows), len(rows))
    assert not numbers(graph["without"]["degree"], np.uint32).any()


def test_lines_between_bubbles_say_how_many_edges_are_suspicious(fitted, audit, likely, made, monkeypatch):
    monkeypatch.setattr(layout, "MOST_FREE", 10)
    links = data_of(made(fitted, audit=audit))["graph"]["map"]["links"]
    group = layout.laid_out(fitted.task_.edges, 60, np.zeros(60)).group
    ends, found = np.sort(group[fitted.task_.edges], axis=0), 0
    for one, other, edges, suspicious in links:
        between = (ends[0] == min(one, other)) & (ends[1] == max(one, other))
        assert (edges, suspicious) == (between.sum(), (between & (likely < 0.5)).sum())
        found += suspicious
    assert found > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning")
def test_a_fit_that_doubts_edges_says_so(learnable, audit, made):
    y = known_labels(learnable, CLASSES)
    doubting = quick(model="gcn", denoise=True).fit(learnable.features, y, learnable.edges, val=learnable.val)
    assert (
        "by the fit, which already counts edges by how far it believes them" in Tags(made(doubting, audit=audit)).text
    )


def test_what_the_validation_nodes_say(fitted, made):
    data = data_of(made(fitted))
    counts = np.array(data["confusion"]["counts"])
    labels = fitted.task_.labels[fitted.task_.val]
    np.testing.assert_array_equal(counts.sum(1), np.bincount(labels))
    accuracy = fitted.evaluate(fitted.task_.val, fitted.classes_[labels])["accuracy"]
    assert counts.trace() / len(labels) == accuracy
    assert sum(nodes for _, _, nodes, _, _ in data["degrees"]) == 15
    assert sum(nodes for _, _, nodes, *_ in data["reliability"]) == 15
    for *_, nodes, found, _, low, high in data["reliability"]:
        np.testing.assert_allclose([low, high], wilson_interval(found, nodes), atol=1e-5)
    assert data["curves"]["epochs"] == [1, 2, 3, 4]
    assert {"val_loss", "val_accuracy", "graph"} <= set(data["curves"]["terms"])
    assert [row[1] for row in data["panel"]["rows"]] == ["sbm-gcn"]
    rows = data["table"]["rows"]
    assert np.array([row[1:4] for row in rows]).sum(0).tolist() == [12, 15, 60]
    recalls = [row[5] for row in rows]
    np.testing.assert_allclose(recalls, counts.diagonal() / counts.sum(1), rtol=1e-4)


def test_a_model_that_has_learned_the_validation_nodes_is_not_judged_by_them(learnable, made):
    y = known_labels(learnable, CLASSES)
    page = made(quick(refit=True).fit(learnable.features, y, learnable.edges, val=learnable.val))
    assert "so they cannot judge it" in page
    text = Tags(page).text
    assert "calibration error" not in text
    assert "of 15 validation nodes got their true class. 95 % interval" in text
    data = data_of(page)
    assert data["curves"]["epochs"]
    assert not {"confusion", "reliability", "degrees"} & set(data)
    assert {row[5] for row in data["table"]["rows"]} == {None}


def test_models_that_diverged_have_no_loss(fitted, made, monkeypatch):
    lost = replace(fitted.panel_[0], model="gcn", val_loss=float("inf"), chosen=False)
    monkeypatch.setattr(fitted, "panel_", [lost, *fitted.panel_])
    best, last = data_of(made(fitted))["panel"]["rows"]
    assert (best[:2], best[-1]) == ([1, "sbm-gcn"], 1)
    assert last[:7] == [2, "gcn", "given", "elbo", "", None, None]


def test_names_are_text(fitted, audit, made):
    ids = [f"</script><script>alert({i})</script>" for i in range(60)]
    page = made(fitted, nodes=named(ids), title=WILD, audit=audit)
    tags = Tags(page)
    assert WILD in tags.text
    assert "img" not in {tag for tag, _ in tags.tags}
    assert data_of(page)["graph"]["ids"] == ids
    assert "<script>alert" not in page
    plain = Tags(made(fitted, audit=audit))
    assert [tag for tag, _ in tags.tags] == [tag for tag, _ in plain.tags]


def test_nothing_is_loaded_from_elsewhere(fitted, audit, made):
    page = made(fitted, audit=audit)
    for tag, attributes in Tags(page).tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base"), tag
        assert "src" not in attributes, tag
        assert "action" not in attributes, tag
        assert attributes.get("href", "#").startswith("#"), attributes
    assert not re.search(r"https?://|url\(|@import|\bimport\(|\bfetch\(|XMLHttpRequest|WebSocket|innerHTML", page)
    assert "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'" in page


def test_any_id_can_be_written(fitted, made):
    odd = ["漢字", "é", "\u202eright to left", "a\ud800b", "", "💡", " two  spaces "]
    ids = [*odd, *map(str, range(60 - len(odd)))]
    assert data_of(made(fitted, nodes=named(ids)))["graph"]["ids"] == [id.replace("\ud800", "?") for id in ids]


def test_without_ids_nodes_are_numbered(fitted, made):
    assert data_of(made(fitted))["graph"]["ids"] == list(map(str, range(60)))


def test_the_foot_says_where_the_page_comes_from(fitted, made):
    text = Tags(made(fitted, command="g3nn fit --label '<b>x</b>'")).text
    assert f"Made by g3nn {g3nn.__version__} from a fitted model; seed 0." in text
    assert "Command: g3nn fit --label '<b>x</b>'" in text
    assert "Command" not in Tags(made(fitted)).text


def test_the_least_certain_nodes_come_with_reasons(fitted, made, monkeypatch):
    monkeypatch.setattr(model_graph, "MOST_EXPLAINED", 3)
    graph = data_of(made(fitted))["graph"]
    asked = graph["uncertain"][:3]
    assert set(graph["why"]) == {str(node) for node in asked}
    for node, (neighbours, features) in zip(asked, fitted.explain(asked), strict=True):
        why = graph["why"][str(node)]
        assert [one for one, _ in why["neighbours"]] == [one.node for one in neighbours[: model_graph.MOST_REASONS]]
        assert [pull for _, pull in why["neighbours"]] == pytest.approx(
            [one.change for one in neighbours[:8]], rel=1e-3
        )
        assert [name for name, _ in why["features"]] == [f"feature {name}" for name, _ in features[:8]]
    monkeypatch.setattr(model_graph, "MOST_WORK", 0)
    assert list(data_of(made(fitted))["graph"]["why"]) == [str(asked[0])]
    monkeypatch.setattr(model_graph, "MOST_FOR_ONE", 0)
    assert data_of(made(fitted))["graph"]["why"] == {}


@pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning")
def test_how_columns_were_read(learnable, fitted, made):
    """Of a model that was fitted on a data frame: ids and label are known without being given."""
    frame = pd.DataFrame(learnable.features[:, :2], columns=["x0", "x1"])
    frame["who"], frame["name"] = [f"m{i}" for i in range(60)], [f"{WILD} {i}" for i in range(60)]
    frame["kind"] = known_labels(learnable, CLASSES)
    edges = pd.DataFrame(learnable.edges.T, columns=["from", "to"]).map("m{}".format)
    classifier = quick(model="gcn").fit(frame, "kind", edges, id="who")
    page = made(classifier, nodes=frame)
    data = data_of(page)
    rows = {row[0]: row[1:] for row in data["schema"]["rows"]}
    assert (rows["x0"][0], rows["who"][0], rows["kind"][1]) == ("numeric", "id", 33)
    assert (data["graph"]["title"], data["graph"]["ids"][:2]) == ("name", ["m0", "m1"])
    assert set(data["graph"]["columns"]) == {"x0", "x1", "name", "kind"}
    assert "; label kind; seed 0." in Tags(page).text
    assert data_of(made(fitted))["schema"] is None


def test_without_an_audit_nothing_is_said_of_edges(fitted, made):
    page = made(fitted)
    graph = data_of(page)["graph"]
    assert "The edges were not audited" in page
    assert (graph["probability"], graph["suspicious"], graph["missing"], graph["quantiles"]) == (None, [], [], [])
    assert len(numbers(graph["source"], np.uint16)) == fitted.task_.num_edges


@pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning")
def test_four_nodes_without_edges(made):
    classifier = quick(model="gcn").fit(np.eye(4), [False, False, True, True], None)
    page = made(classifier, audit=AuditTables(NO_ROWS, NO_ROWS))
    text = Tags(page).text
    assert "4 nodes joined by 0 edges. The model learned 2 classes from 2 labels; 2 more labels served" in text
    assert "every set holds all classes" in text
    data = data_of(page)
    assert data["names"] == ["False", "True"]
    assert (data["graph"]["source"], data["graph"]["probability"]) == ("", "")
    assert "The graph has no edges." in Tags(made(classifier)).text


def test_a_class_that_no_validation_node_has(learnable, made):
    y, val = known_labels(learnable, CLASSES), learnable.val[learnable.labels[learnable.val] != 2]
    page = made(quick(model="gcn").fit(learnable.features, y, learnable.edges, val=val))
    assert "No validation node has the class Tee – 茶" in Tags(page).text


@pytest.mark.slow
def test_three_hundred_classes(made, monkeypatch):
    monkeypatch.setattr(layout, "_STEPS", 3)  # Where the nodes are drawn does not matter here.
    rng = np.random.default_rng(0)
    y = np.arange(900) % 300
    edges = rng.integers(900, size=(2, 1500))
    edges = np.unique(np.sort(edges[:, edges[0] != edges[1]], axis=0), axis=1)
    classifier = quick(model="gcn", epochs=2, ensemble=1).fit(rng.standard_normal((900, 20)), y, edges)
    page = made(classifier)
    data = data_of(page)
    assert (len(data["names"]), data["graph"]["width"]) == (300, model_views.MOST_BELIEFS)
    assert len(data["table"]["rows"]) == 300
    confusion = data["confusion"]
    assert len(confusion["counts"]) == len(confusion["names"]) == model_views.MOST_CONFUSED
    assert (confusion["names"][-1], confusion["cut"]) == ("all others", True)
    assert sum(map(sum, confusion["counts"])) == 300
    assert len(page.encode()) < MEGABYTE


@pytest.fixture
def small_page(monkeypatch):
    """As if a page could hold little."""
    for name, value in {
        "MOST_NODES": 40,
        "MOST_EDGES": 50,
        "MOST_NEIGHBOURS": 3,
        "LISTED_NODES": 6,
        "LISTED_EDGES": 4,
    }.items():
        monkeypatch.setattr(model_graph, name, value)


def test_of_a_large_graph_the_surroundings_of_listed_nodes_are_kept(fitted, audit, likely, made, small_page):
    page = made(fitted, audit=audit)
    graph, edges = data_of(page)["graph"], fitted.task_.edges
    assert "too large to be embedded whole" in page
    assert "The 6 most uncertain of 60 nodes" in Tags(page).text
    nodes = [int(id) for id in graph["ids"]]
    assert len(nodes) == len(set(nodes)) <= 40
    assert 0 < graph["explorable"] < 60
    ends = np.stack([np.array(nodes)[numbers(graph[name], np.uint16)] for name in ("source", "target")])
    kept = set(zip(*ends.tolist(), strict=True))
    assert len(kept) <= 50
    for node in nodes[: graph["explorable"]]:
        own = np.flatnonzero((edges == node).any(axis=0))
        least = own[np.argsort(likely[own], kind="stable")][:3]
        assert set(zip(*edges[:, least].tolist(), strict=True)) <= kept
    listed = likely.argsort()[:4]
    assert [tuple(ends[:, place]) for place in graph["suspicious"]] == [tuple(edges[:, place]) for place in listed]
    assert graph["start"] < graph["explorable"]
    assert {nodes[one] for one, _, _ in graph["missing"]} == {0, 1}


def test_a_large_graph_without_an_audit(fitted, made, small_page):
    graph = data_of(made(fitted))["graph"]
    assert graph["explorable"] == 6
    assert set(graph["uncertain"]) == set(range(6))
    assert len(numbers(graph["source"], np.uint16)) > 0


def test_the_same_classifier_gives_the_same_page(fitted, audit, made):
    assert made(fitted, audit=audit) == made(fitted, audit=audit)


def test_parts_that_do_not_fit_are_all_named(fitted, audit, tmp_path):
    fewer, other = audit.edges[1:], audit.edges.copy()
    other["target"][0] = (other["target"][0] + 1) % 60
    for edges in (fewer, other):
        with pytest.raises(InputError) as raised:
            write_model_report(
                fitted, tmp_path / "report.html", nodes=named(["a", "b"]), audit=AuditTables(edges, NO_ROWS)
            )
        assert [problem.argument for problem in raised.value.problems] == ["nodes", "audit"]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(fitted, tmp_path):
    with pytest.raises(InputError, match="a folder that exists"):
        write_model_report(fitted, tmp_path / "nowhere" / "report.html")
