"""A fitted model in a folder, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from g3nn.audit import GraphAudit
from g3nn.calibrate import Scaling
from g3nn.errors import Problems
from g3nn.estimator.answers import Answerer, Answers, Calibration, Calibrations
from g3nn.estimator.archive import AUDIT, GRAPH, PARAMETERS, Arrays, write_archive
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.panel import PanelEntry
from g3nn.model import GenerativeModel, ModelSpec
from g3nn.objective import Objective
from g3nn.options import check, known_names
from g3nn.parse import Matrix
from g3nn.replicas import Replicas, Sizes
from g3nn.task import NodeTask
from g3nn.training.checks import checked_device, plain

Json = dict[str, Any]

_MASKS = ("new", "inferred")
"""Arrays of `Answers` that need not be there."""
_DTYPES: dict[str, Any] = {"U": np.str_, "i": np.int64, "b": np.bool_}
_OBJECTS: tuple[tuple[str, type], ...] = (("model", ModelSpec), ("objective", Objective))
"""Parameters of an estimator that need not be plain values."""


def save_model(
    fitted: Fitted, parameters: Mapping[str, Any], notes: Mapping[str, Any], audit: GraphAudit | None, folder: Path
) -> None:
    """Into a new or empty folder, which appears whole or not at all."""
    problems = Problems()
    for part in (fitted.spec.posterior, fitted.spec.likelihood, fitted.spec.prior):
        if part is not None and not isinstance(part, str):
            name = getattr(part, "__name__", type(part).__name__)
            advice = "Loading runs no code that is not part of g3nn."
            problems.add("model", f"{name}, a part of your own", "models made of registered parts", advice)
    try:
        json.dumps(notes)
    except (TypeError, ValueError) as error:
        problems.add("notes_", error, "plain values: texts, numbers, lists and mappings of them")
    state = {name: tensor.cpu().numpy() for name, tensor in fitted.answerer.model.state_dict().items()}
    record = {"parameters": _plain_parameters(parameters), **_record(fitted), "notes": dict(notes)}
    tensors = {PARAMETERS: state, GRAPH: _graph_arrays(fitted)}
    if audit is not None:
        tensors[AUDIT] = audit.state()
    write_archive(folder, record, tensors, problems)


def restored_parameters(record: Json) -> Json:
    """The parameters of a saved estimator."""
    given = dict(record["parameters"])
    for name, kind in _OBJECTS:
        if isinstance(given[name], dict):
            given[name] = kind(**given[name])
    return given


def restored_fit(record: Json, state: Arrays, arrays: Arrays) -> Fitted:
    """What a fit learned, from the parts of its folder."""
    columns = np.array(record["columns"]["values"], dtype=_DTYPES[record["columns"]["kind"]])
    task = _task(arrays, record["features"]["count"], len(columns), record["directed"], record["outcome"])
    parts, names, training = record["model"], record["features"]["names"], record["training"]
    spec = ModelSpec(parts["posterior"], parts["likelihood"], parts["prior"])
    model = _model(spec, parts, replace(task, train=arrays["seen"]), state)
    calibration = record["calibration"]
    device = checked_device(record["parameters"]["device"] if torch.cuda.is_available() else "cpu", Problems())
    calibrations = _calibrations(calibration, arrays)
    answerer = Answerer(model, device, calibrations, calibration["isolated_answer"], calibration["infers"])
    for entry in training["panel"]:
        entry["val_loss"] = math.inf if entry["val_loss"] is None else entry["val_loss"]
    return Fitted(
        columns=columns,
        flat=record["flat"],
        spec=spec,
        objective=parts["objective"],
        hyperparameters=parts["hyperparameters"],
        seeds=tuple(parts["seeds"]),
        panel=tuple(PanelEntry(**entry) for entry in training["panel"]),
        epochs=training["epochs"],
        history=arrays["history"],
        task=task,
        seen=arrays["seen"],
        answerer=answerer,
        answers=Answers(arrays["answer"], arrays["isolated"], *(arrays.get(name) for name in _MASKS)),
        features=None if names is None else tuple(names),
        means=arrays.get("means"),
        key=record["fingerprint"],
    )


def _plain_parameters(parameters: Mapping[str, Any]) -> Json:
    """As `get_params` gives them. A random state that is not a number is left out: it has moved on since."""
    given = {name: plain(value) for name, value in parameters.items()}
    if not isinstance(given["random_state"], int):
        given["random_state"] = None
    for name, kind in _OBJECTS:
        if isinstance(given[name], kind):
            given[name] = asdict(given[name])
    if given["options"] is not None:
        given["options"] = {name: plain(value) for name, value in given["options"].items()}
    return given


def _record(fitted: Fitted) -> Json:
    answerer = fitted.answerer
    panel = [asdict(entry) for entry in fitted.panel]
    for entry in panel:
        entry["val_loss"] = entry["val_loss"] if math.isfinite(entry["val_loss"]) else None
    return {
        "model": {
            "posterior": fitted.spec.posterior,
            "likelihood": fitted.spec.likelihood,
            "prior": fitted.spec.prior,
            "objective": fitted.objective,
            "hyperparameters": fitted.hyperparameters,
            "seeds": list(fitted.seeds),
        },
        "outcome": fitted.task.outcome,
        "flat": fitted.flat,
        "columns": {"kind": fitted.columns.dtype.kind, "values": fitted.columns.tolist()},
        "features": {"count": fitted.task.num_features, "names": fitted.features and list(fitted.features)},
        "directed": fitted.task.directed,
        "calibration": {
            **{name: _plain_scaling(part.scaling) for name, part in _each(answerer.calibrations)},
            "isolated_answer": answerer.isolated_answer,
            "infers": answerer.infers,
        },
        "training": {"epochs": fitted.epochs, "panel": panel},
        "fingerprint": fitted.key,
    }


def _each(calibrations: Calibrations) -> list[tuple[str, Calibration]]:
    """Those that are there, by name."""
    named = ((part.name, getattr(calibrations, part.name)) for part in fields(calibrations))
    return [(name, part) for name, part in named if part is not None]


def _plain_scaling(scaling: Scaling) -> Json:
    offsets = None if scaling.offsets is None else scaling.offsets.tolist()
    return {"temperature": scaling.temperature, "offsets": offsets}


def _calibrations(record: Json, arrays: Arrays) -> Calibrations:
    found = {}
    for name in (part.name for part in fields(Calibrations) if part.name in record):
        temperature, offsets = record[name]["temperature"], record[name]["offsets"]
        scaling = Scaling(temperature, None if offsets is None else np.array(offsets, dtype=np.float64))
        found[name] = Calibration(scaling, arrays[f"{name}_scores"])
    return Calibrations(**found)


def _graph_arrays(fitted: Fitted) -> Arrays:
    task, answers = fitted.task, fitted.answers
    arrays = {name: getattr(task, name) for name in ("edges", "labels", "train", "val")}
    arrays |= {"seen": fitted.seen, "history": fitted.history}
    arrays |= {"answer": answers.answer, "isolated": answers.isolated}
    arrays |= {f"{name}_scores": part.scores for name, part in _each(fitted.answerer.calibrations)}
    arrays |= {name: mask for name in _MASKS if (mask := getattr(answers, name)) is not None}
    if fitted.means is not None:
        arrays["means"] = fitted.means
    matrix = task.features
    if not sp.issparse(matrix):
        return {**arrays, "features": matrix}
    places = {"indptr": matrix.indptr.astype(np.int64), "indices": matrix.indices.astype(np.int64)}
    return {**arrays, **places, "data": matrix.data}


def _task(arrays: Arrays, d: int, columns: int, directed: bool, outcome: str) -> NodeTask:
    labels = arrays["labels"]
    features: Matrix
    if "features" in arrays:
        features = arrays["features"]
    else:
        features = sp.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(len(labels), d))
    split = arrays["train"], arrays["val"]
    return NodeTask.build(
        features, arrays["edges"], labels, *split, num_classes=columns, directed=directed, outcome=outcome
    )


def _model(spec: ModelSpec, parts: Json, task: NodeTask, state: Arrays) -> GenerativeModel:
    """An untrained model of the registered parts, with the saved parameters put in."""
    problems = Problems()
    spec.check(problems)
    problems.raise_if_any()
    groups = [*spec.option_groups(), task.kind.Options]
    declared = {name: value for name, value in parts["hyperparameters"].items() if name in known_names(groups)}
    check(declared, groups, problems)
    problems.raise_if_any()
    model = spec.build(Sizes.of(task, declared), Replicas(tuple(parts["seeds"])), declared)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in state.items()})
    return model
