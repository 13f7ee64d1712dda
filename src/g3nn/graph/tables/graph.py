"""Two tables as one graph: features, edges as row numbers, labels and the split; all problems of both at once.

The node table has one row per node. `load_nodes` reads ids, labels, the split and the columns that describe nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import DataError, InputError, Problems, counted, refuse
from g3nn.base.parse import NO_EDGES
from g3nn.graph.features import FeatureTable
from g3nn.graph.outcomes import OUTCOMES, Labels
from g3nn.graph.relations import Relations
from g3nn.graph.tables.cells import NULL_WORDS, PARTS, identifiers, is_text, known, plain, split_parts
from g3nn.graph.tables.edge_table import REPEATS, EdgeColumns, join, load_edges
from g3nn.graph.tables.encoders import Category, Text
from g3nn.graph.tables.files import Source
from g3nn.graph.tables.labels import AUTO, check_split, read_labels
from g3nn.graph.tables.remarks import Remarks, listed
from g3nn.graph.tables.schema import ColumnRead, FeatureSchema
from g3nn.graph.tables.traps import Trap, remark_on_traps

SPLIT = "split"


@dataclass(frozen=True)
class NodeColumns:
    """The columns of a node table that are not ordinary features. Several `labels` are tags.

    Every other column describes the nodes, as `FeatureSchema` reads it: `text` columns as words, `categorical` columns
    as categories even if they hold numbers. Without an `id`, the rows are numbered from 0. The `split` column says
    which labelled nodes are for training, validation and test; by default it is a column called split, if it holds
    train, val and test only. nulls: words that say that nothing is known.
    """

    id: str | None = None
    labels: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    split: str | None = None
    outcome: str = AUTO
    nulls: tuple[str, ...] = NULL_WORDS

    @property
    def special(self) -> set[str]:
        return {name for name in (self.id, *self.labels, self.split) if name is not None}

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
    """

    name: str
    ids: pa.Array
    features: pa.Table
    columns: NodeColumns
    content: pa.Table
    labels: Labels | None = None
    split: np.ndarray | None = None
    typed: bool = True

    @property
    def num_nodes(self) -> int:
        return len(self.ids)


def load_nodes(table: object, columns: NodeColumns, remarks: Remarks) -> NodeTable | None:
    """Read a node table; None if its ids cannot be read."""
    source = Source.open(table, "nodes", remarks)
    roles = {"id": (columns.id,), "label": columns.labels, "split": (columns.split,)}
    roles |= {"text": columns.text, "categorical": columns.categorical, "ignored": columns.ignore}
    source.check_roles(roles, remarks)
    content = source.read(text={*columns.special, *columns.chosen}, nulls=columns.nulls)
    if content.num_rows == 0:
        raise DataError(f"{source.name}: has a header but no rows.")
    columns = _with_split(source, content, columns, remarks)
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
    left = [name for name in content.column_names if name not in other]
    # Without ids or labels, a column that was meant for them would pass for a feature.
    if not {*([columns.id] if columns.id else []), *columns.labels} <= set(source.names):
        left = []
    cells = [plain(content[name], typed=False) for name in left]
    # A table without columns, unlike a selection of none, would have no rows.
    features = pa.table(cells, names=left) if left else content.select([])
    return NodeTable(source.name, ids, features, columns, content, labels, parts, source.typed)


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
    relations: the types of the edges and the kinds of the nodes; None: all are alike.
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
    problems: Problems | None = None,
) -> TableGraph:
    """A graph from two tables, each a file (CSV, Parquet, Excel, JSON) or any data frame, as `g3nn fit` reads them.

    nodes:  one row per node. edges: one row per edge, whose ends are ids; None: no edges at all.
    id:     the column with the ids; without one, nodes are the numbers of their rows, from 0.
    label:  the column with the labels, empty where unknown; several columns are tags; none if labels come apart.
    text, categorical, ignore: columns of words, of categories written as numbers, and columns to leave out.
    split:  a column of train, val and test. By default it is one of that name, if it holds nothing else.
    source, target, weight: columns of the edges; weight="none": all edges count alike, and repeats once.
    outcome: what labels are: classes, tags, real, counts, or auto.
    na:     further words that mean an unknown value. keep_na: even the usual ones (NA, null, ?, -) are text.
    drop_unknown_edges: leave out edges with ids that no node has.
    strict: everything unusual is an error instead of a note.

    Raises one `InputError` with all problems, those in `problems` first. `G3NNClassifier.fit` takes the result.
    """
    remarks = Remarks([] if problems is None else problems.found, strict)
    remarks.name("outcome", outcome, (AUTO, *OUTCOMES))
    columns = NodeColumns(
        id,
        labels=(label,) if isinstance(label, str) else tuple(label),
        text=tuple(text),
        ignore=tuple(ignore),
        categorical=tuple(categorical),
        split=split,
        outcome=outcome if outcome in OUTCOMES else AUTO,
        nulls=("", *na) if keep_na else (*NULL_WORDS, *na),
    )
    edge_columns = EdgeColumns(source, target, weight)
    read, links, schema, pairs, weights, traps = None, None, None, NO_EDGES, None, tuple[Trap, ...]()
    labels, val, test, never = None, None, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    with remarks.of_table("nodes"):
        read = load_nodes(nodes, columns, remarks)
    if edges is not None:
        with remarks.of_table("edges"):
            links = load_edges(edges, edge_columns, remarks)
    if read is not None:
        columns = read.columns
        if read.labels is not None:
            labels, val, test = check_split(read.name, read.labels, read.split, columns.outcome, remarks)
        schema = FeatureSchema.fit(read.name, read.features, read.typed, columns.chosen, columns.nulls, remarks)
        traps, never = remark_on_traps(read, schema, labels, remarks)
        # Where something is wrong, columns may not have been looked at.
        if not schema.columns and not remarks.found:
            found, allowed = "no column that describes the nodes", "at least one column besides ids and labels"
            remarks.note(read.name, found, allowed, "degrees and positions in the graph will be the features")
        if links is not None:
            edge_columns = links.columns
            with remarks.gathered():
                # Numbers of rows are no ids that somebody wrote.
                typed = read.typed and columns.id is not None
                how = {"drop_unknown": drop_unknown_edges, "directed": directed}
                pairs, weights = join(links, read.ids, typed, remarks, **how)
                if links.counted and weights is not None:
                    edge_columns = replace(edge_columns, weight=REPEATS)
    remarks.tell()
    remarks.raise_if_any()
    assert read is not None
    assert schema is not None
    features, noted = schema.encode(read.features), (tuple(remarks.notes), never, traps)
    return TableGraph(read, schema, features, pairs, weights, edge_columns, directed, labels, val, test, *noted)
