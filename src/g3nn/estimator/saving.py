"""A fitted model in a folder, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from g3nn.audit import GraphAudit
from g3nn.calibrate import Scaling
from g3nn.data.tables.fitted_tables import FittedTables
from g3nn.errors import Problems
from g3nn.estimator.answers import Answerer, Answers, Calibration, Calibrations
from g3nn.estimator.archive import AUDIT, GRAPH, PARAMETERS, Arrays, write_archive
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.forms import Form
from g3nn.estimator.panel import PanelEntry
from g3nn.model import GenerativeModel, ModelSpec
from g3nn.objective import Objective
from g3nn.options import check, known_names
from g3nn.replicas import Replicas, Sizes
from g3nn.task import NodeTask
from g3nn.training.checks import checked_device, plain

Json = dict[str, Any]

_KINDS: dict[str, Callable[..., Any]] = {
    **{kind.__name__: kind for kind in (Answers, Calibration, Calibrations, Form, ModelSpec, PanelEntry, Scaling)},
    "Objective": Objective,
    "NodeTask": lambda val, **rest: NodeTask.build(val=val if len(val) else None, **rest),
    "float": float,
    "texts": lambda *values: np.array(values, dtype=np.str_),
    "sparse": lambda data, indices, indptr, shape: sp.csr_array((data, indices, indptr), shape=shape),
}
"""What makes the objects of a record from their parts. Nothing else is made when a model is loaded."""


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
    given = dict(parameters)
    if not isinstance(plain(given["random_state"]), int):
        given["random_state"] = None  # It has moved on since the fit.
    if isinstance(given.get("class_weight"), Mapping):
        given["class_weight"] = tuple(given["class_weight"].items())  # Keys in JSON are always texts.
    arrays: dict[str, np.ndarray] = {}
    parts = {"parameters": given, "fitted": _fields(fitted, "answerer", "tables")}
    parts["answerer"] = _fields(fitted.answerer, "model", "device")
    record = {**_packed(parts, "", arrays), "notes": dict(notes)}
    record["tables"] = None if fitted.tables is None else fitted.tables.to_json()
    state = {name: tensor.cpu().numpy() for name, tensor in fitted.answerer.model.state_dict().items()}
    tensors: dict[str, Arrays] = {PARAMETERS: state, GRAPH: arrays}
    if audit is not None:
        tensors[AUDIT] = audit.state()
    write_archive(folder, record, tensors, problems)


def restored(record: Json, state: Arrays, arrays: Arrays) -> tuple[Json, Fitted]:
    """The parameters of a saved estimator and what its fit learned, from the parts of its folder."""
    parameters, parts, rest = (_unpacked(record[name], arrays) for name in ("parameters", "fitted", "answerer"))
    if isinstance(parameters.get("class_weight"), tuple):
        parameters["class_weight"] = dict(parameters["class_weight"])
    task = parts["task"]
    if len(parts["columns"]) != task.num_classes:
        raise ValueError(f"{len(parts['columns'])} names for {task.num_classes} {task.kind.columns_title}")
    model = _model(parts["spec"], parts["hyperparameters"], parts["seeds"], replace(task, train=parts["seen"]), state)
    device = checked_device(parameters["device"] if torch.cuda.is_available() else "cpu", Problems())
    tables = None if record["tables"] is None else FittedTables.from_json(record["tables"])
    return parameters, Fitted(answerer=Answerer(model, device, **rest), tables=tables, **parts)


def _fields(value: Any, *without: str) -> Json:
    """The fields of a dataclass by name."""
    return {field.name: getattr(value, field.name) for field in fields(value) if field.name not in without}


def _packed(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """A value as JSON takes it. Arrays of numbers go into `arrays`, by the names of the fields that lead to them; an
    object becomes a list of its kind and a mapping or list of its parts."""
    if isinstance(value, np.ndarray) and value.dtype.kind != "U":
        arrays[name] = value
        return ["array", [name]]
    if isinstance(value, np.ndarray):
        return ["texts", value.tolist()]
    if sp.issparse(value):
        parts: Any = {"data": value.data, "indices": value.indices, "indptr": value.indptr, "shape": value.shape}
        return ["sparse", _packed(parts, name, arrays)]
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, _packed(_fields(value), name, arrays)]
    if isinstance(value, Mapping):
        return {key: _packed(part, f"{name}.{key}".lstrip("."), arrays) for key, part in value.items()}
    value = plain(value)
    if isinstance(value, tuple):
        return ["tuple", [_packed(part, f"{name}.{place}", arrays) for place, part in enumerate(value)]]
    return value if not isinstance(value, float) or math.isfinite(value) else ["float", [str(value)]]


def _unpacked(value: Any, arrays: Arrays) -> Any:
    """What `_packed` was given."""
    if isinstance(value, dict):
        return {name: _unpacked(part, arrays) for name, part in value.items()}
    if not isinstance(value, list):
        return value
    kind, parts = value
    if kind == "array":
        return arrays[parts[0]]
    if isinstance(parts, dict):
        return _KINDS[kind](**_unpacked(parts, arrays))
    items = tuple(_unpacked(part, arrays) for part in parts)
    return items if kind == "tuple" else _KINDS[kind](*items)


def _model(spec: ModelSpec, options: Json, seeds: tuple[int, ...], task: NodeTask, state: Arrays) -> GenerativeModel:
    """An untrained model of the registered parts, with the saved parameters put in."""
    problems = Problems()
    spec.check(problems)
    problems.raise_if_any()
    groups = [*spec.option_groups(), task.kind.Options]
    declared = {name: value for name, value in options.items() if name in known_names(groups)}
    check(declared, groups, problems)
    problems.raise_if_any()
    model = spec.build(Sizes.of(task, declared), Replicas(seeds), declared)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in state.items()})
    return model
