"""A fitted model in a folder of one JSON record and some safetensors files, and back. Reading runs no code from it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from g3nn.base.errors import DataError, Problems
from g3nn.base.folders import check_new_folder, mend, new_folder
from g3nn.base.options import check, known_names
from g3nn.estimator.answers import Answerer, Calibration
from g3nn.estimator.asked_prior import SavedPrior, feature_model
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.members import Answers, Member, Network, Parameters, Propagation, Tabular, with_belief_columns
from g3nn.estimator.panel import PanelEntry
from g3nn.graph.calibrate import Scaling
from g3nn.graph.marks import Marks
from g3nn.graph.outcomes import OUTCOMES, RealOptions, ValueOptions, Warp
from g3nn.graph.outcomes.labels import name_array
from g3nn.graph.relations import Relations
from g3nn.graph.tables.fitted_tables import FittedTables
from g3nn.graph.task import NodeTask
from g3nn.graph.transforms import FeatureTransform, Form
from g3nn.model.generative import POSTERIOR, REGISTRIES, SIMILAR, GenerativeModel, ModelSpec
from g3nn.model.likelihoods.near import NearValues
from g3nn.model.objective import Objective
from g3nn.model.replicas import Replicas, Sizes
from g3nn.model.tabular import CrossFitted, FoldModel, Linear, Neighbourhood, PathColumns, Paths, Trees
from g3nn.model.terms import TERM_NAMES
from g3nn.queries import GraphAudit
from g3nn.queries.edge_trust import EdgeTrust
from g3nn.queries.wrong_labels import JudgedLabels
from g3nn.training.checks import checked_device, plain

FORMAT, VERSION = "g3nn-model", 5
FIRST = 3
"""The oldest version of the format that is read: that of g3nn 0.2.0, the first release."""
RECORD, PARAMETERS, GRAPH, AUDIT = "model.json", "model.safetensors", "graph.safetensors", "audit.safetensors"
MODEL = "model"
"""The folder of the model inside a folder of results."""
Arrays = Mapping[str, np.ndarray]
Json = dict[str, Any]
Tensors = dict[str, Arrays]


def _from_3(record: Json, tensors: Tensors) -> tuple[Json, Tensors]:
    """Learning curves got a term for channels, which is zero where there are none; whether validation nodes were
    trained on in the end no longer follows from the parameters."""
    fitted = {**record["fitted"], "refitted": bool(record["parameters"]["refit"])}
    return {**record, "fitted": fitted}, _with_term("channels", tensors)


def _from_4(record: Json, tensors: Tensors) -> tuple[Json, Tensors]:
    """Learning curves got a term for how unevenly classes are shared out."""
    return record, _with_term("evenness", tensors)


def _with_term(name: str, tensors: Tensors) -> Tensors:
    """With a term in learning curves that was zero."""
    place, arrays = TERM_NAMES.index(name), tensors[GRAPH]
    longer = {key: np.insert(array, place, 0, axis=1) for key, array in arrays.items() if key.endswith(".history")}
    return {**tensors, GRAPH: {**arrays, **longer}}


MIGRATIONS: dict[int, Callable[[Json, Tensors], tuple[Json, Tensors]]] = {3: _from_3, 4: _from_4}
"""For each version that was released before the current one: what turns the content of a folder into that of the next.
Whoever raises VERSION adds one here, and the folder of a model to tests/released."""
_NUMBERS = {"BOOL", "F16", "F32", "F64", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64"}
"""What numpy has, of what a safetensors file may hold."""
_READ = f"{FIRST} to {VERSION}" if FIRST < VERSION else f"{VERSION}"
_AGAIN = "Take a fresh copy of the folder, or fit and save the model again."


def write_archive(folder: Path, record: Json, tensors: Tensors, problems: Problems) -> None:
    """Raises for all problems, those found before among them; else the folder appears whole or not at all."""
    check_new_folder(folder, problems, "folder")
    problems.raise_if_any()
    with new_folder(folder) as draft:
        for name, arrays in tensors.items():
            _write_tensors(draft / name, arrays)
        files = {name: _checksum(draft / name) for name in tensors}
        content = {"format": FORMAT, "version": VERSION, **record, "files": files}
        text = json.dumps({**content, "checksum": _own_checksum(content)}, indent=1)
        (draft / RECORD).write_text(text + "\n", encoding="utf-8")


def read_archive(folder: Path) -> tuple[Json, Tensors]:
    """The record and the arrays of each file, or a `DataError` that says what is wrong and what to do. What an older
    release wrote comes in the current version.

    folder: of a model, or of results with a model inside.
    """
    mend(folder)
    try:
        inside = folder / MODEL
        return _read(inside if (inside / RECORD).is_file() else folder)
    except OSError as error:
        advice = "Check who may read it, or take a fresh copy."
        raise DataError(f"{error.filename or folder}: cannot be read: {error.strerror or error}. {advice}") from error


def _write_tensors(path: Path, arrays: Arrays) -> None:
    path.touch()
    rights = path.stat().st_mode
    try:
        save_file({key: np.ascontiguousarray(array) for key, array in arrays.items()}, path)
    except SafetensorError as error:
        raise OSError(str(error)) from error
    path.chmod(rights)  # safetensors makes files that are private to one user.


def _read(folder: Path) -> tuple[Json, Tensors]:
    record = _read_record(folder)
    files = record["files"]
    there = {entry.name for entry in folder.iterdir()} - {RECORD}
    absent, extra = sorted(set(files) - there), sorted(there - set(files))
    if absent:
        raise DataError(f"{folder}: {', '.join(absent)} is missing. {_AGAIN}")
    if extra:
        found = ", ".join(extra[:5])
        raise DataError(f"{folder}: {found} was not written with the model. Move it away, or take a fresh copy.")
    changed = [name for name in files if not (folder / name).is_file() or _checksum(folder / name) != files[name]]
    if changed:
        raise DataError(f"{folder}: {', '.join(changed)} was damaged or changed after it was saved. {_AGAIN}")
    try:
        tensors = {name: _read_tensors(folder / name) for name in files}
    except (SafetensorError, ValueError) as error:
        raise DataError(f"{folder}: {error}. {_AGAIN}") from error
    for version in range(record["version"], VERSION):
        record, tensors = MIGRATIONS[version](record, tensors)
    return record, tensors


def _read_tensors(path: Path) -> Arrays:
    with safe_open(path, "np") as file:
        for name in file.keys():  # noqa: SIM118 - no mapping
            if (kind := file.get_slice(name).get_dtype()) not in _NUMBERS:
                raise ValueError(f"{path.name}: {name} holds numbers of the kind {kind}, which no g3nn writes")
    return load_file(path)


def _read_record(folder: Path) -> Json:
    path = folder / RECORD
    if not path.is_file():
        raise DataError(f"{folder}: there is no {RECORD} in it. Name a folder that `save` of an estimator wrote.")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        checksum = _own_checksum(record) if isinstance(record, dict) else ""
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({error}). {_AGAIN}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DataError(f"{path}: is not the record of a g3nn model. Name a folder that `save` of an estimator wrote.")
    version = record.get("version")
    if isinstance(version, int) and version > VERSION:
        raise DataError(f"{path}: written by a newer g3nn (format {version}, this one reads {_READ}). Upgrade g3nn.")
    if isinstance(version, int) and 0 < version < FIRST:
        raise DataError(f"{path}: written by an older g3nn (format {version}, this one reads {_READ}). {_AGAIN}")
    if (
        not isinstance(version, int)
        or not FIRST <= version <= VERSION
        or record.get("checksum") != checksum
        or not isinstance(record.get("files"), dict)
    ):
        raise DataError(f"{path}: was damaged or changed after it was saved. {_AGAIN}")
    return record


def _own_checksum(record: Mapping[str, Any]) -> str:
    content = {name: value for name, value in record.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_TABULAR = (CrossFitted, FoldModel, Linear, Neighbourhood, PathColumns, Paths, Trees, *OUTCOMES.own.values())
_ESTIMATOR = (Answers, Calibration, EdgeTrust, Form, JudgedLabels, PanelEntry, SavedPrior)
_OTHERS = (Marks, ModelSpec, Objective, RealOptions, Relations, Scaling, ValueOptions, Warp)
_SAVED_AS: dict[type, str] = {FeatureTransform: "View"}
"""Classes that have another name in the files."""
_KINDS: dict[str, Callable[..., Any]] = {
    **{kind.__name__: kind for kind in (*_TABULAR, *_ESTIMATOR, *_OTHERS)},
    **{name: kind for kind, name in _SAVED_AS.items()},
    "NodeTask": lambda val, unit=None, **rest: _task(val, unit, rest),
    "Propagation": partial(dict, kind=Propagation),
    "Tabular": partial(dict, kind=Tabular),
    "Calibrations": lambda **kinds: {kind: one for kind, one in kinds.items() if one is not None},
    "float": float,
    "texts": lambda *values: name_array(values),
    "sparse": lambda data, indices, indptr, shape: sp.csr_array((data, indices, indptr), shape=shape),
}
"""What makes the objects of a record from their parts. Nothing else is made when a model is loaded."""
_LATER = (
    *("warps", "scored", "filled", "repeats", "unit", "whole", "held_back", "relations", "marks"),
    *(_APART := ("neighbourhood", "unused")),
)
"""Scales, the classes of conformal scores, which features were missing, whether repeats of edges are weights, the nodes
whose labels set the unit, what was learned from all labels, and nodes that were answered by a part of it; types of
edges and their columns, and of a member what it reads of a neighbourhood and which types it leaves out."""
_NOT_SAVED = ("problem", "trials", "updated")
"""Parts of a fitted model that exist only in the process in which it was fitted."""
_SHARED = tuple(field.name for field in fields(Member) if field.name not in ("infers", "held_out", *_APART))
"""What all kinds of members have in a record."""
_FINITE = {
    "Linear": ("coef", "intercept"),
    "Scaling": ("temperature", "offsets", "base"),
    "Trees": ("value", "baseline"),
}
"""Parts without which every answer would be NaN."""


def save_model(
    fitted: Fitted, parameters: Parameters, notes: Parameters, audit: GraphAudit | None, folder: Path
) -> None:
    """Into a new or empty folder, which appears whole or not at all."""
    problems = Problems()
    specs = [network.spec for network in fitted.answerer.networks]
    for part in {part for spec in specs for part in (spec.posterior, spec.likelihood, spec.prior, *spec.channels)}:
        if part is not None and not isinstance(part, str):
            name = getattr(part, "__name__", type(part).__name__)
            advice = "Loading runs only code of g3nn and of packages that register it: see docs/extending.md."
            problems.add("model", f"{name}, a part of your own", "models made of registered parts", advice)
    try:
        json.dumps(notes)
    except (TypeError, ValueError) as error:
        problems.add("notes_", error, "plain values: texts, numbers, lists and mappings of them")
    given = dict(parameters)
    if not isinstance(plain(given["random_state"]), int):
        given["random_state"] = None  # It has moved on since the fit.
    if feature_model(given["prior"]) is not None:
        given["prior"] = SavedPrior.of(given["prior"])  # What it learned is saved, but no object of another library.
    if isinstance(given.get("class_weight"), Mapping):
        given["class_weight"] = tuple(given["class_weight"].items())  # Keys in JSON are always texts.
    arrays: dict[str, np.ndarray] = {}
    parts: Json = {"parameters": given, "fitted": _fields(fitted, "answerer", "tables", *_NOT_SAVED)}
    kinds = {kind: fitted.answerer.calibrations.get(kind) for kind in ("linked", "isolated", "new", "inferred")}
    parts["answerer"] = {"outcome": fitted.outcome, "calibrations": kinds}
    parts["members"] = tuple(_member_fields(member) for member in fitted.answerer.members)
    parts["trusts"] = tuple(
        {one.trust.share: one.trust for one in fitted.answerer.members if one.trust is not None}.values()
    )
    record = {**_packed(parts, "", arrays), "notes": dict(notes)}
    for member, packed in zip(fitted.answerer.members, record["members"][1], strict=True):
        if not isinstance(member, Network):
            packed["learned"] = [type(member).__name__, packed["learned"]]
    record["answerer"]["calibrations"] = ["Calibrations", record["answerer"]["calibrations"]]
    record["tables"] = None if fitted.tables is None else fitted.tables.to_json()
    record["packages"] = _packages(specs, fitted.task.outcome)
    state = {
        f"{place}.{name}": tensor.cpu().numpy()
        for place, network in enumerate(fitted.answerer.networks)
        for name, tensor in network.model.state_dict().items()
    }
    tensors: dict[str, Arrays] = {PARAMETERS: state, GRAPH: arrays}
    if audit is not None:
        tensors[AUDIT] = audit.state()
    write_archive(folder, record, tensors, problems)


def restored(record: Json, state: Arrays, arrays: Arrays) -> tuple[Json, Fitted]:
    """The parameters of a saved estimator and what its fit learned, from the parts of its folder."""
    names = ("parameters", "fitted", "answerer", "members", "trusts")
    parameters, parts, rest, members, trusts = (_unpacked(record[name], arrays) for name in names)
    shared = {None: None, **{one.share: one for one in trusts}}
    for member in members:
        member["trust"] = shared[member["trust"]]
    if isinstance(parameters.get("class_weight"), tuple):
        parameters["class_weight"] = dict(parameters["class_weight"])
    task = parts["task"]
    _check_names(parts["columns"], task)
    device = checked_device(parameters["device"] if torch.cuda.is_available() else "cpu", Problems())
    tables = None if record["tables"] is None else FittedTables.from_json(record["tables"])
    if not members:
        raise ValueError("no member")
    if task.beliefs is None and (parts["prior"] is not None or any(member["beliefs"] for member in members)):
        raise ValueError("beliefs are looked at, and there are none")
    answerer = Answerer(tuple(_members(members, replace(task, train=parts["seen"]), state)), device=device, **rest)
    fitted = _checked(Fitted(answerer=_checked(answerer), tables=tables, **parts))
    _check_answers(fitted)
    return parameters, fitted


def _check_names(names: Any, task: NodeTask) -> None:
    """Of classes or columns: different texts, whole numbers or booleans."""
    sound = isinstance(names, np.ndarray) and names.shape == (task.num_classes,)
    sound = sound and (names.dtype.kind in "biuU" or all(isinstance(name, str) for name in names))
    sound = sound and len(set(names.tolist())) == len(names)
    if not sound or (names.dtype.kind == "u" and names.max() > np.iinfo(np.int64).max):
        raise ValueError(f"columns that name no {task.num_classes} {task.kind.columns_title}")


def _check_answers(fitted: Fitted) -> None:
    """About every node, in the form of the outcome; every calibration takes them."""
    answers, outcome, task = fitted.answers, fitted.answerer.outcome, fitted.task
    masks = [mask for mask in (answers.isolated, answers.new, answers.inferred) if mask is not None]
    sound = all(mask.shape == (task.num_nodes,) and mask.dtype == bool for mask in masks)
    sound = sound and (outcome.name, outcome.columns) == (task.outcome, task.num_classes)
    if not sound or answers.answer.shape[:1] != (task.num_nodes,):
        raise ValueError(f"answers that are not those of {task.num_nodes} nodes")
    if fitted.filled is not None and fitted.filled.shape != task.features.shape:
        raise ValueError(f"values that were filled in, which are not among {task.num_features} features of each node")
    for calibration in fitted.answerer.calibrations.values():
        if calibration.scored is not None and calibration.scored.shape != calibration.scores.shape:
            raise ValueError("conformal scores of other classes")
        mean, _ = outcome.moments(outcome.scaled(answers.answer[:1], calibration.scaling))
        if mean.shape != (1, task.num_classes):
            raise ValueError(f"answers that are not about {task.num_classes} {task.kind.columns_title}")


def _member_fields(member: Member) -> Json:
    """What all kinds of members have, and as `learned` what only one of them has, without the parameters of a network,
    which go into a file of their own. Of the weights of edges, which several members share, only the share."""
    parts = _fields(member, "model", "held_out")
    shared = {name: parts.pop(name) for name in _SHARED}
    return {**shared, "trust": None if member.trust is None else member.trust.share, "learned": parts}


def _members(members: Sequence[Json], task: NodeTask, state: Arrays) -> Iterator[Member]:
    """Networks get the saved parameters; others are whole already."""
    place = 0
    for member in members:
        one, shared = member["learned"], {name: member[name] for name in _SHARED}
        if "kind" in one:
            yield _checked(one.pop("kind")(**shared, **one))
            continue
        own = {name.partition(".")[2]: array for name, array in state.items() if name.startswith(f"{place}.")}
        seen = task.without_types(one.get("unused", ()))
        if one.get("neighbourhood") is not None:
            seen = replace(seen, features=shared["view"].apply(task.features))
            seen = replace(seen, features=one["neighbourhood"].apply(seen))
        seen = with_belief_columns(seen, task.outcome_model()) if member["beliefs"] else seen
        model = _model(one["spec"], one["hyperparameters"], one["seeds"], seen, own)
        network = Network(**shared, **one, model=model)
        if network.isolated_answer not in (POSTERIOR, SIMILAR) and network.model.prior is None:
            raise ValueError("a prior answers for isolated nodes, and there is none")
        if network.infers and not (network.refined and isinstance(network.model.likelihood, NearValues)):
            raise ValueError("scores of new nodes are inferred, and there is nothing to infer them by")
        yield _checked(network)
        place += 1


def _fields(value: Any, *without: str) -> Json:
    """The fields of a dataclass by name; without those that files once did not have, where they hold nothing."""
    found = {field.name: getattr(value, field.name) for field in fields(value) if field.name not in without}
    later = {name for name in _LATER if isinstance(found.get(name), tuple | bool | None) and not found.get(name)}
    return {name: part for name, part in found.items() if name not in later}


def _packed(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """A value as JSON takes it. Arrays of numbers go into `arrays`, by the names of the fields that lead to them; an
    object becomes a list of its kind and a mapping or list of its parts."""
    if isinstance(value, np.ndarray) and value.dtype.kind not in "UO":
        arrays[name] = value
        return ["array", [name]]
    if isinstance(value, np.ndarray):
        return ["texts", value.tolist()]
    if sp.issparse(value):
        parts: Any = {"data": value.data, "indices": value.indices, "indptr": value.indptr, "shape": value.shape}
        return ["sparse", _packed(parts, name, arrays)]
    if is_dataclass(value) and not isinstance(value, type):
        kind = _SAVED_AS.get(type(value), type(value).__name__)
        return [kind, _packed(_fields(value), name, arrays)]
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
        return _checked(_maker(kind)(**_unpacked(parts, arrays)))
    items = tuple(_unpacked(part, arrays) for part in parts)
    return items if kind == "tuple" else _checked(_KINDS[kind](*items))


def _task(val: np.ndarray, unit: np.ndarray | None, rest: Json) -> NodeTask:
    if unit is None:
        return NodeTask.build(val=val if len(val) else None, **rest)
    # Where folds took turns, values need not differ among those that were left to train on in the end.
    task = NodeTask.build(val=None, **rest | {"train": unit})
    split = {"train": rest["train"], "val": val}
    for name, nodes in split.items():
        if not np.isin(nodes, unit).all():
            raise ValueError(f"{name} nodes whose labels are not known")
    return replace(task, **split, unit=unit)


def _maker(kind: str) -> Callable[..., Any]:
    """What makes an object of this kind: if g3nn does not know it, an outcome of another package or its options."""
    if kind in _KINDS:
        return _KINDS[kind]
    others = [part for outcome in OUTCOMES.values() for part in (outcome, outcome.Options)]
    return {part.__name__: part for part in others}[kind]


def _checked(made: Any) -> Any:
    """An object of a record, every field of which holds what its annotation says."""
    kind: type = type(made)
    for name, value in _fields(made).items() if is_dataclass(kind) else ():
        if not _fits(value, _annotations(kind).get(name, Any)):
            raise TypeError(f"{kind.__name__} {name} is a {type(value).__name__}")
        if name in _FINITE.get(kind.__name__, ()) and value is not None:
            _check_finite({f"{kind.__name__} {name}": value})
    return made


@cache
def _annotations(kind: type) -> Json:
    try:
        return get_type_hints(kind)
    except NameError:
        return {}  # Another package may import some names for a type checker alone.


def _fits(value: Any, hint: Any) -> bool:
    """Whether an annotation allows a value. Whole numbers stand for any number and for truth, truth for no number."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if hint is Any or not isinstance(kind, type):
        return True
    if kind in (bool, int, float):
        return isinstance(value, int | kind) and (kind is bool or not isinstance(value, bool))
    if not isinstance(value, kind):
        return False
    if isinstance(value, Mapping) and parts:
        return all(_fits(key, parts[0]) and _fits(one, parts[1]) for key, one in value.items())
    return not isinstance(value, tuple) or not parts or all(_fits(one, parts[0]) for one in value)


def _packages(specs: Sequence[ModelSpec], outcome: str) -> list[list[str]]:
    """The parts of a model that other packages offer: kind, name, package and its version."""
    parts = {(kind, getattr(spec, kind)) for spec in specs for kind in spec.components()}
    parts |= {("channel", name) for spec in specs for name in spec.channels}
    offered = {part: REGISTRIES[part[0]].package(part[1]) for part in {*parts, ("outcome", outcome)}}
    return sorted([*part, *package] for part, package in offered.items() if package is not None)


def _model(spec: ModelSpec, options: Json, seeds: tuple[int, ...], task: NodeTask, state: Arrays) -> GenerativeModel:
    """An untrained model of the registered parts, with the saved parameters put in.

    None may be larger than the largest one that was saved, since options from a file may ask for any size.
    """
    problems = Problems()
    spec.check(problems)
    problems.raise_if_any()
    groups = [*spec.option_groups(), task.kind.Options]
    declared = {name: value for name, value in options.items() if name in known_names(groups)}
    check(declared, groups, problems)
    problems.raise_if_any()
    _check_finite(state)
    most = max((array.size for array in state.values()), default=0)
    sizes = Sizes.of(task, {**declared, "batch": options.get("batch", 0)})
    model = spec.build(sizes, Replicas(seeds, most=most), declared)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in state.items()})
    return model


def _check_finite(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if not np.isfinite(value).all():
            raise ValueError(f"{name} holds values that are not finite")
