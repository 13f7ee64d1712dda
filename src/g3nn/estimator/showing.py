"""A fitted estimator to look at: its answers and labels as tables, its page, its figures, and what a notebook shows."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
import torch
from scipy.special import entr
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from g3nn.base.errors import G3NNWarning, InputError, Problems
from g3nn.base.folders import new_folder, replacing
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.members import Answers, Network
from g3nn.estimator.panel import PanelEntry
from g3nn.estimator.saving import MODEL
from g3nn.graph.given import asked_of, is_table
from g3nn.graph.outcomes import Outcome, has_label, is_known
from g3nn.graph.relations import Relations
from g3nn.graph.tables.frames import html_table, native_frame, write_table
from g3nn.graph.tables.graph import TableGraph
from g3nn.model.inputs import Features, Inputs
from g3nn.pages import assets, figures, write_model_report
from g3nn.pages.model_page import histories
from g3nn.queries import LABEL_ROW, AuditTables, EdgeType
from g3nn.queries.wrong_labels import JudgedLabels

if TYPE_CHECKING:
    from pandas import DataFrame
    from plotly.graph_objects import Figure

    from g3nn.estimator.base import GraphEstimator

Columns = dict[str, pa.Array | np.ndarray]
ROLES = ("unlabelled", "train", "validation", "test", "never-labelled")


def answer_table(fitted: Fitted, X: object, edges: object, alpha: float, keep: pa.Table | None) -> pa.Table:
    """id, what was given, the answer, and the columns to `keep`. Nothing given: the nodes of the fit."""
    n, tables = fitted.task.num_nodes, fitted.tables
    if tables is not None and is_table(X):
        X = asked_of(tables, X, edges)
        ids, answers, numbers = X.ids, fitted.ask(X, None), X.numbers
    else:
        answers = fitted.ask(X, edges)
        numbers = np.arange(n) if X is None else n + np.arange(len(answers.isolated))
        ids = pa.array(numbers)
        if tables is not None and X is None:
            ids = tables.row_ids
            if tables.added:
                numbers = np.arange(len(ids))
                answers = answers.at(numbers)
    columns: Columns = {"id": ids}
    if (numbers < n).all():
        columns |= given_columns(fitted, numbers)
    columns |= answer_columns(fitted, answers, alpha)
    if keep is not None:
        known = set() if tables is None else {tables.node_columns.id, *tables.node_columns.labels}
        kept = {name: keep[name] for name in keep.column_names if name not in known}
        columns |= {f"{name} (table)" if name in columns else name: column for name, column in kept.items()}
    return pa.table(columns)


def given_columns(fitted: Fitted, nodes: np.ndarray) -> Columns:
    """What the fit knew about some of its nodes, by column: given (the label), and role (train, validation, test,
    unlabelled, or never-labelled if that is so of all nodes of a kind)."""
    task, tables = fitted.task, fitted.tables
    values, role = task.labels.copy(), np.zeros(task.num_nodes, dtype=np.int64)
    if tables is not None:
        role[tables.never] = 4
    role[task.train], role[task.val] = 1, 2
    if tables is not None and tables.test:
        values[tables.test], role[tables.test] = np.array(tables.test_values, dtype=values.dtype), 3
    given = _given(values[nodes], fitted.columns.tolist(), fitted.outcome)
    return {**given, "role": pa.array(ROLES).take(pa.array(role[nodes]))}


def _given(values: np.ndarray, names: list[Any], outcome: Outcome) -> Columns:
    """Labels by name; of several columns of numbers, one column for each."""
    if outcome.exclusive:
        return {"given": pa.array(names).take(pa.array(values, mask=~is_known(values)))}
    if outcome.flags:
        rows = zip(_members(list(map(str, names)), values == 1).to_pylist(), has_label(values), strict=True)
        return {"given": pa.array([row if known else None for row, known in rows], pa.list_(pa.string()))}
    columns = {
        f"given_{name}" if len(names) > 1 else "given": column for name, column in zip(names, values.T, strict=True)
    }
    return {name: pa.array(column, from_pandas=True) for name, column in columns.items()}


def answer_columns(fitted: Fitted, answers: Answers, alpha: float) -> Columns:
    """Of classes: label (the likeliest), prob_CLASS for each class, entropy (in nats), conformal_set (classes of which
    the true one is not, in a share alpha of the nodes). Of tags: tags (those that are likelier than not), prob_TAG for
    each. Of numbers: mean, deviation, low and high ends of an interval that misses the truth in a share alpha. Always:
    has_edges."""
    outcome, names = fitted.outcome, [str(name) for name in fitted.columns.tolist()]
    mean, deviation = outcome.moments(fitted.answerer.calibrated(answers))
    has_edges = {"has_edges": ~answers.isolated}
    if outcome.flags:
        return {"tags": _members(names, mean > 0.5), **_each("prob", names, mean), **has_edges}
    region = fitted.answerer.conformal(answers, alpha)
    if outcome.exclusive:
        label = pa.array(fitted.columns.tolist()).take(pa.array(mean.argmax(1)))
        sets = {"entropy": entr(mean).sum(1), "conformal_set": _members(names, region)}
        return {"label": label, **_each("prob", names, mean), **sets, **has_edges}
    columns: Columns = {}
    parts = {"mean": mean, "deviation": deviation, "low": region[..., 0], "high": region[..., 1]}
    for part, values in parts.items():
        columns |= {part: values[:, 0]} if len(names) == 1 else _each(part, names, values)
    return {**columns, **has_edges}


def _each(part: str, names: list[str], values: np.ndarray) -> Columns:
    return {f"{part}_{name}": column for name, column in zip(names, values.T, strict=True)}


def _members(names: list[str], chosen: np.ndarray) -> pa.Array:
    """(n,) lists: the names that `chosen` (n, K) says are in."""
    starts = pa.array(np.cumsum([0, *chosen.sum(1)]), pa.int32())
    return pa.ListArray.from_arrays(starts, pa.array(names).take(pa.array(np.nonzero(chosen)[1])))


def label_table(fitted: Fitted, judged: JudgedLabels, contradicted: bool = False) -> np.ndarray:
    """See `AuditTables.labels`. contradicted: only labels that models contradict which have not seen them, with what
    these say instead."""
    order, answer = np.argsort(-judged.wrong, kind="stable"), judged.answer
    if contradicted:
        order = order[judged.contradicted[order]]
        answer = judged.unseen.argmax(1).astype(answer.dtype) if judged.table.size else answer
    table = np.empty(len(order), dtype=LABEL_ROW)
    table["rank"], table["node"] = np.arange(1, len(order) + 1), judged.nodes[order]
    for name, values in (("given", judged.seen), ("answer", answer)):
        table[name] = _named(fitted, values[order], judged.columns[order])
    table["probability"] = judged.wrong[order]
    return table


def _named(fitted: Fitted, values: np.ndarray, columns: np.ndarray) -> list[Any]:
    """Labels as the caller knows them: a class, or a value, with the name of its column where there are several."""
    names = fitted.columns.tolist()
    if fitted.outcome.exclusive:
        return [names[int(value)] for value in values]
    plain = [bool(value) if fitted.outcome.flags else float(value) for value in values]
    if fitted.flat:
        return plain
    return [f"{names[column]} = {value:.6g}" for column, value in zip(columns.tolist(), plain, strict=True)]


MISSING_EDGES = 1000
"""How many pairs that seem to lack an edge a page shows at most."""


class Panel(list[PanelEntry]):
    """The models that were tried, in the order of the panel."""

    def table(self) -> pa.Table:
        rows = [{**asdict(entry), "options": _options(entry)} for entry in self]
        return pa.Table.from_pylist(rows)

    def to_frame(self) -> DataFrame | pa.Table:
        """A row for each model, as a pandas data frame (an Arrow table without pandas)."""
        return native_frame(self.table())

    def _repr_html_(self) -> str:
        return html_table(self.table(), "Models tried")


def _options(entry: PanelEntry) -> str:
    return ", ".join(f"{name} {value}" for name, value in entry.options.items())


def audit_or_note(audit_edges: Callable[..., AuditTables]) -> AuditTables | None:
    """How likely the edges are, and pairs that lack one; None, and a note, where there is too little to learn from."""
    try:
        return audit_edges(MISSING_EDGES, ids=False)
    except InputError as error:
        warnings.warn(f"the edges could not be audited: {error}", G3NNWarning, stacklevel=2)
        return None


class Shown(BaseEstimator):
    """An estimator that can be looked at."""

    fitted_: Fitted

    @abstractmethod
    def audit_edges(self, missing: int = 100, *, ids: bool = True) -> AuditTables: ...

    @abstractmethod
    def edge_types(self) -> list[EdgeType]: ...

    def report(self, path: str | Path, *, nodes: object = None, title: str = "") -> None:
        """Write one HTML file to look at: how good the model is, a map of the graph, uncertain nodes, suspicious edges.

        nodes: a data frame (or an Arrow table) with the original columns, in the order of the fit, to be shown with the
        nodes. Where there are too few edges to judge them, the page goes without.
        """
        check_is_fitted(self)
        assets.check_target(Path(path), "path")
        found = audit_or_note(self.audit_edges) if self.fitted_.task.num_edges else None
        write_model_report(self, path, nodes=nodes, title=title, audit=found, evidence=evidence_of(self))

    def plot_reliability(self) -> Figure:
        """A plotly figure: how often answers are right against how often they claim to be, on the validation nodes; of
        numbers, how many values intervals hold."""
        check_is_fitted(self)
        problems = Problems()
        self.fitted_.check_validation(problems)
        problems.raise_if_any()
        return figures.reliability(self.fitted_)

    def plot_history(self) -> Figure:
        """A plotly figure: the learning curves of the chosen model, a panel for each term, the mean over replicas."""
        check_is_fitted(self)
        return figures.history(histories(self))

    def plot_graph(self) -> Figure:
        """A plotly figure: the map of the graph, nodes in the colour of their answer, those with a label in a dark
        outline."""
        check_is_fitted(self)
        return figures.graph(self.fitted_)

    def _repr_html_inner(self) -> str:
        """The diagram of scikit-learn, and above it, after a fit, what was fitted and how well."""
        diagram = estimator_html_repr(self)
        if not hasattr(self, "fitted_"):
            return diagram
        fitted, task = self.fitted_, self.fitted_.task
        facts = {
            "model": fitted.model,
            "graph": f"{task.num_nodes:,} nodes, {task.num_edges:,} edges, {task.num_features:,} features",
            "labels": fitted.split,
        }
        if len(task.val):
            facts[f"validation {fitted.outcome.score_title}"] = f"{fitted.val_score:.3f}"
            facts["validation loss"] = f"{fitted.val_loss:.3f}"
        left = 'style="text-align: left"'
        rows = [f"<tr><th {left}>{escape(key)}</th><td {left}>{escape(text)}</td></tr>" for key, text in facts.items()]
        name = escape(type(self).__name__)
        return f"<table><caption>{name}</caption><tbody>{''.join(rows)}</tbody></table>{diagram}"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown = super()._repr_mimebundle_(**kwargs)
        return shown | {"text/html": self._repr_html_inner()} if "text/html" in shown else shown


PAGE = "report.html"


def write_file(table: pa.Table, out: Path) -> None:
    """A table as one file, which appears whole or not at all."""
    with replacing(out) as draft:
        write_table(table, draft)


def write_results(
    estimator: GraphEstimator,
    graph: TableGraph,
    out: Path,
    *,
    alpha: float = 0.1,
    keep: pa.Table | None = None,
    audited: bool = True,
    command: str = "",
) -> None:
    """Everything that a fit leaves behind. keep: columns to put beside the answers. command: what was typed.

    The edges are audited before the model is saved, so that what was learned about them is saved too.
    """
    ids, task, tables = graph.nodes.ids, estimator.task_, estimator.fitted_.tables
    found = audit_or_note(estimator.audit_edges) if audited else None
    with new_folder(out) as folder:
        estimator.save(folder / MODEL)
        write_table(estimator.answer_table(alpha=alpha, keep=keep), folder / "predictions.parquet")
        write_table(_edges(ids, task.edges, found, task.relations), folder / "edges.parquet")
        write_table(_labels(ids if tables is None else tables.row_ids, estimator), folder / "labels.parquet")
        write_model_report(
            estimator,
            folder / PAGE,
            nodes=graph.nodes.content,
            title=f"Labels for {Path(graph.nodes.name).name}",
            audit=found,
            test=scores_on_test(estimator, graph),
            command=command,
            evidence=evidence_of(estimator),
        )


def evidence_of(estimator: Shown) -> dict[str, float | None] | None:
    """What each type of edges says about labels, for the page; None where there are no types."""
    return None if estimator.task_.apart is None else {one.name: one.evidence for one in estimator.edge_types()} or None


def scores_on_test(estimator: GraphEstimator, graph: TableGraph) -> dict[str, object] | None:
    """How good the answers for the test nodes of the tables are, if there are any."""
    return estimator.evaluate(graph.test, graph.test_labels) if graph.test.size else None


def _edges(ids: pa.Array, edges: np.ndarray, audit: AuditTables | None, relations: Relations | None) -> pa.Table:
    """One row per edge, the least likely first: source, target, probability, rank (from 1); null without an audit.
    Where edges have types, those that join the pair."""
    rows: dict[str, Any]
    if audit is None:
        nothing = {name: pa.nulls(edges.shape[1], kind) for name, kind in _JUDGED.items()}
        rows = {"source": edges[0], "target": edges[1], **nothing}
    else:
        rows = {name: audit.edges[name] for name in ("source", "target", *_JUDGED)}
    if relations is not None:
        rows["type"] = relations.between(np.stack([rows["source"], rows["target"]]))
    return pa.table({**rows, **{end: ids.take(pa.array(rows[end])) for end in ("source", "target")}})


def _labels(ids: pa.Array, estimator: GraphEstimator) -> pa.Table:
    """One row per given label, the most suspicious first: id, given, answer, probability (that it is wrong), rank (from
    1); no row where the fit did not judge them."""
    if estimator.fitted_.labels is None:
        words = {"id": ids.type, "given": pa.string(), "answer": pa.string()}
        return pa.schema({**words, **_JUDGED}).empty_table()
    rows = estimator.audit_labels(ids=False)
    judged = {name: rows[name].tolist() for name in ("given", "answer", *_JUDGED)}
    return pa.table({"id": ids.take(pa.array(rows["node"])), **judged})


_JUDGED = {"probability": pa.float64(), "rank": pa.int64()}


MOST_NEIGHBOURS = 24
"""Of a node with more, those whose edges weigh most are looked at."""
_MOST_CELLS = 200_000_000
"""Features are made dense to take gradients; larger matrices are not."""


class Neighbour(NamedTuple):
    """node: its id after a fit with ids, otherwise its number. change: how much lower the answer would be without the
    edge. exact: always, since the model answers again without it. type: of the edge, if edges have types."""

    node: Any
    change: float
    exact: bool = True
    type: str = ""


class Explanation(NamedTuple):
    """What pulled the answer up or down, the strongest first.

    The answer is the log-probability of the likeliest class, the probability of the likeliest tag, or the expected
    number. neighbours: by leaving out one edge at a time. features: (name, gradient times value) of the node itself, a
    first-order estimate; not of values that were missing and filled in.
    """

    neighbours: list[Neighbour]
    features: list[tuple[str, float]]


def explain(fitted: Fitted, nodes: np.ndarray) -> list[Explanation]:
    """For some nodes of the fitted graph; each takes as many passes through the network as it has neighbours."""
    pulls = _features(fitted, nodes)
    return [Explanation(_neighbours(fitted, int(node)), pull) for node, pull in zip(nodes, pulls, strict=True)]


def _neighbours(fitted: Fitted, node: int) -> list[Neighbour]:
    task, outcome, tables = replace(fitted.task, train=fitted.seen), fitted.outcome, fitted.tables
    own = np.flatnonzero((task.edges == node).any(axis=0))
    if task.weights is not None:
        own = own[np.argsort(-task.weights[own], kind="stable")]
    answer = fitted.answerer(task, fitted.answers.new).answer[node]
    column, found = _column(outcome, answer), []
    for edge in own[:MOST_NEIGHBOURS]:
        kept = np.arange(task.num_edges) != edge
        without = fitted.answerer(task.with_edges(kept), fitted.answers.new).answer[node]
        change = _value(outcome, answer, column) - _value(outcome, without, column)
        near = int(task.edges[:, edge].sum() - node)
        type = "" if task.relations is None else task.relations.between(task.edges[:, [edge]])[0]
        found.append(Neighbour(near if tables is None else tables.node_ids[near].as_py(), change, type=type))
    return sorted(found, key=lambda one: -abs(one.change))


def _column(outcome: Outcome, answer: np.ndarray) -> int:
    """The likeliest class or tag; of several numbers the first."""
    mean = outcome.moments(answer[None])[0][0]
    return int(mean.argmax()) if outcome.pooled else 0


def _value(outcome: Outcome, answer: np.ndarray, column: int) -> float:
    return float(answer[column] if outcome.exclusive else outcome.moments(answer[None])[0][0, column])


def _features(fitted: Fitted, nodes: np.ndarray) -> list[list[tuple[str, float]]]:
    """Gradient of the answer of the networks times value, for the features of each node that are not zero."""
    outcome, count = fitted.outcome, fitted.task.num_features
    pulls = np.zeros((len(nodes), count))
    for member in fitted.answerer.members:
        if isinstance(member, Network) and member.weight:
            pulls += member.weight * _pulls(fitted, member, nodes, outcome)
    if fitted.filled is not None:
        pulls[fitted.filled[nodes].toarray() != 0] = 0.0
    names, found = fitted.features or tuple(map(str, range(count))), []
    for pull in pulls:
        order = np.argsort(-np.abs(pull), kind="stable")
        found.append([(names[place], float(pull[place])) for place in order if pull[place]])
    return found


def _pulls(fitted: Fitted, network: Network, nodes: np.ndarray, outcome: Outcome) -> np.ndarray:
    """(|nodes|, d): gradient times value of what one network looks at, without what a prior makes of it."""
    task = network.seen(replace(fitted.task, train=fitted.seen), outcome)
    seen, device = task.features, fitted.answerer.device
    pulls = np.zeros((len(nodes), fitted.task.num_features))
    if seen.shape[0] * seen.shape[1] > _MOST_CELLS:
        return pulls
    inputs, model = Inputs.of(task, device, outcome=outcome), network.model.to(device)
    x = torch.from_numpy(seen.toarray() if sp.issparse(seen) else seen).to(inputs.device, inputs.dtype).requires_grad_()
    answers = model.with_marks(model.posterior.log_prob(replace(inputs, x=Features(x)), None), inputs)
    mean = outcome.mean(outcome.mixture(answers))[0]
    unit = outcome.unit_at(outcome.moments(fitted.answers.answer)[0])
    values = mean.log() if outcome.exclusive else mean * torch.from_numpy(unit).to(mean)
    if not values.requires_grad:
        # Some models do not look at features.
        return pulls
    for place, node in enumerate(nodes):
        column = _column(outcome, fitted.answers.answer[node])
        (slope,) = torch.autograd.grad(values[node, column], x, retain_graph=True)
        pulls[place] = (slope[node] * x.detach()[node]).cpu().numpy()[: pulls.shape[1]]
    return pulls
