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
from g3nn.errors import DataError, InputError, Problems
from g3nn.estimator.answers import Answerer, Answers, Calibration, Calibrations
from g3nn.estimator.archive import AUDIT, GRAPH, PARAMETERS, Arrays, read_archive, write_archive
from g3nn.estimator.base import GraphEstimator
from g3nn.estimator.classifier import G3NNClassifier
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.numbers import NUMBER_OUTCOMES
from g3nn.estimator.prediction import Known
from g3nn.estimator.regressor import G3NNRegressor
from g3nn.estimator.trained import PanelEntry
from g3nn.model import GenerativeModel, ModelSpec
from g3nn.objective import Objective
from g3nn.options import check, known_names
from g3nn.outcomes import OUTCOMES
from g3nn.parse import Matrix
from g3nn.replicas import Replicas, Sizes
from g3nn.task import NodeTask
from g3nn.training.checks import checked_device, plain

Json = dict[str, Any]

_MASKS = ("fresh", "inferred")
"""Arrays of `Answers` that there may be."""
_DTYPES: dict[str, Any] = {"U": np.str_, "i": np.int64, "b": np.bool_}
_OBJECTS: tuple[tuple[str, type], ...] = (("model", ModelSpec), ("objective", Objective))
"""Parameters of the classifier that need not be plain values."""


def save_model(
    fitted: Fitted, parameters: Mapping[str, Any], notes: Mapping[str, Any], audit: GraphAudit | None, folder: Path
) -> None:
    """Into a new or empty folder; it appears whole or not at all."""
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
    state = {name: tensor.cpu().numpy() for name, tensor in fitted.model.state_dict().items()}
    record = {"parameters": _plain_parameters(parameters), **_record(fitted), "notes": dict(notes)}
    tensors = {PARAMETERS: state, GRAPH: _graph_arrays(fitted)}
    if audit is not None:
        tensors[AUDIT] = audit.state()
    write_archive(folder, record, tensors, problems)


def load_model(folder: str | Path) -> Any:
    """A fitted estimator from a folder that `save` wrote: a `G3NNClassifier`, or a `G3NNRegressor`.

    No code from the folder is run.
    """
    record, tensors = read_archive(Path(folder))
    try:
        return _restored(record, tensors[PARAMETERS], tensors[GRAPH], tensors.get(AUDIT))
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        raise DataError(f"{folder}: its parts do not fit together ({reason}). Fit and save the model again.") from error


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
    known, calibrations = fitted.known, fitted.calibrations
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
        "classes": {"kind": fitted.classes.dtype.kind, "values": fitted.classes.tolist()},
        "features": {"count": fitted.task.num_features, "names": known.names and list(known.names)},
        "directed": fitted.task.directed,
        "calibration": {
            **{name: _plain_scaling(part.scaling) for name, part in _each(calibrations)},
            "isolated_answer": known.answerer.isolated_answer,
            "infers": known.answerer.infers,
        },
        "training": {"epochs": fitted.epochs, "history_names": list(fitted.history_names), "panel": panel},
        "fingerprint": known.key,
    }


def _each(calibrations: Calibrations) -> list[tuple[str, Calibration]]:
    """Those that there are, by name."""
    named = ((part.name, getattr(calibrations, part.name)) for part in fields(calibrations))
    return [(name, part) for name, part in named if part is not None]


def _plain_scaling(scaling: Scaling) -> Json:
    offsets = None if scaling.offsets is None else scaling.offsets.tolist()
    return {"temperature": scaling.temperature, "offsets": offsets}


def _scaling(record: Json) -> Scaling:
    offsets = record["offsets"]
    return Scaling(record["temperature"], None if offsets is None else np.array(offsets, dtype=np.float64))


def _calibrations(record: Json, arrays: Arrays) -> Calibrations:
    there = [part.name for part in fields(Calibrations) if part.name in record]
    return Calibrations(**{name: Calibration(_scaling(record[name]), arrays[f"{name}_scores"]) for name in there})


def _graph_arrays(fitted: Fitted) -> Arrays:
    task, answers, calibrations = fitted.task, fitted.known.answers, fitted.calibrations
    arrays = {name: getattr(task, name) for name in ("edges", "labels", "train", "val")}
    arrays |= {"seen": fitted.known.seen, "history": fitted.history}
    arrays |= {"log_prob": answers.log_prob, "has_edges": answers.has_edges}
    arrays |= {f"{name}_scores": part.scores for name, part in _each(calibrations)}
    arrays |= {name: mask for name in _MASKS if (mask := getattr(answers, name)) is not None}
    if fitted.known.means is not None:
        arrays["means"] = fitted.known.means
    matrix = task.features
    if not sp.issparse(matrix):
        return {**arrays, "features": matrix}
    places = {"indptr": matrix.indptr.astype(np.int64), "indices": matrix.indices.astype(np.int64)}
    return {**arrays, **places, "data": matrix.data}


def _restored(record: Json, state: Arrays, arrays: Arrays, audit: Arrays | None) -> GraphEstimator:
    given = dict(record["parameters"])
    for name, kind in _OBJECTS:
        if isinstance(given[name], dict):
            given[name] = kind(**given[name])
    outcome = record.get("outcome", "classes")
    estimator: GraphEstimator = G3NNRegressor(**given) if outcome in NUMBER_OUTCOMES else G3NNClassifier(**given)
    classes = np.array(record["classes"]["values"], dtype=_DTYPES[record["classes"]["kind"]])
    task = _task(arrays, record["features"]["count"], len(classes), record["directed"], outcome)
    parts = record["model"]
    spec = ModelSpec(parts["posterior"], parts["likelihood"], parts["prior"])
    model = _model(spec, parts, replace(task, train=arrays["seen"]), state)
    names = record["features"]["names"]
    calibration, training = record["calibration"], record["training"]
    answerer = Answerer(model, _device(given["device"]), calibration["isolated_answer"], calibration["infers"])
    answers = Answers(arrays["log_prob"], arrays["has_edges"], *(arrays.get(name) for name in _MASKS))
    columns = None if names is None else tuple(names)
    known = Known(task, arrays["seen"], answerer, answers, columns, arrays.get("means"), record["fingerprint"])
    for entry in training["panel"]:
        entry["val_loss"] = math.inf if entry["val_loss"] is None else entry["val_loss"]
    fitted = Fitted(
        classes,
        spec,
        parts["objective"],
        parts["hyperparameters"],
        tuple(parts["seeds"]),
        tuple(PanelEntry(**entry) for entry in training["panel"]),
        training["epochs"],
        arrays["history"],
        tuple(training["history_names"]),
        known,
        _calibrations(calibration, arrays),
        bool(record.get("flat", True)),
    )
    estimator.restore(fitted, record["notes"], audit)
    return estimator


def _task(arrays: Arrays, d: int, K: int, directed: bool, outcome: str) -> NodeTask:
    labels = arrays["labels"]
    features: Matrix
    if "features" in arrays:
        features = arrays["features"]
    else:
        features = sp.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(len(labels), d))
    split = arrays["train"], arrays["val"]
    return NodeTask.build(features, arrays["edges"], labels, *split, num_classes=K, directed=directed, outcome=outcome)


def _model(spec: ModelSpec, parts: Json, task: NodeTask, state: Arrays) -> GenerativeModel:
    """An untrained model of the registered parts, with the saved parameters put in."""
    problems = Problems()
    spec.check(problems)
    problems.raise_if_any()
    groups = [*spec.option_groups(), OUTCOMES[task.outcome].Options]
    declared = {name: value for name, value in parts["hyperparameters"].items() if name in known_names(groups)}
    check(declared, groups, problems)
    problems.raise_if_any()
    model = spec.build(Sizes.of(task, declared), Replicas(tuple(parts["seeds"])), declared)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in state.items()})
    return model


def _device(name: str) -> torch.device:
    """What the model was fitted with, if there is such a thing here."""
    return checked_device(name if torch.cuda.is_available() else "cpu", Problems())
