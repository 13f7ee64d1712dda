"""Figures of a fitted model for notebooks, in plotly, which is imported when it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from g3nn.pages.averages import History, curves
from g3nn.pages.layout import laid_out
from g3nn.pages.model import FittedModel
from g3nn.pages.model_views import AnswerView, view_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#8c6d31")
_GREY = "#8d969e"


def reliability(model: FittedModel) -> go.Figure:
    """How often answers are right against how often they claim to be; of numbers, how many values intervals hold."""
    import plotly.graph_objects as go

    charts = view_of(model).charts([""] * model.task.num_nodes)
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


def history(histories: Sequence[History]) -> go.Figure:
    """Learning curves: a panel for each term, the mean over replicas."""
    from plotly.subplots import make_subplots

    averaged = curves(histories)
    names = list(averaged["terms"])
    figure = make_subplots(rows=max(len(names), 1), shared_xaxes=True, subplot_titles=names, vertical_spacing=0.04)
    for row, name in enumerate(names, 1):
        mean = averaged["terms"][name]["mean"]
        figure.add_scatter(
            x=averaged["epochs"], y=mean, mode="lines", line={"color": _COLOURS[0]}, name=name, row=row, col=1
        )
    return _framed(figure, None, None).update_layout(height=120 + 130 * len(names))


def graph(model: FittedModel) -> go.Figure:
    """The map of the graph: nodes in the colour of their answer, those with a label in a dark outline."""
    import plotly.graph_objects as go

    task, view, tables = model.task, view_of(model), model.tables
    layout = laid_out(task.edges, task.num_nodes, view.key)
    ids = list(map(str, range(task.num_nodes))) if tables is None else tables.ids
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


def _framed(figure: Any, x: str | None, y: str | None) -> Any:
    margin = {"l": 50, "r": 20, "t": 30, "b": 45}
    figure.update_layout(template="plotly_white", showlegend=False, margin=margin)
    return figure.update_xaxes(title=x).update_yaxes(title=y)
