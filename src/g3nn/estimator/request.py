"""What a fit is asked to do: the estimator's parameters and the caller's data, checked together."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from g3nn.errors import Problems
from g3nn.estimator.candidates import Candidate, candidates, check_candidates
from g3nn.estimator.labels import Labels, check_train, read_labels, split_validation
from g3nn.estimator.nodes import Nodes
from g3nn.estimator.numbers import NUMBER_OUTCOMES, Numbers, check_numbers, is_table, read_numbers, split_numbers
from g3nn.estimator.reading import Features, read_edges, read_features
from g3nn.parse import UNKNOWN, node_indices, to_numpy

MISSING = ("error", "impute")
COMMON = ("hidden", "lr", "weight_decay", "epochs", "patience")
"""Parameters of the estimator that are options of every model."""


@dataclass(frozen=True, eq=False)
class Request:
    """Checked. `val` holds the validation nodes; features may still have missing values."""

    features: Features
    edges: np.ndarray
    labels: Labels | Numbers
    val: np.ndarray
    directed: bool
    candidates: tuple[Candidate, ...]
    common: dict[str, Any]
    seeds: tuple[int, ...]

    @property
    def train(self) -> np.ndarray:
        return np.setdiff1d(self.labels.known, self.val)


@dataclass(frozen=True, eq=False)
class Given:
    """The caller's data taken apart, not checked. nodes: those that y speaks of, None for all."""

    X: Any
    y: Any
    edges: Any
    val: Any
    directed: bool
    nodes: np.ndarray | None = None


def read_request(parameters: Mapping[str, Any], X: Any, y: Any, edges: Any, val: Any) -> Request:
    """Raises one error that lists every problem with the parameters and with the data."""
    problems = Problems()
    _check_parameters(parameters, problems)
    given = take_apart(X, y, edges, val, bool(parameters["directed"]), problems, "outcome" in parameters)
    missing = parameters["missing"] if parameters["missing"] in MISSING else "error"
    features = read_features(given.X, missing, problems)
    labels, pairs, chosen, n = None, None, np.zeros(0, dtype=np.int64), 0
    outcome = wanted_outcome(parameters, given.y, problems)
    random = _random(parameters["random_state"], problems)
    if features is not None:
        n = features.num_nodes
        pairs = read_edges(given.edges, n, given.directed, problems)
        labels = _labels(given, n, outcome, problems)
        if labels is not None:
            chosen = _validation(given, labels, parameters["validation"], random, problems)
    options = parameters["options"] if isinstance(parameters["options"], Mapping) else {}
    K, balance = 2, 1.0
    if labels is not None and pairs is not None:
        seen = labels.known if parameters["inductive"] else None
        K, balance = len(labels.classes), _edges_per_node(pairs, n, seen, np.setdiff1d(labels.known, chosen))
    tried = candidates(parameters["model"], parameters["objective"], options, K, problems, outcome, balance)
    # Answers are calibrated before they are given, so they are stopped by how good they will be then.
    common = {**{name: parameters[name] for name in COMMON}, "calibrated": True}
    check_candidates(tried, common, parameters["device"], problems, outcome)
    problems.raise_if_any()
    assert features is not None
    assert labels is not None
    assert pairs is not None
    first = int(random.randint(2**31 - 1))
    seeds = tuple(range(first, first + int(parameters["ensemble"])))
    return Request(features, pairs, labels, chosen, given.directed, tried, common, seeds)


def take_apart(
    X: Any, y: Any, edges: Any, val: Any, directed: bool, problems: Problems, numbers: bool = False
) -> Given:
    """Nodes and a PyG `Data` bring their own edges, and `Data` its labels and masks too.

    numbers: whether labels of one column are numbers, not classes.
    """
    if isinstance(X, Nodes):
        if edges is not None:
            problems.add("edges", "edges beside Nodes", "nothing", "Nodes hold their own edges.")
        return Given(X.X, y, X.edges, val, directed or X.directed, X.index)
    if not (type(X).__module__.startswith("torch_geometric.") and hasattr(X, "edge_index")):
        return Given(X, y, edges, val, directed)
    for name, value in (("y", y), ("edges", edges)):
        if value is not None:
            problems.add(name, f"{name} beside a PyG Data", "nothing", "The Data holds its own.")
    for name in ("x", "y"):
        if X.get(name) is None:
            problems.add(f"data.{name}", "nothing", "a tensor", f"Set data.{name} first.")
    problems.raise_if_any()
    labels = to_numpy(X.y)
    train, own_val = X.get("train_mask"), X.get("val_mask")
    if train is not None and labels.ndim in (1, 2):
        seen = [to_numpy(mask) for mask in (train, own_val) if mask is not None]
        # Whatever else has a label is there to be tested on.
        if all(mask.shape == labels.shape[:1] for mask in seen):
            labels = _told(labels, np.any(seen, axis=0), numbers)
        else:
            problems.add("data.train_mask", f"shape {tuple(train.shape)}", f"{labels.shape[:1]}", "Choose one split.")
            own_val = None
    return Given(X.x, labels, X.edge_index, own_val if val is None else val, directed)


def _told(labels: np.ndarray, seen: np.ndarray, numbers: bool) -> np.ndarray:
    """The labels of the nodes `seen` (n,), and none of the others."""
    if labels.ndim == 1 and not numbers:
        return np.where(seen, labels, UNKNOWN)
    values = labels.astype(np.float64)
    values[~seen] = np.nan
    return values


def wanted_outcome(parameters: Mapping[str, Any], y: Any, problems: Problems) -> str:
    """What a regressor was told; for a classifier tags if y has columns, else classes."""
    if "outcome" not in parameters:
        return "tags" if y is not None and is_table(y) else "classes"
    problems.name("outcome", parameters["outcome"], NUMBER_OUTCOMES)
    return parameters["outcome"] if parameters["outcome"] in NUMBER_OUTCOMES else NUMBER_OUTCOMES[0]


def _labels(given: Given, n: int, outcome: str, problems: Problems) -> Labels | Numbers | None:
    if given.y is None:
        unknown = "-1, None or NaN" if outcome == "classes" else "None or NaN"
        problems.add("y", "nothing", f"a label for some nodes; {unknown} for the others")
        return None
    count = n if given.nodes is None else len(given.nodes)
    found: Labels | Numbers | None
    if outcome == "classes":
        found = read_labels(given.y, count, problems)
    else:
        found = read_numbers(given.y, count, outcome, problems)
    if found is None or given.nodes is None:
        return found
    unknown_label = UNKNOWN if outcome == "classes" else np.nan
    codes = np.full((n, *found.codes.shape[1:]), unknown_label, dtype=found.codes.dtype)
    codes[given.nodes] = found.codes
    return replace(found, codes=codes)


def _edges_per_node(edges: np.ndarray, n: int, seen: np.ndarray | None, train: np.ndarray) -> float:
    """E / |U| of the graph that is trained on: all nodes, or those `seen`."""
    if seen is None:
        return edges.shape[1] / max(n - len(train), 1)
    return int(np.isin(edges, seen).all(axis=0).sum()) / max(len(seen) - len(train), 1)


def _validation(
    given: Given, labels: Labels | Numbers, share: Any, random: np.random.RandomState, problems: Problems
) -> np.ndarray:
    none = np.zeros(0, dtype=np.int64)
    if given.val is None:
        if not is_share(share):
            return none
        if isinstance(labels, Numbers):
            return split_numbers(labels, share, random, problems)
        return split_validation(labels, share, random, problems)
    chosen = node_indices("val", given.val, len(labels.codes), problems)
    if chosen is None:
        return none
    if isinstance(labels, Numbers):
        check_numbers(labels, chosen, problems)
    else:
        check_train(labels, chosen, problems)
    return chosen


def _check_parameters(parameters: Mapping[str, Any], problems: Problems) -> None:
    ensemble, share = parameters["ensemble"], parameters["validation"]
    if isinstance(ensemble, bool) or not isinstance(ensemble, int | np.integer) or ensemble < 1:
        problems.add("ensemble", repr(ensemble), "a whole number of at least 1")
    if not is_share(share):
        problems.add("validation", repr(share), "a share strictly between 0 and 1")
    problems.name("missing", parameters["missing"], MISSING)
    for name in ("refit", "inductive", "directed", "verbose"):
        if not isinstance(parameters[name], bool | np.bool_ | int):
            problems.add(name, repr(parameters[name]), "true or false")
    _check_options(parameters["options"], problems)


def is_share(value: Any) -> bool:
    return isinstance(value, Real) and 0 < float(value) < 1


def _check_options(options: Any, problems: Problems) -> None:
    if options is None:
        return
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        problems.add("options", repr(options), "a mapping from names of options to values")
        return
    for name, value in options.items():
        if name in (*COMMON, "ensemble"):
            problems.add(f"options[{name!r}]", repr(value), "any other option", f"{name} is a parameter of its own.")
        if name == "isolated_answer":
            advice = "Validation chooses who answers for nodes without edges; isolated_answer_ says who it was."
            problems.add(f"options[{name!r}]", repr(value), "any other option", advice)
        if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
            problems.add(f"options[{name!r}]", repr(value), "one value", "Try several with GridSearchCV.")


def _random(state: Any, problems: Problems) -> np.random.RandomState:
    try:
        return check_random_state(state)
    except ValueError:
        problems.add("random_state", repr(state), "None, a whole number from 0 to 2**32 - 1, or a RandomState")
        return np.random.RandomState(0)


def fingerprint(features: Features, edges: np.ndarray) -> str:
    """Tells one graph from another: the same features and edges give the same text."""
    matrix = features.matrix
    arrays = (matrix.indptr, matrix.indices, matrix.data) if sp.issparse(matrix) else (matrix,)
    digest = hashlib.sha256(repr(matrix.shape).encode())
    for array in (*arrays, edges):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
