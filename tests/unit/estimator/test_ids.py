"""Nodes by the ids of the caller: in data frames, in an index, in networkx graphs, and in all questions after a fit."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

import g3nn
from g3nn import Nodes
from g3nn.base.errors import G3NNWarning, InputError
from g3nn.estimator import load_model

pd: Any = pytest.importorskip("pandas")

COLUMNS = list("abcdef")


@pytest.fixture(scope="module")
def names(graph):
    """Of the nodes, in an order that is not the alphabet's."""
    return np.array([f"n{number}" for number in np.random.default_rng(0).permutation(len(graph.y))], dtype=object)


@pytest.fixture(scope="module")
def frame(graph, names):
    return pd.DataFrame(graph.X, columns=COLUMNS).assign(who=names)


@pytest.fixture(scope="module")
def links(graph, names):
    return pd.DataFrame(names[graph.edges].T, columns=["source", "target"])


@pytest.fixture(scope="module")
def club(graph, names):
    """The same graph, with its nodes in the order of its edges."""
    return nx.Graph(names[graph.edges].T[::-1].tolist())


@pytest.fixture(scope="module")
def named(frame, links, graph, quick):
    """Not to be changed."""
    return quick().fit(frame, graph.y, links, id="who", val=graph.val)


def test_a_networkx_graph_is_matched_by_ids(frame, club, graph, quick, named):
    expected = named.predict_proba()
    for X, id in ((frame, "who"), (frame.set_index("who"), None), (frame.set_index("who").rename_axis(None), None)):
        found = quick().fit(X, graph.y, club, id=id, val=graph.val)
        np.testing.assert_allclose(found.predict_proba(), expected, atol=1e-6)
        assert found.n_features_in_ == 6
    weighted = nx.Graph(club)
    nx.set_edge_attributes(weighted, {edge: 1.0 + place % 3 for place, edge in enumerate(club.edges)}, "weight")
    found = quick(epochs=1).fit(frame, graph.y, weighted, id="who")
    assert found.task_.weights is not None
    numbers = {name: number for number, name in enumerate(frame["who"])}
    place = {
        pair: weight for pair, weight in zip(map(tuple, found.task_.edges.T.tolist()), found.task_.weights, strict=True)
    }
    (a, b), (c, d) = list(weighted.edges)[:2]
    first, second = (place[tuple(sorted((numbers[i], numbers[j])))] for i, j in ((a, b), (c, d)))
    assert second == pytest.approx(2 * first)


def test_a_networkx_graph_is_not_matched_by_order(frame, club, graph, quick):
    for X in (graph.X, frame[COLUMNS], None):
        with pytest.raises(InputError, match=r"other names .*; expected nodes named 0\.\..*nodelist=NAMES"):
            quick().fit(X, graph.y, club)
    with pytest.raises(InputError, match="edges with ids that no node has"):
        quick().fit(frame.iloc[:100], graph.y[:100], club, id="who")


def test_a_misspelt_id_is_no_name_of_row_numbers(frame, links, graph, quick):
    filtered = frame.set_axis(range(7, 7 + len(frame)))
    with pytest.raises(InputError, match="a column 'whom'"):
        quick().fit(filtered, graph.y, links, id="whom")


def test_a_mask_of_nodes_is_one_however_it_is_given(frame, named):
    mask = np.zeros(named.task_.num_nodes, dtype=bool)
    mask[[4, 5]] = True
    for given in (mask, mask.tolist(), pd.Series(mask)):
        assert named.explain(given) == named.explain(frame["who"].iloc[[4, 5]])


def test_an_index_may_hold_the_ids(frame, links, graph, quick, named):
    for indexed in (frame.set_index("who"), frame.set_index("who").rename_axis(None)):
        found = quick().fit(indexed, graph.y, links, id="who", val=graph.val)
        np.testing.assert_array_equal(found.predict_proba(), named.predict_proba())
        assert found.to_frame()["id"].tolist() == frame["who"].tolist()
    new = indexed.iloc[:2].set_axis(["x", "y"])
    edges = pd.DataFrame({"source": ["x", "y"], "target": indexed.index[[3, 4]]})
    expected = named.predict_proba(new.rename_axis("who").reset_index(), edges)
    np.testing.assert_array_equal(found.predict_proba(new, edges), expected)
    np.testing.assert_array_equal(found.predict_proba(new, nx.Graph(edges.to_numpy().tolist())), expected)


def test_an_index_that_is_the_nodes_of_a_graph_holds_the_ids(graph, quick):
    order = np.random.default_rng(1).permutation(150)
    shuffled = pd.DataFrame(graph.X, columns=COLUMNS).iloc[order]
    found = quick(epochs=1).fit(shuffled, graph.y[order], nx.Graph(graph.edges.T.tolist()))
    pairs = np.sort(order[found.task_.edges], axis=0)
    np.testing.assert_array_equal(pairs[:, np.lexsort(pairs[::-1])], graph.edges)


def test_edges_by_ids_without_ids_say_so(frame, links, graph, quick):
    for X in (frame[COLUMNS], frame.set_index("who")):
        with pytest.raises(InputError, match=r"with ids that no node has .*the same ids; .*id=.* names the column"):
            quick().fit(X, graph.y, links)


def test_what_is_not_used_is_said_once(frame, club, graph, quick):
    arcs = nx.DiGraph(list(club.edges))
    nx.set_node_attributes(arcs, "red", "colour")
    with pytest.warns(G3NNWarning) as caught:
        found = quick(epochs=1).fit(frame, graph.y, arcs, id="who")
    assert [str(one.message) for one in caught] == [
        "edges: some have a direction, which is not used. directed=True uses it.",
        "edges: the attributes of nodes 'colour' are not used. Make them columns of X.",
    ]
    assert len(found.predict()) == 150, "without a note"
    assert quick(epochs=1, directed=True).fit(frame, graph.y, nx.DiGraph(list(club.edges)), id="who").task_.directed


def test_frames_with_edges_of_numbers(frame, graph, quick, fitted):
    found = quick().fit(frame[COLUMNS], graph.y, graph.edges, val=graph.val)
    new, edges = frame[COLUMNS].iloc[:2] + 0.1, np.array([[150, 151, 150], [3, 4, 5]])
    expected = fitted.predict_proba(new.to_numpy(), edges)
    np.testing.assert_allclose(found.predict_proba(new, edges), expected, atol=1e-5)
    two = np.array([[150, 3], [150, 5]])
    with pytest.warns(G3NNWarning, match=r"a 2 x 2 array is read as \((E, 2|2, E)\)"):
        np.testing.assert_array_equal(found.predict_proba(new[:1], two), found.predict_proba(new[:1], two.T))


def test_two_edges_of_a_new_node(graph, fitted):
    pairs = np.array([[150, 3], [150, 5]])
    expected = fitted.predict_proba(graph.X[:1] + 0.1, (pairs[:, 0], pairs[:, 1]))
    said = (
        r"edges: a 2 x 2 array is read as .* \(150, 3\) and \(150, 5\); a (list of tuples lists|tuple of two arrays is)"
    )
    for two in (pairs, pairs.T, pairs.tolist()):
        with pytest.warns(G3NNWarning, match=said):
            np.testing.assert_array_equal(fitted.predict_proba(graph.X[:1] + 0.1, two), expected)
    np.testing.assert_array_equal(fitted.predict_proba(graph.X[:1] + 0.1, [(150, 3), (150, 5)]), expected)


def test_questions_take_and_give_ids(named, fitted, names, links, graph, tmp_path):
    asked, numbers = names[[4, 7]].tolist(), [4, 7]
    for (theirs, pulls), (ours, same) in zip(named.explain(asked), named.explain(numbers, ids=False), strict=True):
        assert [one.node for one in theirs] == [names[one.node] for one in ours]
        assert pulls == same
    assert named.explain(asked[0]) == named.explain(asked)[:1] == named.explain(4), "text is no number"
    assert named.evaluate(asked, graph.truth[numbers]) == named.evaluate(
        np.isin(np.arange(150), numbers), graph.truth[numbers]
    )
    genuine = named.edge_proba(graph.edges)
    np.testing.assert_array_equal(named.edge_proba(links), genuine)
    np.testing.assert_array_equal(named.edge_proba(names[graph.edges[:, :2]]), genuine[:2])
    np.testing.assert_array_equal(named.edge_proba(list(links.head(2).itertuples(index=False, name=None))), genuine[:2])
    with pytest.raises(InputError, match="pairs: got ids 'nobody'"):
        named.edge_proba([("nobody", names[0])])
    named.save(tmp_path / "model")
    for model in (named, load_model(tmp_path / "model")):
        by_id, by_number = model.audit(5), model.audit(5, ids=False)
        for part in ("edges", "missing"):
            theirs, ours = getattr(by_id, part), getattr(by_number, part)
            for end in ("source", "target"):
                assert theirs[end].tolist() == names[ours[end]].tolist()
            np.testing.assert_array_equal(theirs["probability"], ours["probability"])
        assert by_id.labels["node"].tolist() == names[by_number.labels["node"]].tolist()
        assert by_id.to_frame()[0]["source"].iloc[0] == by_id.edges["source"][0]
    assert {one.node for one in named.suggest(3)} <= set(names)
    assert fitted.explain(3) == fitted.explain([3]), "without ids"


def test_ids_that_are_numbers(graph, quick):
    ids = np.arange(150) + 1
    frame = pd.DataFrame(graph.X, columns=COLUMNS).assign(id=ids)
    found = quick(epochs=5).fit(frame, graph.y, pd.DataFrame(graph.edges.T + 1, columns=["source", "target"]), id="id")
    assert found.explain([5]) == found.explain(5)
    pulls = found.explain(4, ids=False)[0]
    assert found.explain(5)[0] == pulls._replace(
        neighbours=[one._replace(node=one.node + 1) for one in pulls.neighbours]
    )
    with pytest.raises(InputError, match="nodes: got ids 0"):
        found.evaluate([0], graph.truth[:1])
    assert found.audit_edges(3).edges["source"].min() >= 1


def test_numbers_are_no_ids_where_ids_look_like_numbers(frame, links, graph, quick):
    mapping = {name: str(place) if place else "x" for place, name in enumerate(frame["who"])}
    found = quick(epochs=1).fit(
        frame.replace({"who": mapping}), graph.y, links.replace(mapping), id="who", val=graph.val, ids=False
    )
    with pytest.raises(InputError, match="nodes: got ids 5"):
        found.explain(5)


def test_validation_nodes_go_by_ids(frame, links, graph, quick, names):
    mask = np.isin(np.arange(150), graph.val)
    tables = g3nn.read_tables(
        frame.assign(y=np.where(graph.y < 0, None, graph.y.astype(str))), links, id="who", label="y"
    )
    by_id = names[graph.val]
    for val in (by_id, by_id.tolist(), pd.Series(by_id), graph.val, mask):
        for given in ((frame, graph.y, links), (Nodes(frame, links), graph.y), (tables,)):
            id = None if given[0] is tables else "who"
            np.testing.assert_array_equal(quick(epochs=1).fit(*given, val=val, id=id).val_nodes_, graph.val)
    with pytest.raises(InputError, match="val: got ids 'nobody'; expected ids of the node table"):
        quick().fit(frame, graph.y, links, id="who", val=["nobody"])


def test_validation_nodes_by_ids_that_are_numbers(frame, graph, quick):
    """Ids come first, unless numbers or a mask are asked for."""
    table, edges = frame.assign(who=np.arange(150) + 7), pd.DataFrame(graph.edges.T + 7, columns=["source", "target"])
    mask = np.isin(np.arange(150), graph.val)
    for val, how in ((graph.val + 7, {}), (mask, {}), (graph.val, {"ids": False})):
        found = quick(epochs=1).fit(table, graph.y, edges, id="who", val=val, **how)
        np.testing.assert_array_equal(found.val_nodes_, graph.val)
    with pytest.raises(InputError, match="val: got ids 0; expected ids of the node table"):
        quick().fit(table, graph.y, edges, id="who", val=[0, 9])


def test_test_nodes_of_tables_are_numbers(frame, links, graph, quick):
    table = frame.assign(who=np.arange(150) + 7, y=np.where(graph.truth == 0, "a", "b"))
    table["split"] = np.where(np.arange(150) < 100, "train", "test")
    edges = pd.DataFrame(graph.edges.T + 7, columns=["source", "target"])
    tables = g3nn.read_tables(table, edges, id="who", label="y")
    found = quick(epochs=5).fit(tables)
    by_id = found.evaluate(tables.test + 7, table["y"][tables.test])
    assert found.evaluate(tables.test, tables.test_labels) == by_id


def test_frames_are_cross_validated(frame, links, graph, quick, named):
    known = np.flatnonzero(graph.y >= 0)
    whole = Nodes(frame.assign(colour="red"), links, id="who")
    with pytest.warns(G3NNWarning, match="'colour'"):
        scores = cross_val_score(quick(epochs=20), whole[known], graph.y[known], cv=3, error_score="raise")
    assert scores.mean() > 0.7
    np.testing.assert_array_equal(named.predict_proba(Nodes(frame, links)[[9, 2]]), named.predict_proba()[[9, 2]])
    plain = Nodes(frame[COLUMNS], pd.DataFrame(graph.edges.T, columns=["source", "target"]))
    found = quick(epochs=20).fit(plain[known], graph.y[known])
    np.testing.assert_array_equal(found.predict_proba(plain[[9, 2]]), found.predict_proba()[[9, 2]])
    fewer = Nodes(plain.X, plain.edges.iloc[::2])
    assert (found.predict_proba(fewer) != found.predict_proba()).any(), "the same nodes in another graph"
