from __future__ import annotations

import json
import re
import shutil
import tracemalloc
from copy import copy
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from safetensors.numpy import load_file, save_file
from sklearn.base import clone

from g3nn.base.errors import DataError, G3NNWarning, InputError
from g3nn.estimator import G3NNClassifier, Nodes, load_model, saving
from g3nn.estimator.saving import GRAPH, PARAMETERS, RECORD, save_model
from g3nn.graph.calibrate import Scaling
from g3nn.model.generative import ModelSpec
from g3nn.model.objective import Objective

pytestmark = pytest.mark.filterwarnings("ignore:.*new nodes have no edge")

NEW = np.array([[150, 151, 150], [0, 1, 151]])


def assert_same_answers(one, other, graph):
    for question in ((), (graph.X[:4],), (graph.X[:4], NEW), (Nodes(graph.X, graph.edges)[5:9],)):
        np.testing.assert_array_equal(one.predict_proba(*question), other.predict_proba(*question))
        np.testing.assert_array_equal(one.predict_set(0.2, *question), other.predict_set(0.2, *question))
    np.testing.assert_array_equal(one.predict(), other.predict())


def test_a_loaded_model_answers_the_same_to_the_last_bit(fitted, graph, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert_same_answers(fitted, loaded, graph)
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "graph.safetensors", "model.json", "model.safetensors",
    ]  # fmt: skip
    assert loaded.get_params() == fitted.get_params()
    assert loaded.panel_ == fitted.panel_
    for name in ("model_", "temperature_", "isolated_temperature_", "isolated_answer_", "n_iter_", "n_validation_"):
        assert getattr(loaded, name) == getattr(fitted, name), name
    np.testing.assert_array_equal(loaded.class_offsets_, fitted.class_offsets_)
    np.testing.assert_array_equal(loaded.history_, fitted.history_)
    assert loaded.history_names_ == fitted.history_names_
    first, second = (one.fitted_.answerer.networks[0] for one in (fitted, loaded))
    for name in ("spec", "objective", "hyperparameters", "seeds", "epochs", "isolated_answer", "infers"):
        assert getattr(first, name) == getattr(second, name), name
    assert loaded.evaluate(graph.val, graph.truth[graph.val]) == fitted.evaluate(graph.val, graph.truth[graph.val])


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"refit": True}, {"inductive": True}], ids=["plain", "refit", "inductive"])
def test_an_ensemble_answers_the_same_to_the_last_bit(heavy, small_panel, tmp_path, changes):
    ensemble = small_panel(**changes).fit(heavy.X, heavy.y, heavy.edges, val=heavy.val)
    ensemble.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    members, again = (one.fitted_.answerer.members for one in (ensemble, loaded))
    # Among few nodes no value lies in a heavy tail.
    views = ("given",) if ensemble.inductive else ("given", "ranks")
    networks = {(name, view) for name in ("sbm-gcn", "linkx") for view in views}
    assert {(one.name, one.view.name) for one in members} == networks | {("trees-neighbours", "given")}
    for name in ("name", "place", "weight", "isolated_weight", "temperature"):
        assert [getattr(one, name) for one in again] == [getattr(one, name) for one in members], name
    assert_same_answers(ensemble, loaded, heavy)
    assert (loaded.model_, loaded.panel_) == (ensemble.model_, ensemble.panel_)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again" / RECORD).read_bytes() == (tmp_path / "model" / RECORD).read_bytes()


@pytest.mark.parametrize("offsets", [None, np.array([0.1, -0.3, 0.2])])
def test_a_scaling_comes_back(fitted, tmp_path, offsets):
    answerer = fitted.fitted_.answerer
    linked = replace(answerer.calibrations["linked"], scaling=Scaling(0.7, offsets))
    answerer = replace(answerer, calibrations={**answerer.calibrations, "linked": linked})
    changed = replace(fitted.fitted_, answerer=answerer)
    save_model(changed, fitted.get_params(), {}, None, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.temperature_ == 0.7
    np.testing.assert_array_equal(loaded.class_offsets_, offsets)
    scaled = copy(fitted)
    scaled.fitted_ = changed
    np.testing.assert_array_equal(loaded.predict_proba(), scaled.predict_proba())
    assert np.abs(loaded.predict_proba() - fitted.predict_proba()).max() > 0.01


def test_strings_names_sparse_and_missing_features_come_back(graph, quick, tmp_path):
    X = graph.X.copy()
    X[5, 2] = np.nan
    frame = pa.table(dict(zip("abcdef", X.T, strict=True)))
    # Objects: an array of numpy's strings has no zeros at their ends.
    y = np.array(["red", "red\0", "blue" * 100], dtype=object)[graph.y]
    y[graph.y < 0] = None
    classifier = quick(model="blsm-gat", missing="impute", epochs=5, options={"eta": np.float64(0.5)})
    with pytest.warns(G3NNWarning, match="column 'c': missing numbers; filled in"):
        classifier.fit(frame, y, graph.edges, val=graph.val).save(tmp_path / "a")
    loaded = load_model(tmp_path / "a")
    assert loaded.classes_.tolist() == ["blue" * 100, "red", "red\0"]
    assert loaded.feature_names_in_.tolist() == list("abcdef")
    assert_same_answers(classifier, loaded, graph)
    hole = np.full((1, 6), np.nan)
    np.testing.assert_array_equal(loaded.predict_proba(hole), classifier.predict_proba(hole))
    few = sp.csr_array(np.where(graph.X > 1, graph.X, 0))
    sparse = quick(model="gcn", epochs=5).fit(few, graph.y > 0, graph.edges)
    sparse.save(tmp_path / "b")
    again = load_model(tmp_path / "b")
    assert sp.issparse(again.task_.features)
    assert again.classes_.dtype == bool
    assert_same_answers(sparse, again, graph)


def test_own_specs_objectives_and_notes_come_back(graph, quick, tmp_path):
    spec, objective = ModelSpec("gcn", "sbm", "linear"), Objective(eta=2.0)
    classifier = quick(model=spec, objective=objective, epochs=3, random_state=np.random.RandomState(1))
    classifier.fit(graph.X, graph.y, graph.edges, val=graph.val)
    classifier.notes_["table"] = {"columns": ["a"]}
    classifier.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert (loaded.model, loaded.objective, loaded.random_state) == (spec, objective, None)
    assert loaded.notes_ == {"table": {"columns": ["a"]}}
    assert_same_answers(classifier, loaded, graph)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again" / PARAMETERS).read_bytes() == (tmp_path / "model" / PARAMETERS).read_bytes()


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(6, 3)

    def forward(self, x, edge_index):
        return self.layer(x)


def test_what_cannot_be_saved_is_said_and_nothing_is_written(graph, quick, tmp_path):
    own = quick(model=ModelSpec(Net, "sbm"), epochs=3).fit(graph.X, graph.y, graph.edges, val=graph.val)
    own.notes_["array"] = np.zeros(2)
    with pytest.raises(InputError, match="Net, a part of your own") as caught:
        own.save(tmp_path / "model")
    assert [problem.argument for problem in caught.value.problems] == ["model", "notes_"]
    assert list(tmp_path.iterdir()) == []


def learned(record):
    """The record of what the first member learned."""
    return record["members"][1][0]["learned"]


def resigned(folder, change):
    """Change the record and its checksum too, as somebody would who knows how."""
    record = json.loads((folder / RECORD).read_text())
    del record["checksum"]
    change(record)
    (folder / RECORD).write_text(json.dumps({**record, "checksum": saving._own_checksum(record)}))


@pytest.fixture
def folder(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["fitted"].pop("columns"),
        lambda record: record["fitted"].update(columns=["texts", ["a"]]),
        lambda record: record["fitted"].update(columns=["object", ["a", "b", "c"]]),
        lambda record: record["fitted"].update(columns=["array", ["nowhere"]]),
        lambda record: learned(record)["spec"][1].update(likelihood="nothing"),
        lambda record: learned(record)["spec"][1].update(posterior="gat"),
        lambda record: learned(record)["hyperparameters"].update(hidden=-1),
        lambda record: learned(record).update(seeds=["tuple", [1]]),
        lambda record: learned(record).pop("epochs"),
        lambda record: record["members"][1][0].update(learned=["Scaling", {}]),
        lambda record: record["members"][1][0].update(view=["print", ["run"]]),
        lambda record: record["members"][1].append(record["members"][1][0]),
        lambda record: record["members"][1].clear(),
        lambda record: record["fitted"]["task"][1].update(directed=["print", ["run"]]),
        lambda record: record["fitted"]["task"][1].update(train=["tuple", [10**6]]),
        lambda record: record["parameters"].update(unheard_of=1),
        lambda record: record["fitted"].update(panel=["tuple", [["PanelEntry", {}]]]),
        lambda record: record["answerer"].update(calibrations=["Calibrations", 3]),
    ],
)
def test_a_forged_record_is_refused_and_no_code_of_it_runs(folder, change):
    resigned(folder, change)
    with pytest.raises(DataError, match="do not fit together"):
        load_model(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda record: calibration(record)["scaling"][1].update(temperature=None),
            "Scaling temperature is a NoneType",
        ),
        (lambda record: calibration(record)["scaling"][1].update(temperature=True), "Scaling temperature is a bool"),
        (lambda record: calibration(record).update(scaling={}), "Calibration scaling is a dict"),
        (lambda record: record["fitted"].update(answers=None), "Fitted answers is a NoneType"),
        (lambda record: record["fitted"].update(answers={}), "Fitted answers is a dict"),
        (lambda record: record["fitted"].update(key=1), "Fitted key is a int"),
        (lambda record: record["fitted"].update(panel=["tuple", [1]]), "Fitted panel is a tuple"),
        (lambda record: record["fitted"]["answers"][1].update(answer=0.5), "Answers answer is a float"),
        (lambda record: record["answerer"].update(outcome=["Classes", "gcn"]), "Classes columns is a str"),
        (lambda record: record["answerer"]["outcome"][1].update(location="a"), "Classes location is a str"),
        (
            lambda record: record["answerer"]["outcome"][1].update(location=["tuple", [{}]]),
            "Classes location is a tuple",
        ),
        (lambda record: record["answerer"]["outcome"][1].update(columns=2), "not those of 150 nodes"),
        (lambda record: record["members"][1][0].update(weight="1"), "Network weight is a str"),
        (lambda record: record["members"][1][0].update(trust=0.3), "KeyError: 0.3"),
        (lambda record: record["members"][1][0].update(beliefs=True), "beliefs are looked at, and there are none"),
        (lambda record: learned(record).update(epochs=1.5), "Network epochs is a float"),
        (lambda record: learned(record).update(infers=True), "nothing to infer them by"),
        (lambda record: learned(record).update(hyperparameters=["tuple", []]), "tuple"),
    ],
)
def test_what_an_annotation_does_not_allow_is_refused(folder, change, words):
    resigned(folder, change)
    with pytest.raises(DataError, match=rf"do not fit together \(.*{words}"):
        load_model(folder)


def calibration(record):
    """The record of the calibration for nodes with edges."""
    return record["answerer"]["calibrations"][1]["linked"][1]


def test_a_prior_that_is_not_there_answers_for_nobody(graph, quick, tmp_path):
    quick(model="gcn", epochs=3).fit(graph.X, graph.y, graph.edges, val=graph.val).save(tmp_path / "model")
    resigned(tmp_path / "model", lambda record: learned(record).update(isolated_answer="prior"))
    with pytest.raises(DataError, match="a prior answers for isolated nodes, and there is none"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("fitted.answers.answer", np.zeros((149, 3))),
        ("fitted.answers.answer", np.zeros((150, 4))),
        ("fitted.answers.answer", np.zeros(150)),
        ("fitted.answers.isolated", np.zeros(150)),
        ("fitted.answers.isolated", np.zeros(149, dtype=bool)),
    ],
)
def test_answers_about_other_nodes_or_classes_are_refused(folder, name, array):
    arrays = load_file(folder / GRAPH)
    assert name in arrays
    save_file({**arrays, name: array}, folder / GRAPH)
    resigned(folder, lambda record: record["files"].update({GRAPH: saving._checksum(folder / GRAPH)}))
    with pytest.raises(DataError, match="do not fit together"):
        load_model(folder)


@pytest.mark.parametrize("hidden", [10**7, 10**9, 10**15, 10**40])
def test_a_size_that_the_tensors_do_not_have_takes_no_memory(folder, hidden):
    resigned(folder, lambda record: learned(record)["hyperparameters"].update(hidden=hidden))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="do not fit together"):
            load_model(folder)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["fitted"].update(columns=["tuple", [2**70, 2**71, 2**72]]),
        lambda record: record["fitted"].update(columns=["texts", ["a", "b", "b"]]),
        lambda record: record["fitted"]["task"][1].update(labels=["tuple", [2**70] * 150]),
        lambda record: record["fitted"]["task"][1].update(num_classes=2**70),
        lambda record: record["fitted"]["task"][1].update(features=["sparse", sparse_of(2**70)]),
    ],
)
def test_values_that_no_array_holds_are_refused(folder, change):
    resigned(folder, change)
    with pytest.raises(DataError, match="do not fit together"):
        load_model(folder)


def sparse_of(columns):
    parts = {name: ["array", ["fitted.task.train"]] for name in ("data", "indices", "indptr")}
    return {**parts, "shape": ["tuple", [150, columns]]}


def test_classes_that_are_too_large_are_refused(folder):
    arrays = load_file(folder / GRAPH)
    save_file({**arrays, "fitted.columns": np.array([0, 1, 2**63], dtype=np.uint64)}, folder / GRAPH)
    resigned(folder, lambda record: record["files"].update({GRAPH: saving._checksum(folder / GRAPH)}))
    with pytest.raises(DataError, match="columns that name no 3 classes"):
        load_model(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_parameters_that_are_not_finite_are_refused(folder, value):
    state = load_file(folder / PARAMETERS)
    name = next(name for name, array in state.items() if array.dtype == np.float32)
    state[name].flat[-1] = value
    save_file(state, folder / PARAMETERS)
    resigned(folder, lambda record: record["files"].update({PARAMETERS: saving._checksum(folder / PARAMETERS)}))
    with pytest.raises(DataError, match=f"{name.partition('.')[2]} holds values that are not finite"):
        load_model(folder)


def test_a_temperature_that_is_not_finite_is_refused(folder):
    text = (folder / RECORD).read_text()
    number = re.search(r'"temperature": ([0-9.e-]+)', text)
    (folder / RECORD).write_text(text.replace(number[0], '"temperature": ["float", ["nan"]]', 1))
    resigned(folder, lambda record: None)
    with pytest.raises(DataError, match="Scaling temperature holds values that are not finite"):
        load_model(folder)


def test_a_model_file_of_another_name_is_refused(folder):
    shutil.move(folder / PARAMETERS, folder / "other.safetensors")
    resigned(folder, lambda record: record["files"].update({"other.safetensors": record["files"].pop(PARAMETERS)}))
    with pytest.raises(DataError, match="do not fit together"):
        load_model(folder)


def test_a_loaded_model_can_be_cloned_and_fitted_again(folder, graph):
    fresh = clone(load_model(folder))
    assert isinstance(fresh, G3NNClassifier)
    assert not hasattr(fresh, "classes_")


def test_a_directed_graph_comes_back_directed(graph, quick, tmp_path):
    quick(directed=True).fit(graph.X, graph.y, graph.edges, val=graph.val).save(tmp_path / "model")
    assert load_model(tmp_path / "model").task_.directed
