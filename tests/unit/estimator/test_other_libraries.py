"""Estimators among other tools: pipelines, data frames of other libraries, parameters that change after a fit."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from g3nn import Nodes
from g3nn.base.errors import InputError
from g3nn.estimator import load_model
from g3nn.graph.tables import frames

COLUMNS = list("abcdef")


def test_a_scaler_in_front(graph, quick, fitted):
    pipe = make_pipeline(StandardScaler(), quick())
    pipe.fit(graph.X, graph.y, g3nnclassifier__edges=graph.edges, g3nnclassifier__val=graph.val)
    assert (pipe.predict(graph.X) == fitted.predict()).mean() > 0.9
    new = np.array([[150, 151, 151], [3, 4, 5]])
    assert pipe.predict(graph.X[:2] + 0.1, edges=new).shape == (2,)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_scaler_that_gives_frames(graph, quick, library):
    other = pytest.importorskip(library)
    X = other.DataFrame(dict(zip(COLUMNS, graph.X.T, strict=True)))
    pipe = make_pipeline(StandardScaler(), quick(epochs=5)).set_output(transform=library)
    pipe.fit(X, graph.y, g3nnclassifier__edges=graph.edges)
    assert pipe.predict(X).shape == (150,)
    assert pipe[-1].feature_names_in_.tolist() == COLUMNS
    assert isinstance(pipe[-1].to_frame(), other.DataFrame)


def test_a_scaler_before_nodes_says_what_to_do(graph, quick):
    known = np.flatnonzero(graph.y >= 0)
    with pytest.raises(InputError, match=r"Nodes\(scaler\.fit_transform\(X\), edges\)"):
        cross_val_score(
            make_pipeline(StandardScaler(), quick()),
            Nodes(graph.X, graph.edges)[known],
            graph.y[known],
            error_score="raise",
        )


def test_frames_come_back_in_the_library_they_came_in(graph, quick, fitted):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X = polars.DataFrame(dict(zip(COLUMNS, graph.X.T, strict=True)))
    found = quick(epochs=1).fit(X, graph.y, graph.edges)
    assert isinstance(found.to_frame(), polars.DataFrame)
    new, edges = X[:2] + 0.1, [(150, 3), (151, 4)]
    assert isinstance(found.to_frame(new, edges), polars.DataFrame)
    assert isinstance(found.to_frame(pandas.DataFrame(new.to_dict(as_series=False)), edges), pandas.DataFrame)
    assert isinstance(fitted.to_frame(), pandas.DataFrame)


def test_set_output_names_the_library(fitted, monkeypatch):
    asked = []
    monkeypatch.setattr(
        frames.nw, "from_arrow", lambda table, backend: asked.append(backend) or frames.nw.from_native(table)
    )
    copy = clone(fitted).set_output(transform="polars")
    copy.restore(fitted.fitted_)
    assert isinstance(clone(copy).set_output(transform=None), type(fitted))
    assert isinstance(copy.to_frame(), pa.Table)
    with sklearn.config_context(transform_output="polars"):
        fitted.to_frame()
        copy.set_output(transform="default").to_frame()
    assert asked == ["polars", "polars"]
    with pytest.raises(
        InputError, match=r"transform: got 'polar'; expected default, pandas or polars. Did you mean 'polars'"
    ):
        fitted.set_output(transform="polar")


def test_the_library_of_a_frame(monkeypatch):
    pandas = pytest.importorskip("pandas")
    assert frames.library_of(pandas.DataFrame({"a": [1]})) == "pandas"
    assert frames.library_of(pa.table({"a": [1]})) == frames.library_of(np.eye(2)) == "pandas"
    assert isinstance(frames.native_frame(pa.table({"a": [1]}), "pyarrow"), pa.Table)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(frames.native_frame(pa.table({"a": [1]})), pa.Table)


def test_a_model_is_saved_with_the_parameters_of_its_fit(graph, quick, tmp_path):
    found = quick(epochs=1).fit(graph.X, graph.y, graph.edges).set_params(hidden=99, refit=True)
    found.save(tmp_path / "one")
    again = load_model(tmp_path / "one")
    assert (again.hidden, again.refit) == (16, False)
    again.set_params(hidden=98).save(tmp_path / "two")
    assert load_model(tmp_path / "two").hidden == 16


def test_another_model_after_the_fit_is_not_a_single_model(graph, small_panel):
    found = small_panel().fit(graph.X, graph.y, graph.edges, val=graph.val).set_params(model="gcn")
    with pytest.raises(InputError, match="model: got 'gcn', set after the fit; expected 'auto', as in the fit"):
        found.continue_fit()
