"""Two tables as one graph: features, edges as row numbers, labels and the split; all problems of both at once.

The node table has one row per node. `load_nodes` reads ids, labels, the split and the columns that describe nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import DataError, InputError, Problems, counted, refuse
from g3nn.base.parse import NO_EDGES, Edges
from g3nn.graph.features import FeatureTable
from g3nn.graph.marks import Marks
from g3nn.graph.outcomes import OUTCOMES, Labels
from g3nn.graph.relations import EDGE, Relations, read_relations
from g3nn.graph.tables.cells import NULL_WORDS, PARTS, identifiers, is_text, known, plain, split_parts
from g3nn.graph.tables.edge_features import EdgeFeatures
from g3nn.graph.tables.edge_table import REPEATS, EdgeColumns, EdgeTable, Located, load_edges, locate
from g3nn.graph.tables.encoders import Category, Text
from g3nn.graph.tables.files import Source, no_column
from g3nn.graph.tables.kinds import FILE, KIND, MOST_GUESSED, about_columns, alone, open_nodes, read_names, stem
from g3nn.graph.tables.labels import AUTO, check_split, read_labels
from g3nn.graph.tables.linked import ROW, with_linked
from g3nn.graph.tables.remarks import Remarks, listed
from g3nn.graph.tables.schema import ColumnRead, FeatureSchema
from g3nn.graph.tables.times import by_time
from g3nn.graph.tables.traps import Trap, remark_on_edges, remark_on_traps

SPLIT = "split"


@dataclass(frozen=True)
class NodeColumns:
    """The columns of a node table that are not ordinary features. Several `labels` are tags.

    Every other column describes the nodes, as `FeatureSchema` reads it: `text` columns as words, `categorical` columns
    as categories even if they hold numbers. Without an `id`, the rows are numbered from 0. The `split` column says
    which labelled nodes are for training, validation and test; by default it is a column called split, if it holds
    train, val and test only. The `kind` of each node is by default in a column of few texts with one of the names of
    `KIND`. The cells of `edges_from` name other nodes. nulls: words that say that nothing is known.
    """

    id: str | None = None
    labels: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    split: str | None = None
    outcome: str = AUTO
    nulls: tuple[str, ...] = NULL_WORDS
    kind: str | None = None
    edges_from: tuple[str, ...] = ()

    @property
    def special(self) -> set[str]:
        return {name for name in (self.id, *self.labels, self.split, *self.edges_from) if name is not None}

    @property
    def chosen(self) -> dict[str, str]:
        """The kinds of columns that the caller asked for."""
        return {**dict.fromkeys(self.categorical, Category.kind), **dict.fromkeys(self.text, Text.kind)}


@dataclass(frozen=True, eq=False)
class NodeTable:
    """n nodes.

    ids:      (n,) int64 or text, each id once.
    features: the columns that describe the nodes.
    labels:   what the label columns say; None without one, or if they cannot be read.
    split:    (n,) "train", "val" or "test", from `columns.split`; None without one.
    columns:  what was asked for, with the split column and the outcome that were found.
    typed:    whether the table says that ids are numbers or text.
    content:  all columns of the table.
    kinds:    (n,) names, None if nobody said of which kind nodes are.
    added:    how many of the nodes, the last ones, have no row: columns name them. whole: whether ids of rows are
              whole numbers then.
    """

    name: str
    ids: pa.Array
    features: pa.Table
    columns: NodeColumns
    content: pa.Table
    labels: Labels | None = None
    split: np.ndarray | None = None
    typed: bool = True
    kinds: np.ndarray | None = None
    added: int = 0
    whole: bool = False

    @property
    def num_nodes(self) -> int:
        return len(self.ids)


def load_nodes(table: object, columns: NodeColumns, remarks: Remarks) -> NodeTable | None:
    """Read a node table, or several, one for each kind; None if its ids cannot be read."""
    source = open_nodes(table, columns.kind, remarks)
    kind = KIND.named(columns.kind)
    roles = {"id": (columns.id,), "label": columns.labels, "split": (columns.split,), "kind": (kind,)}
    roles |= {"edges_from": columns.edges_from}
    roles |= {"text": columns.text, "categorical": columns.categorical}
    roles["ignored"] = tuple(name for name in columns.ignore if name in source.names)
    source.check_roles(roles, remarks)
    as_text = {*columns.special, *columns.chosen, *([kind] if kind else [])}
    content = source.read(text=as_text, nulls=columns.nulls)
    if content.num_rows == 0:
        raise DataError(f"{source.name}: has a header but no rows.")
    columns = _with_split(source, content, columns, remarks)
    columns, kinds = _with_kinds(source, content, columns, remarks)
    ids, parts, labels = None, None, None
    if columns.id is None:
        ids = pa.array(np.arange(content.num_rows))
    elif columns.id in source.names:
        with remarks.gathered():
            ids = identifiers(source.place(columns.id), content[columns.id], source.typed)
            values, rows = pc.value_counts(ids).flatten()
            if len(repeated := pc.filter(values, pc.greater(rows, 1))):
                given = f"{counted(len(repeated), 'id')} in more than one row ({listed(repeated)})"
                refuse(source.place(columns.id), given, "each id once", "Keep one row per node.")
    if columns.labels and set(columns.labels) <= set(source.names):
        found = read_labels(source, content, columns.labels, columns.outcome, columns.nulls, remarks)
        columns, labels = replace(columns, outcome=found[0]), found[1]
    if columns.split in source.names:
        with remarks.gathered():
            parts = split_parts(source.place(columns.split), content[columns.split])
    if ids is None:
        return None
    other = {*columns.special, *columns.ignore}
    if kinds is not None and labels is not None and len(set(kinds[labels.labelled])) < 2:
        # All nodes with labels are of one kind, so it says nothing about them.
        other.add(str(columns.kind))
    left = [name for name in content.column_names if name not in other]
    # Without ids or labels, a column that was meant for them would pass for a feature.
    if not {*([columns.id] if columns.id else []), *columns.labels} <= set(source.names):
        left = []
    cells = [plain(content[name], typed=False) for name in left]
    # A table without columns, unlike a selection of none, would have no rows.
    features = pa.table(cells, names=left) if left else content.select([])
    return NodeTable(source.name, ids, features, columns, content, labels, parts, source.typed, kinds)


def _with_kinds(
    source: Source, table: pa.Table, columns: NodeColumns, remarks: Remarks
) -> tuple[NodeColumns, np.ndarray | None]:
    """With the column of kinds that was found, and the kinds."""
    used, kind, found = {*columns.special, *columns.text, *columns.ignore, *columns.categorical}, columns.kind, None
    if kind is None or kind == FILE:
        kind = FILE if FILE in source.names else KIND.likely(source.names, used)
    if kind in source.names:
        with remarks.gathered():
            sure = columns.kind is not None or kind == FILE
            found = read_names(KIND, source, kind, table[kind], sure, remarks, columns.nulls)
    return replace(columns, kind=None if found is None else kind), found


def _with_split(source: Source, table: pa.Table, columns: NodeColumns, remarks: Remarks) -> NodeColumns:
    """A column that is called split and holds a split is the split column, if no role is given to it."""
    used = {*columns.special, *columns.text, *columns.ignore, *columns.categorical}
    if columns.split is not None or SPLIT not in table.column_names or SPLIT in used:
        return columns
    try:
        split_parts("", table[SPLIT])
    except InputError as error:
        cells = plain(table[SPLIT], typed=False)
        if is_text(cells.type) and {str(cell).lower() for cell in cells.to_pylist()} & set(PARTS):
            found, done = error.problems[0].given, "taken to describe the nodes, as no split"
            advice = 'split="split" demands a split, ignore=["split"] leaves it out.'
            remarks.note(source.place(SPLIT), found, ", ".join(PARTS), done, advice)
        return columns
    return columns if table[SPLIT].null_count == table.num_rows else replace(columns, split=SPLIT)


@dataclass(frozen=True, eq=False)
class TableGraph:
    """Everything that a fit needs.

    features: (n, d) as `schema` encodes them; d is 0 if no column describes the nodes.
    edges:    (2, E) row numbers, from `edge_columns`. weights: (E,), or None if all edges count alike.
    labels:   of the nodes, without those of test nodes; None if no column was named.
    val:      labelled nodes for validation, None if a share of them is to be split off.
    test:     labelled nodes to evaluate the answers on.
    notes:    what was unusual about the tables and what was done about it.
    never:    nodes of kinds that never have a label. traps: columns that are seldom meant as they are read.
    relations: the types of the edges and the kinds of the nodes; None: all are alike. edge_features: how columns of the
    edges became features; None: there are none. marks: what these columns say about each row of the edges.
    """

    nodes: NodeTable
    schema: FeatureSchema
    features: FeatureTable
    edges: np.ndarray
    weights: np.ndarray | None
    edge_columns: EdgeColumns
    directed: bool
    labels: Labels | None
    val: np.ndarray | None
    test: np.ndarray
    notes: tuple[str, ...] = ()
    never: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    traps: tuple[Trap, ...] = ()
    relations: Relations | None = None
    edge_features: EdgeFeatures | None = None
    marks: Marks | None = None

    @property
    def outcome(self) -> str:
        return self.nodes.columns.outcome

    @property
    def test_labels(self) -> Labels | None:
        """Of the test nodes, in their order."""
        labels = self.nodes.labels
        return None if labels is None else replace(labels, values=labels.values[self.test])

    @property
    def columns(self) -> tuple[ColumnRead, ...]:
        """How each column of the node table was read, in the order of the table."""
        columns, read = self.nodes.columns, {one.column: one for one in self.schema.read}
        roles = {name: (f"label ({self.outcome})", self._title()) for name in columns.labels}
        if columns.kind is not None and self.nodes.kinds is not None:
            roles[columns.kind] = "kind", f"{counted(len(set(self.nodes.kinds)), 'kind')} of nodes"
        roles |= dict.fromkeys(columns.edges_from, ("edges", "a node for each name, and an edge to it"))
        if columns.split is not None:
            roles[columns.split] = "split", "which labels train, validate and test"
        rows = []
        for name in self.nodes.content.column_names:
            kind, became = roles.get(name, ("ignored", "not used"))
            cells = plain(self.nodes.content[name], typed=False)
            missing = known(cells, columns.nulls).null_count
            own = ColumnRead(name, "id", 0, "names of the nodes") if name == columns.id else read.get(name)
            rows.append(own or ColumnRead(name, kind, missing, became))
        return tuple(rows)

    def _title(self) -> str:
        assert self.labels is not None
        labels, outcome = self.labels, OUTCOMES[self.outcome]
        count = f"{len(labels.labelled):,}"
        if outcome.pooled:
            return f"{count} labels of {len(labels.names)} {outcome.columns_title}"
        return f"{count} {outcome.values_title}"


def read_tables(
    nodes: object,
    edges: object = None,
    *,
    id: str | None = None,
    label: str | Sequence[str] = (),
    text: Sequence[str] = (),
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    split: str | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    directed: bool = False,
    outcome: str = AUTO,
    na: Sequence[str] = (),
    keep_na: bool = False,
    drop_unknown_edges: bool = False,
    strict: bool = False,
    edge_type: str | None = None,
    kind: str | None = None,
    target_kind: str | None = None,
    edges_from: Sequence[str] = (),
    time: str | None = None,
    problems: Problems | None = None,
) -> TableGraph:
    """A graph from two tables, each a file (CSV, Parquet, Excel, JSON) or any data frame, as `g3nn fit` reads them.

    Either may also be a list of files, or a mapping from names to tables: one for each kind of nodes or type of edges.

    nodes:  one row per node. edges: one row per edge, whose ends are ids; None: no edges at all.
    id:     the column with the ids; without one, nodes are the numbers of their rows, from 0.
    label:  the column with the labels, empty where unknown; several columns are tags; none if labels come apart.
    text, categorical, ignore: columns of words, of categories written as numbers, and columns to leave out, also of the
            edges, whose other columns are summed up for the nodes at both ends.
    split:  a column of train, val and test. By default it is one of that name, if it holds nothing else.
    source, target, weight: columns of the edges; weight="none": all edges count alike, and repeats once.
    outcome: what labels are: classes, tags, real, counts, or auto.
    na:     further words that mean an unknown value. keep_na: even the usual ones (NA, null, ?, -) are text.
    drop_unknown_edges: leave out edges with ids that no node has.
    strict: everything unusual is an error instead of a note.
    edge_type: a column of the edges with their types. kind: a column of the nodes with their kinds. By default columns
            called so that hold few texts; "none": all are alike.
    target_kind: the only kind of nodes that is asked about.
    edges_from: columns of the nodes whose cells name others, as in `A | B`: a node for each name, and an edge to it.
    time:   a column of the nodes, of the edges, or of both, with dates or numbers. The latest fifth of the labels
            validates, unless a split is given; and an edge that is later than a label says nothing about its node.

    Raises one `InputError` with all problems, those in `problems` first. `G3NNClassifier.fit` takes the result.
    """
    remarks = Remarks([] if problems is None else problems.found, strict)
    remarks.name("outcome", outcome, (AUTO, *OUTCOMES))
    nodes, edges = alone(nodes), alone(edges)
    columns = NodeColumns(
        id,
        labels=(label,) if isinstance(label, str) else tuple(label),
        text=tuple(text),
        ignore=tuple(ignore),
        categorical=tuple(categorical),
        split=split,
        outcome=outcome if outcome in OUTCOMES else AUTO,
        nulls=("", *na) if keep_na else (*NULL_WORDS, *na),
        kind=kind,
        edges_from=(edges_from,) if isinstance(edges_from, str) else tuple(dict.fromkeys(edges_from)),
    )
    edge_columns = EdgeColumns(source, target, weight, edge_type, columns.ignore)
    read, links, schema, pairs, weights, traps = None, None, None, NO_EDGES, None, tuple[Trap, ...]()
    relations, stated, described, summed, named = None, None, None, None, Edges(NO_EDGES)
    labels, val, test, never = None, None, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    with remarks.of_table("nodes"):
        read = load_nodes(nodes, columns, remarks)
    if edges is not None:
        with remarks.of_table("edges"):
            links = load_edges(edges, edge_columns, remarks)
    if read is not None:
        known = {*read.content.column_names, *(() if links is None else links.columns.ignore)}
        for name in (name for name in columns.ignore if name not in known):
            no_column(f"{read.name}, ignored column", name, read.content.column_names, remarks)
    if read is not None:
        columns, typed, ids = read.columns, read.typed, read.ids
        if columns.edges_from and {*columns.edges_from} <= {*read.content.column_names}:
            with remarks.gathered():
                read, named = with_linked(read, stem(nodes) if isinstance(nodes, str | Path) else ROW)
        if read.labels is not None:
            labels, val, test = check_split(read.name, read.labels, read.split, columns.outcome, remarks)
        how = (typed, columns.chosen, columns.nulls, remarks, read.kinds)
        schema = FeatureSchema.fit(read.name, read.features, *how)
        traps, never = remark_on_traps(read, schema, labels, remarks)
        if read.kinds is not None or target_kind is not None:
            never = _not_asked(read, target_kind, remarks)
        edge_columns = edge_columns if links is None else links.columns
        with remarks.gathered():
            # Numbers of rows are no ids that somebody wrote.
            by_id = typed and columns.id is not None
            stated = None if links is None else locate(links, ids, by_id, drop_unknown_edges)
            if time is not None:
                labelled = labels.labelled if labels is not None else np.zeros(0, dtype=np.int64)
                tables = (read.name, read.content), ("edges" if links is None else links.name, stated)
                stated, latest = by_time(time, *tables, labelled, columns.nulls, remarks)
                val = latest if read.split is None and len(latest) else val
            relations = _typed(read, links, stated, named, directed, remarks)
            if (every := _together(stated, named)) is not None:
                places = [] if links is None else [links.name]
                place = " and ".join(places if named.types is None else [*places, read.name])
                always = edge_columns.weight == REPEATS
                pairs, weights = every.merged(place, read.num_nodes, remarks, directed, always)
            if links is not None and links.counted and weights is not None:
                edge_columns = replace(edge_columns, weight=REPEATS)
            if stated is not None and links is not None:
                described = EdgeFeatures.fit(links.name, stated.content, directed, links.typed, columns.nulls, remarks)
                if described is not None and stated.content is not None:
                    summed = described.encode(stated.content, stated.edges.pairs, read.num_nodes)
            if labels is not None and links is not None:
                of_edges = {} if described is None or summed is None else described.by_column(summed)
                if relations is not None and links.columns.type is not None and len(relations.names) <= MOST_GUESSED:
                    of_edges[links.columns.type] = relations.shares
                traps += remark_on_edges(links.name, of_edges, labels, columns.outcome, remarks)
        # Where something is wrong, columns may not have been looked at.
        if not schema.columns and not remarks.found:
            found, allowed = "no column that describes the nodes", "at least one column besides ids and labels"
            more = "the " if described is None else "further "
            remarks.note(read.name, found, allowed, f"degrees and positions in the graph will be {more}features")
    remarks.tell()
    remarks.raise_if_any()
    assert read is not None
    assert schema is not None
    features = schema.encode(read.features, read.kinds)
    marks = None
    if described is not None and stated is not None and summed is not None:
        marks = described.marks(stated, relations)
        features = features.beside(summed)
        if not schema.columns:
            described, features = described.with_positions(features, pairs)
    noted = tuple(remarks.notes), never, traps, relations, described, marks
    return TableGraph(read, schema, features, pairs, weights, edge_columns, directed, labels, val, test, *noted)


_MARKED = "their answers are marked as never-labelled"


def _not_asked(nodes: NodeTable, target: str | None, remarks: Remarks) -> np.ndarray:
    """The nodes of kinds without any label, or of all but the target."""
    none = np.zeros(0, dtype=np.int64)
    if nodes.kinds is None:
        remarks.add("target_kind", repr(target), "nothing, where nodes have no kinds", 'kind="COL" names their column.')
        return none
    labelled = none if nodes.labels is None else nodes.labels.labelled
    kinds, place = sorted(set(nodes.kinds)), f"{nodes.name}, column {nodes.columns.kind!r}"
    if target is None:
        asked = set(nodes.kinds[labelled]) or set(kinds)
        if (other := [name for name in kinds if name not in asked]) and nodes.columns.kind is not None:
            remarks.notes.append(f"{place}: no label for nodes with {listed(other)}; {_MARKED}")
        return np.flatnonzero(~np.isin(nodes.kinds, list(asked)))
    remarks.name("target_kind", target, kinds)
    strange = labelled[nodes.kinds[labelled] != target]
    if target in kinds and len(strange):
        given = f"{target!r} and {counted(len(strange), 'label')} of other kinds"
        given += f" ({listed(sorted(set(nodes.kinds[strange])))})"
        advice = "Empty these labels, or leave target_kind out."
        remarks.add("target_kind", given, f"labels of kind {target!r} alone", advice)
    return np.flatnonzero(nodes.kinds != target)


def _typed(
    nodes: NodeTable, links: EdgeTable | None, stated: Located | None, named: Edges, directed: bool, remarks: Remarks
) -> Relations | None:
    """The relations, if edges have types or nodes have kinds."""
    found = _together(stated, named)
    if found is None or (found.edges.types is None and nodes.kinds is None):
        return None
    problems, places = Problems(), {"node_kinds": f"{nodes.name}, column {nodes.columns.kind!r}"}
    if links is not None:
        places["edge_types"] = f"{links.name}, column {links.columns.type!r}"
    counts = found.edges.weights is not None or (links is not None and links.counted)
    given = found.edges, nodes.num_nodes, directed, problems
    relations = read_relations(*given, kinds=nodes.kinds, weights=None if counts else False)
    remarks.found += about_columns(problems.found, places)
    return relations


def _together(stated: Located | None, named: Edges) -> Located | None:
    """The edges of the edge table, and those that columns of the node table name, which weigh as much on average."""
    count = named.pairs.shape[1]
    if named.types is None or stated is None:
        return Located(named, {}, count) if named.types is not None else stated
    (pairs, weights, _, types, _), own = stated.edges, stated.edges.pairs.shape[1]
    if weights is not None:
        weights = np.concatenate([weights, np.full(count, weights.mean() if own else 1.0)])
    types = np.concatenate([np.full(own, EDGE, dtype=object) if types is None else types, named.types])
    pairs = np.concatenate([pairs, named.pairs], axis=1)
    return stated._replace(edges=Edges(pairs, weights, types=types), rows=stated.rows + count)
