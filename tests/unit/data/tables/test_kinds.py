from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from small_tables import matrix, read_graph, said, text_file, write

from g3nn.base.errors import G3NNWarning, InputError
from g3nn.graph.tables.edge_table import EdgeColumns
from g3nn.graph.tables.fitted_tables import FittedTables, NewNodes, read_new_nodes
from g3nn.graph.tables.graph import TableGraph, read_tables
from g3nn.graph.tables.kinds import FILE
from g3nn.graph.tables.remarks import Remarks

PAPERS = [f"p{i}" for i in range(6)]
NODES = {
    "id": [*PAPERS, "a0", "a1"],
    "y": [*"uvuvuv", None, None],
    "kind": ["paper"] * 6 + ["author"] * 2,
    "pages": [3, 5, 8, 4, 9, 1, None, None],
    "field": ["x", "z", "x", "z", "x", "z", None, None],
    "age": [None] * 6 + [40.5, 60.5],
}
EDGES = {
    "source": ["p0", "p1", "p2", "p3", "p0", "p1", "p0"],
    "target": ["a0", "a0", "a1", "a1", "p1", "p4", "a0"],
    "type": ["by", "by", "by", "by", "cites", "cites", "edited by"],
}


def read(nodes: Any = None, edges: Any = None, **options: Any) -> TableGraph:
    given = ({**NODES, **(nodes or {})}, {**EDGES, **(edges or {})})
    return read_graph(
        *(pa.table({name: cells for name, cells in one.items() if cells is not None}) for one in given),
        id="id",
        **options,
    )


def problems(*given: Any, **options: Any) -> list[str]:
    with pytest.raises(InputError) as error:
        read(*given, **options)
    return [str(problem) for problem in error.value.problems]


def stated(graph: TableGraph) -> set[tuple[str, str, str]]:
    """The edges by ids, with their types."""
    found, ids = graph.relations, graph.nodes.ids.to_pylist()
    return {(ids[i], found.names[type], ids[j]) for i, j, type in zip(*found.pairs, found.types, strict=True)}


ALL = set(zip(EDGES["source"], EDGES["type"], EDGES["target"], strict=True))


class TestColumns:
    def test_types_and_kinds(self):
        graph = read()
        relations = graph.relations
        assert stated(graph) == ALL
        assert relations.names == ("by", "cites", "edited by")
        assert relations.directed.tolist() == [True, False, True]
        assert [relations.kind_names[code] for code in relations.kinds] == NODES["kind"]
        assert graph.never.tolist() == [6, 7]
        # The union is what it is without types.
        plain = read(edge_type="none", kind="none")
        assert plain.relations is None
        np.testing.assert_array_equal(graph.edges, plain.edges)
        np.testing.assert_array_equal(graph.weights, plain.weights)

    def test_what_is_said(self):
        notes = said(read())
        assert ": a column 'kind'; its 2 texts are the kinds of the nodes. kind=\"none\" reads no kinds." in notes
        assert ": a column 'type'; its 3 texts are the types of the edges. edge_type=\"none\" reads no types." in notes
        assert "column 'kind': no label for nodes with 'author'; their answers are marked as never-labelled" in notes
        assert not [note for note in notes if "missing" in note]
        named = said(read(kind="kind", edge_type="type"))
        assert not [note for note in named if note.startswith(": a column")]

    @pytest.mark.parametrize("name", ["Type", "edge_type", "RELATION", "predicate"])
    def test_names_of_types(self, name):
        assert stated(read(edges={"type": None, name: EDGES["type"]})) == ALL

    @pytest.mark.parametrize("name", ["Kind", "node_type", "Node_Kind", "type"])
    def test_names_of_kinds(self, name):
        assert read(nodes={"kind": None, name: NODES["kind"]}).nodes.columns.kind == name

    @pytest.mark.parametrize("cells", [["by"] * 7, list(range(7)), [1.5] * 7])
    def test_what_is_no_type(self, cells):
        graph = read(edges={"type": cells}, kind="none")
        assert (graph.relations, graph.edge_columns.type) == (None, None)
        assert any("'type' left out" in note or "'type' summed up" in note for note in graph.notes)

    def test_many_texts_are_no_type_unless_it_is_named(self):
        ends = {"source": ["p0", "p1"] * 75, "target": ["a0", "a1"] * 75, "type": [f"t{i}" for i in range(150)]}
        assert read(edges=ends, kind="none").relations is None
        assert len(read(edges=ends, edge_type="type", kind="none").relations.names) == 150
        ends = {name: cells * 10 for name, cells in ends.items()} | {"type": [f"t{i}" for i in range(1500)]}
        (problem,) = problems(None, ends, edge_type="type")
        assert problem.startswith("edges (data frame), column 'type': got 1,500 different ones ('t0', 't1', ")

    def test_numbers_may_be_types_if_named(self):
        assert read(edges={"type": [2, 2, 2, 2, 10, 10, 3]}, edge_type="type").relations.names == ("10", "2", "3")

    def test_only_kinds(self):
        graph = read(edges={"type": None})
        assert graph.relations.names == ("author to paper", "paper to paper")

    def test_a_kind_that_tells_labels_apart_stays_a_feature(self):
        kinds = ["long", "short"] * 3 + ["author"] * 2
        assert "kind = long" in read(nodes={"kind": kinds}).features.names
        assert not any(name.startswith("kind") for name in read().features.names)

    def test_a_column_with_a_role_is_no_kind(self):
        for options in ({"ignore": ["kind"]}, {"categorical": ["kind"]}):
            assert read(**options).nodes.kinds is None

    def test_edges_of_weight_0_and_of_unknown_ids_are_left_out(self):
        weights = [1.0, 0, 2, 1, 1, 1, 1]
        ends = {"target": ["a0", "a0", "a1", "zz", "p1", "p4", "a0"], "weight": weights}
        graph = read(edges=ends, drop_unknown_edges=True)
        assert stated(graph) == ALL - {("p1", "by", "a0"), ("p3", "by", "a1")}
        assert sorted(graph.relations.weights.tolist()) == [1, 1, 1, 1, 2]

    def test_repeats_count_once_if_asked(self):
        twice = {name: cells + cells[4:5] for name, cells in EDGES.items()}
        assert read(edges=twice).relations.weights.max() == 2
        assert read(edges=twice, weight="none").relations.weights is None


class TestProblems:
    def test_gaps(self):
        kinds, types = ["paper", None, *NODES["kind"][2:]], [None, "", *EDGES["type"][2:]]
        one, other = problems({"kind": kinds}, {"type": types})
        assert one == (
            "nodes (data frame), column 'kind': got 1 gap among 8 nodes (row 2); expected the kind of each node. "
            'Fill them, say with a kind called unknown; or kind="none" reads no kinds.'
        )
        assert other.startswith("edges (data frame), column 'type': got 2 gaps among 7 edges (row 1, 2); expected")

    def test_columns_that_are_not_there(self):
        one, other = problems(kind="knid", edge_type="typ")
        assert "kind column: got no 'knid' among" in one
        assert "edge_type column: got no 'typ' among" in other

    def test_target_kind(self):
        assert read(target_kind="paper").never.tolist() == [6, 7]
        (unknown,) = problems(target_kind="papre")
        assert unknown == "target_kind: got 'papre'; expected author or paper. Did you mean 'paper'?"
        (labelled,) = problems(target_kind="author")
        assert labelled.startswith("target_kind: got 'author' and 6 labels of other kinds ('paper'); expected labels")
        (none,) = problems(target_kind="paper", kind="none")
        assert none.startswith("target_kind: got 'paper'; expected nothing, where nodes have no kinds")


class TestColumnsOfOneKind:
    def test_they_are_no_gaps(self):
        graph = read()
        x, names = matrix(graph.features), list(graph.features.names)
        assert not np.isnan(x).any()
        assert x[6:, names.index("pages")].tolist() == [5, 5]
        assert x[:6, names.index("age")].tolist() == [50.5] * 6
        assert x[6:, [names.index("field = x"), names.index("field = z")]].tolist() == [[0, 0], [0, 0]]
        assert {one.column: one.missing for one in graph.columns}["pages"] == 0

    def test_other_gaps_stay(self):
        graph = read(nodes={"pages": [3, None, 8, 4, 9, 1, None, None]})
        pages = matrix(graph.features)[:, list(graph.features.names).index("pages")]
        assert np.flatnonzero(np.isnan(pages)).tolist() == [1]
        assert any("'pages': missing numbers" in note for note in graph.notes)

    def test_what_is_constant_where_it_exists_says_nothing(self):
        graph = read(nodes={"pages": [3] * 6 + [None] * 2})
        assert "pages" not in graph.features.names


class TestSeveralFiles:
    def files(self, folder: Path) -> tuple[list[Path], list[Path]]:
        papers = {name: NODES[name][:6] for name in ("id", "y", "pages")}
        authors = {name: NODES[name][6:] for name in ("id", "age")}
        wrote = {"work": PAPERS[:4], "who": ["a0", "a0", "a1", "a1"]}
        cites = {"from": ["p0", "p1"], "to": ["p1", "p4"], "weight": [2.0, 3.0]}
        nodes = [write(folder / "paper.csv", papers), write(folder / "author.parquet", authors)]
        return nodes, [write(folder / "by.csv", wrote), write(folder / "cites.parquet", cites)]

    def test_a_file_is_a_kind_or_a_type(self, tmp_path):
        graph = read_graph(*self.files(tmp_path), id="id")
        assert stated(graph) == {edge for edge in ALL if edge[1] != "edited by"}
        assert graph.relations.kind_names == ("author", "paper")
        assert graph.never.tolist() == [6, 7]
        assert graph.nodes.ids.to_pylist() == NODES["id"]
        assert sorted(graph.weights.tolist()) == [1, 1, 1, 1, 2, 3]
        assert (graph.nodes.columns.kind, graph.edge_columns.type) == (FILE, FILE)
        assert not np.isnan(matrix(graph.features)).any()

    def test_columns_of_the_tables_go_first(self, tmp_path):
        own = text_file(tmp_path, "id,kind\ne0,person\ne1,robot\n", "editors.csv")
        other = text_file(tmp_path, "id,kind\nq0,person\n", "others.csv")
        graph = read_graph({"one": own, "two": other}, None, id="id", label=())
        assert graph.nodes.kinds.tolist() == ["person", "robot", "person"]

    def test_ids_in_two_files(self, tmp_path):
        one, two = (text_file(tmp_path, "id,y\na,u\n", name) for name in ("one.csv", "two.csv"))
        with pytest.raises(InputError, match=r"1 id in more than one row \('a'\)"):
            read_graph([one, two], None, id="id")

    def test_one_file_in_a_list_is_one_file(self, tmp_path):
        nodes, _ = self.files(tmp_path)
        graph = read_graph(nodes[:1], None, id="id")
        assert (graph.nodes.kinds, graph.nodes.name) == (None, str(nodes[0]))

    def test_an_empty_mapping(self):
        for given in ({"nodes": {}}, {"nodes": pa.table({"x": [1, 2]}), "edges": {}}):
            with pytest.raises(InputError, match=f"{[*given][-1]}: got an empty list or mapping; expected a table"):
                read_tables(**given)

    def test_data_frames_need_names(self):
        frame = pa.table({"id": ["a"], "y": ["u"]})
        with pytest.raises(InputError, match="data frames without names; expected a table, files, or a mapping"):
            read_graph([frame, frame], None, id="id")


FILMS = {
    "id": [f"f{i}" for i in range(6)],
    "y": [*"uvuvuv"],
    "year": [2001, 2005, 2003, 2009, 2004, 2002],
    "director": ["A|B", "A", " B ", "C", None, "A | A"],
    "studio": ["s", "t", "s", "t", "s", "t"],
}
LINKS = {"source": ["f0", "f1"], "target": ["f2", "f3"]}


class TestEdgesFrom:
    def test_names_become_nodes(self):
        graph = read_graph(pa.table(FILMS), pa.table(LINKS), id="id", edges_from=["director", "studio"])
        made = ["director: A", "director: B", "director: C", "studio: s", "studio: t"]
        assert graph.nodes.ids.to_pylist() == [*FILMS["id"], *made]
        found = stated(graph)
        directed = {("f0", "A"), ("f0", "B"), ("f1", "A"), ("f2", "B"), ("f3", "C"), ("f5", "A")}
        assert {(i, j) for i, type, j in found if type == "director"} == {(i, f"director: {j}") for i, j in directed}
        assert {(i, j) for i, type, j in found if type == "edge"} == {("f0", "f2"), ("f1", "f3")}
        assert graph.relations.kind_names == ("director", "row", "studio")
        assert graph.edges.shape == (2, 6 + 6 + 2)
        assert graph.never.tolist() == [6, 7, 8, 9, 10]
        assert graph.features.names == ("year",)
        assert matrix(graph.features)[6:, 0].tolist() == [2004] * 5
        assert graph.nodes.content.num_rows == 6

    def test_no_other_edges_and_ids_that_are_numbers(self, tmp_path):
        file = write(tmp_path / "film.csv", {**FILMS, "id": [str(i) for i in range(6)]})
        graph = read_graph(file, None, id="id", edges_from=["studio"], ignore=["director"])
        assert graph.edges.shape == (2, 6)
        assert graph.relations.kind_names == ("film", "studio")
        tables = FittedTables.from_json(FittedTables.of(graph).to_json())
        assert tables.row_ids.to_pylist() == list(range(6))
        assert tables.node_ids.to_pylist()[5:7] == ["5", "studio: s"]

    def test_the_label_cannot_be_used(self):
        with pytest.raises(InputError, match="edges_from column: got 'y', which is also the label column"):
            read_graph(pa.table(FILMS), None, id="id", edges_from=["y"])
        with pytest.raises(InputError, match="edges_from column: got no 'x' among"):
            read_graph(pa.table(FILMS), None, id="id", edges_from=["x"])


def later(tables: FittedTables, nodes: Any, edges: Any = None) -> tuple[NewNodes, list[str]]:
    remarks = Remarks()
    tables = FittedTables.from_json(json.loads(json.dumps(tables.to_json())))
    asked = read_new_nodes(tables, nodes, edges, remarks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        remarks.tell()
    remarks.raise_if_any()
    assert asked is not None
    return asked, remarks.notes


class TestLaterTables:
    NEW = pa.table(
        {"id": ["p9", "a9"], "kind": ["paper", "author"], "pages": [7, None], "field": ["x", None], "age": [None, 20.5]}
    )

    def test_types_and_kinds_are_read(self):
        links = pa.table(
            {"source": ["p9", "p9", "p9"], "target": ["a9", "a9", "p0"], "type": ["by", "edited by", "cites"]}
        )
        asked, notes = later(FittedTables.of(read()), self.NEW, links)
        assert (asked.kinds.tolist(), asked.types.tolist()) == (["paper", "author"], ["by", "edited by", "cites"])
        assert asked.edges.tolist() == [[8, 8, 8], [9, 9, 0]]
        assert asked.weights is None or len(asked.weights) == 3
        x, names = matrix(asked.features), list(asked.features.names)
        assert x[1, names.index("pages")] == 5
        assert x[0, names.index("age")] == 50.5
        assert notes == []

    def test_they_must_be_there(self):
        with pytest.raises(InputError) as error:
            later(
                FittedTables.of(read()), self.NEW.drop_columns(["kind"]), pa.table({"source": ["p9"], "target": ["p0"]})
            )
        one, other = map(str, error.value.problems)
        assert "kind column: got no 'kind'" in one
        assert "edge_type column: got no 'type'" in other

    def test_models_without_them_read_none(self):
        plain = FittedTables.of(read(kind="none", edge_type="none"))
        content = plain.to_json()
        assert "kind" not in content["node_columns"]
        assert "type" not in content["edge_columns"]
        assert not {"added", "lacking"} & {*content, *content["schema"]}
        assert plain.edge_columns == EdgeColumns("source", "target", "(repeats)")
        asked, _ = later(plain, self.NEW, pa.table({"source": ["p9"], "target": ["p0"], "type": ["other"]}))
        assert (asked.types, asked.kinds) == (None, None)

    def test_by_file(self, tmp_path):
        graph = read_graph(*TestSeveralFiles().files(tmp_path), id="id")
        rows = text_file(tmp_path, "id,pages\np9,7\n", "paper.csv")
        links = text_file(tmp_path, "from,to\np9,p0\n", "cites.csv")
        asked, _ = later(FittedTables.of(graph), rows, links)
        assert (asked.kinds.tolist(), asked.types.tolist()) == (["paper"], ["cites"])

    def test_cells_that_name_nodes(self):
        graph = read_graph(pa.table(FILMS), pa.table(LINKS), id="id", edges_from=["director"])
        new = pa.table({"id": ["f9", "f0"], "year": [2010, 2001], "director": ["B|Z", "C"], "studio": ["s", "t"]})
        asked, notes = later(FittedTables.of(graph), new, pa.table({"source": ["f9"], "target": ["f0"]}))
        place = graph.nodes.ids.to_pylist().index("director: B")
        assert asked.edges.T.tolist() == [[9, 0], [9, place]]
        assert asked.types.tolist() == ["edge", "director"]
        assert any("1 name that the fit has not seen; left out" in note for note in notes)

    def test_cells_that_name_nodes_of_rows_without_ids(self):
        graph = read_graph(pa.table({name: FILMS[name] for name in ("y", "year", "studio")}), None, edges_from="studio")
        asked, _ = later(FittedTables.of(graph), pa.table({"year": [2010], "studio": ["t"]}))
        assert (asked.edges.tolist(), asked.numbers.tolist()) == ([[8], [7]], [8])
