"""Types of edges and kinds of nodes: how they are read, kept with a task, and given to PyTorch Geometric and back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import HeteroData

from g3nn.base.errors import G3NNWarning, InputError, Problems
from g3nn.graph.pyg import as_one
from g3nn.graph.relations import kinds_of_new, read_codes, read_relations
from g3nn.graph.task import NodeTask
from g3nn.model.inputs import Inputs
from g3nn.model.pairs import PairSource

PAIRS = np.array([[0, 1, 2, 0, 1], [3, 3, 4, 1, 0]])
TYPES = ["by", "by", "by", "cites", "cites"]
KINDS = ["film", "film", "film", "person", "person"]


def read(pairs=PAIRS, n=5, directed=False, **how):
    problems = Problems()
    found = read_relations(tuple(pairs) if isinstance(pairs, np.ndarray) else pairs, n, directed, problems, **how)
    problems.raise_if_any()
    return found


def rows(relations):
    return sorted(zip(relations.types.tolist(), *relations.pairs.tolist(), strict=True))


def test_ends_that_are_apart_make_a_direction_and_others_do_not():
    found = read(types=TYPES, kinds=KINDS)
    assert found.directions == (("by", True), ("cites", False))
    assert rows(found) == [(0, 0, 3), (0, 1, 3), (0, 2, 4), (1, 0, 1)]
    assert [arc.name for arc in found.arcs] == ["by", "by (back)", "cites"]
    back = dict(found.arcs)["by (back)"].toarray()
    assert back.nonzero()[0].tolist() == [3, 3, 4]
    assert dict(found.arcs)["cites"].toarray()[[0, 1], [1, 0]].tolist() == [1, 1]


def test_with_directions_both_arcs_stay():
    found = read(types=TYPES, directed=True)
    assert rows(found)[3:] == [(1, 0, 1), (1, 1, 0)]
    assert found.directed.all()


def test_without_types_the_kinds_of_both_ends_are_the_type():
    found = read(kinds=KINDS)
    assert found.names == ("film to film", "film to person")
    assert found.directed.tolist() == [False, True]


def test_a_directed_graph_has_one_type_and_an_undirected_one_none():
    assert read() is None
    assert read(directed=True).names == ("edge",)


def test_repeats_and_weights_count_within_a_type():
    twice = np.concatenate([PAIRS, PAIRS[:, :1]], axis=1)
    assert read(twice, types=[*TYPES, "by"]).weights.tolist() == [2, 1, 1, 1]
    weighed = read(types=TYPES, weights=np.array([1.0, 2.0, 0.0, 3.0, 4.0]))
    assert rows(weighed) == [(0, 0, 3), (0, 1, 3), (1, 0, 1)]
    assert weighed.weights.tolist() == [1.0, 2.0, 7.0]


def test_a_mapping_and_a_frame_bring_their_types():
    by_type = {"by": PAIRS[:, :3], ("film", "cites", "film"): PAIRS[:, 3:].T.tolist()}
    frame = pd.DataFrame({"source": PAIRS[0], "target": PAIRS[1], "relation": TYPES})
    for given in (by_type, frame):
        found = read(given)
        assert found.names == ("by", "cites")
        assert rows(found) == rows(read(types=TYPES))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"types": TYPES[:4]}, r"edge_types: got shape \(4,\); expected \(5,\): one for each edge"),
        ({"types": ["by", None, "by", "by", None]}, "2 edges without one, the first at place 1"),
        ({"types": [0.5, 1, 1, 1, 1]}, "numbers such as 0.5; expected names or whole numbers"),
        ({"types": TYPES, "kinds": KINDS[:3]}, r"node_kinds: got shape \(3,\)"),
    ],
)
def test_what_cannot_be_a_type_or_a_kind_is_refused(how, message):
    with pytest.raises(InputError, match=message):
        read(**how)


def test_ids_are_no_types():
    problems = Problems()
    assert read_codes("edge_types", np.arange(10_000), 10_000, "edge", problems) is None
    assert "at most 1000" in str(problems.found[0])


def test_numbers_are_in_the_order_of_numbers():
    found = read_codes("edge_types", np.array([10, 9, 10, 2]), 4, "edge", Problems())
    assert found.names == ("2", "9", "10")
    assert found.codes.tolist() == [2, 1, 2, 0]


def test_edges_between_other_kinds_than_usual_are_noted():
    many = np.stack([np.arange(200) % 100, 100 + np.arange(200) % 50])
    pairs = np.concatenate([many, [[3], [4]]], axis=1)
    kinds = ["film"] * 100 + ["person"] * 50
    with pytest.warns(G3NNWarning, match="1 edge of type 'by' between other kinds of nodes .* film and film"):
        read(pairs, 150, types=["by"] * 201, kinds=kinds)


def test_other_edges_have_the_types_of_the_fit():
    like = read(types=TYPES, kinds=KINDS)
    joined = np.array([[5, 6], [3, 0]])
    kinds = kinds_of_new(joined, np.array([0, 1]), like, 7, usual=1, directed=False)
    assert kinds.codes.tolist() == [*like.kinds, 0, 0]
    kinds = ["film", "film"]
    new = read(joined, 7, types=["by", "cites"], kinds=[*KINDS, *kinds], like=like)
    every = like.enlarged(new)
    assert rows(every) == sorted([*rows(like), (0, 5, 3), (1, 0, 6)])
    with pytest.raises(InputError, match="'seen with'; expected those of the fit: by, cites"):
        read(joined, 7, types=["by", "seen with"], kinds=[*KINDS, *kinds], like=like)
    with pytest.raises(InputError, match="'studio'; expected those of the fit: film, person"):
        read(joined, 7, types=["by", "cites"], kinds=[*KINDS, "film", "studio"], like=like)


def test_parts_of_a_graph_keep_their_types():
    found = read(types=TYPES, kinds=KINDS)
    part = found.within(np.array([1, 2, 3]))
    assert rows(part) == [(0, 0, 2)]
    assert part.kinds.tolist() == [0, 0, 1]
    assert rows(found.among(np.array([[3, 0], [0, 1]]))) == [(0, 0, 3), (1, 0, 1)]
    assert found.between(np.array([[3, 0, 4], [0, 1, 0]])) == ["by", "cites", ""]


def test_a_task_without_some_edges_is_without_them_in_every_type():
    relations = read(types=TYPES, kinds=KINDS)
    task = NodeTask.build(np.eye(5), PAIRS, [0, 1, 0, -1, -1], [0, 1], [2], relations=relations)
    fewer = task.with_edges(task.edges[0] != 0)
    assert rows(fewer.relations) == [(0, 1, 3), (0, 2, 4)]
    by, cites = (source.inputs.task for source in PairSource(Inputs.of(task)).by_type)
    assert by.directed
    assert by.edges.T.tolist() == [[0, 3], [1, 3], [2, 4]]
    assert not cites.directed
    assert cites.edges.T.tolist() == [[0, 1]]


def hetero():
    data = HeteroData()
    data["film"].x, data["film"].y = torch.tensor([[1.0, 2.0], [0.0, 3.0], [4.0, 0.0]]), torch.tensor([0, 1, 0])
    data["person"].x = torch.tensor([[5.0], [6.0]])
    data["film"].train_mask = torch.tensor([True, True, False])
    data["film"].val_mask = torch.tensor([False, False, True])
    data["film", "by", "person"].edge_index = torch.from_numpy(PAIRS[:, :3] - [[0], [3]])
    data["person", "rev_by", "film"].edge_index = data["film", "by", "person"].edge_index.flip(0)
    data["film", "cites", "film"].edge_index = torch.from_numpy(PAIRS[:, 3:])
    return data


def test_kinds_of_pyg_are_one_graph():
    task = NodeTask.from_pyg(hetero())
    assert task.relations.names == ("by", "cites")
    assert task.relations.kind_names == ("film", "person")
    assert rows(task.relations) == rows(read(types=TYPES, kinds=KINDS))
    assert task.features.toarray().tolist() == [[1, 2, 0], [0, 3, 0], [4, 0, 0], [0, 0, 5], [0, 0, 6]]
    assert task.labels.tolist() == [0, 1, 0, -1, -1]
    assert (task.train.tolist(), task.val.tolist()) == ([0, 1], [2])


def test_a_task_goes_to_pyg_and_back():
    task = NodeTask.from_pyg(hetero())
    there = task.to_pyg()
    assert set(there.edge_types) == {("film", "by", "person"), ("film", "cites", "film")}
    back = NodeTask.from_pyg(there)
    assert rows(back.relations) == rows(task.relations)
    assert back.labels.tolist() == task.labels.tolist()


def test_pyg_without_any_label_says_so():
    data = hetero()
    del data["film"].y
    with pytest.raises(InputError, match="no kind of nodes with y"):
        NodeTask.from_pyg(data)


@pytest.mark.parametrize("types", [TYPES, [5, 5, 5, 7, 7]])
@pytest.mark.parametrize("kinds", [KINDS, None])
def test_new_nodes_join_whichever_way_an_edge_is_stated(types, kinds):
    like = read(types=types, kinds=kinds)
    for joined in ([[5, 6], [3, 0]], [[3, 0], [5, 6]]):
        new = read(np.array(joined), 7, types=[types[0], types[-1]], like=like, usual=1)
        assert rows(new) == [(0, 5, 3), (1, 0, 6)]
        assert new.kinds[5:].tolist() == [0, 0]


def test_a_new_node_is_of_the_kind_that_others_are_at_such_an_edge():
    """Between two new nodes, the ends of a type say of which kind they are."""
    like = read(kinds=KINDS)
    for joined, kind in (([[5], [3]], 0), ([[3], [5]], 0), ([[4], [5]], 0)):
        new = read(np.array(joined), 6, like=like, usual=1)
        assert new.kinds[5] == kind
        assert rows(new) == [(1, 5, 3 + (4 in joined[0]))]
    both = read(np.array([[5], [6]]), 7, types=["by"], like=read(types=TYPES, kinds=KINDS), usual=0)
    assert both.kinds[5:].tolist() == [0, 1]
    arcs = read(PAIRS[:, :3], types=TYPES[:3], kinds=KINDS, directed=True)
    with pytest.warns(G3NNWarning, match="person and person"):
        new = read(np.array([[3], [5]]), 6, directed=True, types=["by"], like=arcs, usual=0)
    assert rows(new) == [(0, 3, 5)], "a direction is kept"


def test_edges_without_types_are_of_the_only_one():
    like = read(PAIRS[:, :3], types=TYPES[:3])
    assert rows(read(np.array([[5], [3]]), 6, like=like, usual=0)) == [(0, 5, 3)]
    with pytest.raises(InputError, match="edges: got no types; expected edges with their types: by, cites"):
        read(np.array([[5], [3]]), 6, like=read(types=TYPES), usual=0)
    with pytest.raises(InputError, match="edges: got edges from person to person; expected edges as in the fit"):
        read(np.array([[3], [4]]), like=read(kinds=KINDS), kinds=KINDS)
    with pytest.raises(InputError, match=r"'newfilms'; .* call that film.csv, or give \{'film': ...\}"):
        read(np.array([[5], [3]]), 6, kinds=[*KINDS, "newfilms"], like=read(kinds=KINDS))


def test_declared_types_stay_without_edges():
    found = read({"sold": [], "by": PAIRS[:, :3]})
    assert found.names == ("by", "sold")
    assert rows(found) == [(0, 0, 3), (0, 1, 3), (0, 2, 4)]
    new = read({"sold": np.array([[0], [5]])}, 6, like=found, usual=0)
    assert rows(new) == [(1, 0, 5)]


def test_without_edges_nothing_is_related():
    empty = np.zeros((2, 0), dtype=np.int64)
    assert read(empty, types=[]) is read({"a": empty}) is read(empty, kinds=KINDS) is None


def test_types_with_the_same_middle_are_apart():
    names = [("film", "by", "person"), ("show", "by", "person"), ("film", "cites", "film")]
    found = read({name: PAIRS[:, [place]] for place, name in enumerate(names)})
    assert found.names == ("cites", "film by person", "show by person")


def test_arcs_are_taken_out_one_by_one():
    relations = read(types=TYPES, directed=True)
    task = NodeTask.build(np.eye(5), PAIRS, [0, 1, 0, -1, -1], [0, 1], [2], directed=True, relations=relations)
    fewer = task.with_edges((task.edges != [[0], [1]]).any(axis=0))
    assert (1, 0, 1) not in rows(fewer.relations)
    assert (1, 1, 0) in rows(fewer.relations)


def test_added_edges_have_the_only_type_that_joins_such_kinds():
    found = read(types=TYPES, kinds=KINDS, weights=np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    more = found.joined(np.array([[4, 2], [1, 0]]), False)
    assert rows(more) == [(0, 0, 3), (0, 1, 3), (0, 1, 4), (0, 2, 4), (1, 0, 1), (1, 0, 2)]
    assert more.weights[2] == found.weights.mean()
    with pytest.warns(G3NNWarning, match="edges: 1 added edge of no certain type; not used"):
        assert rows(found.joined(np.array([[3], [4]]), False)) == rows(found)


def test_weights_of_types_go_to_pyg_and_back():
    data = hetero()
    data["film", "by", "person"].edge_weight = torch.tensor([1.0, 2.0, 3.0])
    task = NodeTask.from_pyg(data)
    assert rows(task.relations) == rows(read(types=TYPES, kinds=KINDS))
    assert task.relations.weights.tolist() == [1, 2, 3, 2]
    back = NodeTask.from_pyg(task.to_pyg())
    assert back.relations.weights.tolist() == [1, 2, 3, 2]
    assert back.weights.tolist() == task.weights.tolist()


def test_labels_of_several_kinds_keep_what_they_are():
    data = hetero()
    data["film"].y = torch.tensor([True, False, True])
    assert as_one(data).y.tolist() == [True, False, True, None, None]
    assert NodeTask.from_pyg(data).labels.tolist() == [1, 0, 1, -1, -1]
    data["film"].y, data["person"].y = torch.tensor([0, 1, 2]), torch.tensor([0.5, 1.5])
    assert as_one(data).y.tolist() == [0, 1, 2, 0.5, 1.5]


def test_what_lacks_in_pyg_is_said_at_once():
    data = hetero()
    data["person"].y = torch.zeros(2, 3)
    del data["person"].x
    del data["film", "cites", "film"].edge_index
    data["film", "cites", "film"].time = torch.zeros(3)
    data["film"].y = torch.zeros(4)
    with pytest.raises(InputError) as error:
        NodeTask.from_pyg(data)
    found = [str(problem).split(";")[0] for problem in error.value.problems]
    assert found == [
        "data['film'].y: got shape (4,)",
        "data['person']: got neither x nor num_nodes",
        "data.y: got labels of 2 shapes",
        "data[('film', 'cites', 'film')]: got no edge_index",
    ]
