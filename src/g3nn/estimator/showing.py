"""A fitted estimator to look at: its page, its figures, and what a notebook shows of it."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from g3nn.base.errors import G3NNWarning, InputError, Problems
from g3nn.estimator.panel import PanelEntry
from g3nn.graph.tables.frames import html_table, native_frame
from g3nn.pages import assets, write_model_report
from g3nn.pages.averages import curves
from g3nn.pages.layout import laid_out
from g3nn.pages.model_page import histories
from g3nn.pages.model_views import AnswerView, view_of

if TYPE_CHECKING:
    from g3nn.estimator.base import GraphEstimator
    from g3nn.queries import AuditTables

MISSING_EDGES = 1000
"""How many pairs that seem to lack an edge a page shows at most."""

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#8c6d31")
_GREY = "#8d969e"


class Panel(list[PanelEntry]):
    """The models that were tried, in the order of the panel."""

    def table(self) -> pa.Table:
        rows = [{**asdict(entry), "options": _options(entry)} for entry in self]
        return pa.Table.from_pylist(rows)

    def to_frame(self) -> Any:
        """A row for each model, as a pandas data frame (an Arrow table without pandas)."""
        return native_frame(self.table())

    def _repr_html_(self) -> str:
        return html_table(self.table(), "Models tried")


def _options(entry: PanelEntry) -> str:
    return ", ".join(f"{name} {value}" for name, value in entry.options.items())


def audit_or_note(estimator: GraphEstimator) -> AuditTables | None:
    """How likely the edges are, and pairs that lack one; None, and a note, where there is too little to learn from."""
    try:
        return estimator.audit_edges(MISSING_EDGES)
    except InputError as error:
        warnings.warn(f"the edges could not be audited: {error}", G3NNWarning, stacklevel=2)
        return None


def summary(estimator: GraphEstimator) -> str:
    """What was fitted and how well, for a notebook."""
    task, fitted = estimator.task_, estimator.fitted_
    facts = {
        "model": estimator.model_,
        "graph": f"{task.num_nodes:,} nodes, {task.num_edges:,} edges, {task.num_features:,} features",
        "labels": f"{len(task.train):,} to train on, {len(task.val):,} to validate on",
    }
    if len(task.val):
        facts[f"validation {fitted.outcome.score_title}"] = f"{fitted.val_score:.3f}"
        facts["validation loss"] = f"{fitted.val_loss:.3f}"
    rows = "".join(
        f'<tr><th style="text-align: left">{escape(name)}</th><td style="text-align: left">{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f"<table><caption>{escape(type(estimator).__name__)}</caption><tbody>{rows}</tbody></table>"


def reliability(estimator: GraphEstimator) -> Any:
    """Claimed against found: the accuracy of answers by their probability, of numbers the coverage of intervals."""
    import plotly.graph_objects as go

    _check_validated(estimator)
    charts = view_of(estimator.fitted_).charts([""] * estimator.task_.num_nodes)
    if "reliability" in charts:
        *_, found, claimed, low, high = np.array(charts["reliability"]).T
        whiskers = {"type": "data", "symmetric": False, "array": high - found, "arrayminus": found - low}
    else:
        (claimed, found), whiskers = np.array(charts["coverage"]).T, None
    figure = go.Figure(
        [
            go.Scatter(x=[0, 1], y=[0, 1], mode="lines", line={"dash": "dot", "color": _GREY}, hoverinfo="skip"),
            go.Scatter(x=claimed, y=found, error_y=whiskers, mode="lines+markers", line={"color": _COLOURS[0]}),
        ]
    )
    return _framed(figure, "claimed", "found on validation nodes")


def history(estimator: GraphEstimator) -> Any:
    """The learning curves of the chosen model: a panel for each term, the mean over replicas."""
    from plotly.subplots import make_subplots

    averaged = curves(histories(estimator))
    names = list(averaged["terms"])
    figure = make_subplots(rows=max(len(names), 1), shared_xaxes=True, subplot_titles=names, vertical_spacing=0.04)
    for row, name in enumerate(names, 1):
        mean = averaged["terms"][name]["mean"]
        figure.add_scatter(
            x=averaged["epochs"], y=mean, mode="lines", line={"color": _COLOURS[0]}, name=name, row=row, col=1
        )
    return _framed(figure, None, None).update_layout(height=120 + 130 * len(names))


def graph(estimator: GraphEstimator) -> Any:
    """The map of the graph: nodes in the colour of their answer, those with a label in a dark outline."""
    import plotly.graph_objects as go

    task, view = estimator.task_, view_of(estimator.fitted_)
    layout = laid_out(task.edges, task.num_nodes, view.key)
    ids = list(map(str, range(task.num_nodes))) if (tables := estimator.fitted_.tables) is None else tables.ids
    given = np.zeros(task.num_nodes)
    given[np.concatenate([task.train, task.val])] = 1
    traces = []
    if not len(layout.bubbles):
        ends = layout.points[task.edges]
        lines = np.concatenate([ends, np.full((1, *ends.shape[1:]), np.nan)]).transpose(1, 0, 2).reshape(-1, 2)
        line = {"color": _GREY, "width": 0.5}
        traces.append(
            go.Scatter(x=lines[:, 0], y=lines[:, 1], mode="lines", line=line, hoverinfo="skip", showlegend=False)
        )
    for name, members, colour in _coloured(view):
        marker = {"color": colour, "size": 8 if task.num_nodes <= 500 else 4, "colorscale": "Cividis"}
        marker["line"] = {"color": "#1c2126", "width": given[members]}
        texts = [escape(ids[node]) for node in members.tolist()]
        x, y = layout.points[members].T
        traces.append(go.Scatter(x=x, y=y, mode="markers", marker=marker, name=name, text=texts, hoverinfo="text+name"))
    figure = _framed(go.Figure(traces), None, None).update_layout(showlegend=len(traces) > 2)
    # A map as a page has it: downwards.
    return figure.update_xaxes(visible=False).update_yaxes(visible=False, autorange="reversed", scaleanchor="x")


def _coloured(view: AnswerView) -> list[tuple[str, np.ndarray, Any]]:
    """Name, nodes and colour of what has a colour of its own: classes and tags; numbers are shades of one."""
    if not np.issubdtype(view.key.dtype, np.integer):
        return [("answer", np.arange(len(view.key)), view.key)]
    groups = []
    for k in np.unique(view.key).tolist():
        name, colour = ("none", _GREY) if k < 0 else (view.names[k], _COLOURS[k % len(_COLOURS)])
        groups.append((escape(name), np.flatnonzero(view.key == k), colour))
    return groups


def _check_validated(estimator: GraphEstimator) -> None:
    """Raise where no nodes can judge the model."""
    problems = Problems()
    refitted = estimator.fitted_.refitted
    if refitted or not len(estimator.task_.val):
        given = "a model that was trained on them" if refitted else "none"
        problems.add("validation nodes", given, "nodes that the model was not trained on", "Fit with refit=False.")
    problems.raise_if_any()


def _framed(figure: Any, x: str | None, y: str | None) -> Any:
    margin = {"l": 50, "r": 20, "t": 30, "b": 45}
    figure.update_layout(template="plotly_white", showlegend=False, margin=margin)
    return figure.update_xaxes(title=x).update_yaxes(title=y)


class Shown(BaseEstimator):
    """An estimator that can be looked at."""

    def report(self, path: str | Path, *, nodes: Any = None, title: str = "") -> None:
        """Write one HTML file to look at: how good the model is, a map of the graph, uncertain nodes, suspicious edges.

        nodes: a data frame (or an Arrow table) with the original columns, in the order of the fit, to be shown with the
        nodes. Where there are too few edges to judge them, the page goes without.
        """
        estimator = self._after_fit()
        assets.check_target(Path(path), "path")
        found = audit_or_note(estimator) if estimator.task_.num_edges else None
        write_model_report(estimator, path, nodes=nodes, title=title, audit=found)

    def plot_reliability(self) -> Any:
        """A plotly figure: how often answers are right against how often they claim to be, on the validation nodes."""
        return reliability(self._after_fit())

    def plot_history(self) -> Any:
        """A plotly figure: the learning curves of the chosen model."""
        return history(self._after_fit())

    def plot_graph(self) -> Any:
        """A plotly figure: the map of the graph, in the colours of the answers."""
        return graph(self._after_fit())

    def _after_fit(self) -> Any:
        check_is_fitted(self)
        return self

    def _repr_html_inner(self) -> str:
        """The diagram of scikit-learn, and above it, after a fit, what was fitted."""
        diagram = estimator_html_repr(self)
        return summary(self._after_fit()) + diagram if hasattr(self, "fitted_") else diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown = super()._repr_mimebundle_(**kwargs)
        return shown | {"text/html": self._repr_html_inner()} if "text/html" in shown else shown
