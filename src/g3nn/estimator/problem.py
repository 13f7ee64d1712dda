"""The problem of a fit: parameters and data, read and checked together, and the tasks that follow from them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from g3nn.base.errors import Problems, refuse
from g3nn.base.parse import node_indices, read_weighted_edges, stated_edges, two_by_two
from g3nn.estimator.asked_prior import GIVEN, asked_prior, check_prior, feature_model
from g3nn.estimator.effort import EFFORTS
from g3nn.estimator.members import Parameters
from g3nn.estimator.panel import (
    NONE,
    Candidate,
    candidates,
    check_candidates,
    panel_of,
    simple_candidates,
    with_believers,
    with_paths,
)
from g3nn.graph.features import FeatureTable, read_features, structural_features
from g3nn.graph.given import Given
from g3nn.graph.marks import Marks
from g3nn.graph.outcomes import Labels, Outcome, without_labels_of
from g3nn.graph.outcomes.labels import raw_labels
from g3nn.graph.outcomes.warps import best_warps
from g3nn.graph.relations import Relations, read_relations
from g3nn.graph.task import NodeTask
from g3nn.graph.transforms import Form
from g3nn.graph.weights import label_weights, weights_by_shares, without_weightless
from g3nn.model.generative import ModelSpec
from g3nn.queries.chance import types_by_chance

MISSING = ("error", "impute")
COMMON: dict[str, Any] = {"hidden": 16, "lr": 0.01, "weight_decay": 5e-4, "epochs": 1000, "patience": 100}
"""Parameters of the estimator that are options of every model, with their defaults."""
_MANY_LABELS = 2000
"""A share of so many is enough to validate on."""
_ENOUGH, _FOLD = 100, 0.2
"""Validation nodes that choose by themselves; and the share of training labels that a fold has beside fewer."""
_CELLS_AT_ONCE = 1 << 22
_NO_Y = "A fit requires y to be passed, but the target y is None."


@dataclass(frozen=True, eq=False)
class FitProblem:
    """What a fit is asked to do, checked. parameters: those of the estimator, by name. Features may have missing
    values. val: the validation nodes. seeds: one for each replica of a model that is named.

    weights: (n,), how often the label of each node counts. structural: whether features were made from the edges,
    since there were no others. folds: with few labels the validation nodes of the first replica, of the second, and so
    on; `val` is the first. given: validation nodes that the caller chose, on which nothing trains. repeats: whether the
    weights of edges are how often they were stated. relations: the types of edges and the kinds of nodes, if any.
    positions: whether there are features that were made from the edges, besides others. marks: what columns say about
    edges, if any do.
    """

    parameters: Parameters
    features: FeatureTable
    edges: np.ndarray
    edge_weights: np.ndarray | None
    outcome: type[Outcome]
    labels: Labels
    val: np.ndarray
    directed: bool
    seeds: tuple[int, ...]
    weights: np.ndarray | None = None
    structural: bool = False
    folds: tuple[np.ndarray, ...] = ()
    repeats: bool = False
    given: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    relations: Relations | None = None
    positions: bool = False
    marks: Marks | None = None

    @property
    def train(self) -> np.ndarray:
        return np.setdiff1d(self.labels.labelled, self.val)

    @property
    def prior(self) -> BaseEstimator | None:
        """The estimator of scikit-learn that learns p(y | x), if there is one."""
        return feature_model(self.parameters["prior"])

    @property
    def joint(self) -> bool:
        """Whether joint models are tried; otherwise their networks alone are."""
        return bool(self.parameters["objective"] != NONE)

    @property
    def divisible(self) -> bool:
        """Whether each replica gets a split of its own: of a panel, unless there are many labels, and if these are
        only used for training."""
        alike = self.prior is None and not dict(self.parameters["options"] or {}).get("label_inputs")
        return self.parameters["model"] == "auto" and alike and len(self.labels.labelled) < _MANY_LABELS

    @cached_property
    def judging_weights(self) -> np.ndarray | None:
        """(n,): how often the label of each node counts where models are compared and calibrated; None: all alike."""
        if not (self.outcome.exclusive and self.folds and len(self.given)):
            return self.weights
        return weights_by_shares(self.labels, self.given, self.weights)

    @property
    def common(self) -> Parameters:
        """Options of every model."""
        return _common(self.parameters)

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """Networks for the graph that is trained on."""
        nodes, edges = len(self.seen), int(self._inside.sum())
        balance = edges / max(nodes - len(self.train), 1)
        how = (len(self.labels.names), balance, len(self.train), Problems(), self.task.relations is not None)
        return _candidates(self.parameters, self.outcome, *how)

    @property
    def simple(self) -> tuple[Candidate, ...]:
        """Models of scikit-learn that are tried beside them."""
        if self.parameters["model"] != "auto":
            return ()
        how = (len(self.train), len(self.labels.names), self.features.matrix.shape[1], self.edges.size > 0)
        return simple_candidates(self.outcome, *how, self.prior, self.task.relations is not None)

    @cached_property
    def seen(self) -> np.ndarray:
        """The nodes that are trained on: in inductive use the labelled ones alone."""
        return self.labels.labelled if self.parameters["inductive"] else np.arange(self.features.num_nodes)

    @cached_property
    def _inside(self) -> np.ndarray:
        """(E,): the edges among these."""
        return np.asarray(np.isin(self.edges, self.seen).all(axis=0))

    @cached_property
    def form(self) -> Form:
        return Form.fit(self.features.at(self.seen))

    def _formed(self) -> tuple[FeatureTable, np.ndarray | None]:
        """The features in their form; and the means of their columns, where missing values are filled in. Nodes that
        are trained on are filled in from each other first, then the rest from all."""
        problems = Problems()
        features, seen = self.form.apply(self.features, problems), self.seen
        problems.raise_if_any()
        if not (self.structural or self.parameters["missing"] == "impute"):
            return features, None
        part = features.at(seen)
        means = part.column_means(problems)
        problems.raise_if_any()
        part = part.filled(np.searchsorted(seen, self.edges[:, self._inside]), means)
        if len(seen) == features.num_nodes:
            return part, means
        rest = np.setdiff1d(np.arange(features.num_nodes), seen)
        rows = part.above(replace(part, matrix=features.matrix[rest]))
        order = np.argsort(np.concatenate([seen, rest]))
        return replace(rows, matrix=rows.matrix[order]).filled(self.edges, means), means

    @cached_property
    def whole(self) -> tuple[NodeTask, np.ndarray | None]:
        """The task on the whole graph, and the means with which missing features were filled in, if they were."""
        features, means = self._formed()
        task = NodeTask.build(
            features.matrix,
            self.edges,
            self.labels.values,
            self.train,
            self.val if len(self.val) else None,
            num_classes=len(self.labels.names),
            directed=self.directed,
            outcome=self.outcome.name,
            weights=False if self.edge_weights is None else self.edge_weights,
            relations=self.relations,
            marks=self.marks,
        )
        if self.outcome.has_scales:
            task = replace(task, warps=best_warps(task.features[task.train], task.labels[task.train]))
        if self.folds and not self.outcome.exclusive:
            # Replicas that train on different labels speak of the same unit.
            task = replace(task, unit=np.setdiff1d(self.labels.labelled, self.given))
        return task, means

    @cached_property
    def unused(self) -> tuple[str, ...]:
        """Types of edges that join nodes by chance, unless every edge is to be used."""
        denoise, searches = self.parameters["denoise"], self.parameters["model"] == "auto"
        return types_by_chance(self._trained_on) if denoise is True or (denoise and searches) else ()

    @cached_property
    def task(self) -> NodeTask:
        """What is trained on."""
        return self._trained_on.without_types(self.unused)

    @cached_property
    def _trained_on(self) -> NodeTask:
        """The part of the whole task with the nodes that are trained on."""
        (whole, _), seen = self.whole, self.seen
        if len(seen) == whole.num_nodes:
            return whole
        inside = self._inside
        return replace(
            whole,
            features=whole.features[seen],
            edges=np.searchsorted(seen, whole.edges[:, inside]),
            labels=whole.labels[seen],
            weights=None if whole.weights is None else whole.weights[inside],
            train=np.searchsorted(seen, whole.train),
            val=np.searchsorted(seen, whole.val),
            unit=None if whole.unit is None else np.searchsorted(seen, whole.unit),
            relations=None if whole.relations is None else whole.relations.within(seen),
            marks=None if whole.marks is None else whole.marks.within(seen),
        )


def read_problem(
    parameters: Parameters, outcome: type[Outcome], given: Given, problems: Problems, notes: list[str]
) -> FitProblem:
    """Raises one error that lists every problem with the parameters and with the data. notes: gets what the caller
    should know."""
    random = check_parameters(parameters, outcome, problems)
    missing = parameters["missing"] if parameters["missing"] in MISSING else "error"
    features = None if given.X is None else read_features(given.X, missing, problems)
    n = _count(given, problems) if features is None else features.num_nodes
    labels, edges, weights, relations = None, None, None, None
    chosen = np.zeros(0, dtype=np.int64)
    folds: tuple[np.ndarray, ...] = (chosen,)
    if n:
        stated = stated_edges(two_by_two(given.edges, n), n, problems, given.edge_weights, given.edge_types)
        # Weights that were given are among the edges now.
        counts = False if given.edge_weights is False else None
        edges = read_weighted_edges(stated, n, given.directed, problems, counts)
        relations = None if given.graph is None else given.graph.relations
        if relations is None:
            relations = read_relations(stated, n, given.directed, problems, kinds=given.node_kinds, weights=counts)
        elif counts is False:
            relations = replace(relations, weights=None)
        labels = _labels(given, n, outcome, problems)
        if labels is not None:
            chosen = _given_to_validate(given, outcome, labels, problems)
            classes = parameters.get("class_weight")
            if classes is not None or given.weights is not None:
                weights = label_weights(classes, given.weights, given.nodes, labels, chosen, outcome, problems)
                labels = without_weightless(labels, weights, chosen)
            folds = divided(outcome, labels, chosen, parameters["validation"], random, problems)
            if given.X is None and not edges.pairs.size:
                problems.add("X", "nothing, and no edges", "features, edges, or both")
    problems.raise_if_any()
    assert labels is not None
    assert edges is not None
    if features is None:
        seen = labels.labelled if parameters["inductive"] else np.arange(n)
        if not np.isin(edges.pairs, seen).all(axis=0).any():
            refuse("X", "nothing, and no edge between two labelled nodes", "features for an inductive fit")
        features = structural_features(edges.pairs, n, seen)
        if not isinstance(given.y, Labels):  # Reading labels from a table has noted it already.
            columns = features.matrix.shape[1] - 1
            made = f"log degree and {columns} leading eigenvectors of the normalised adjacency matrix"
            notes.append(f"no features were given: made from the edges instead ({made})")
    first = int(random.randint(2**31 - 1))
    seeds = tuple(range(first, first + int(parameters["ensemble"])))
    how = (labels, folds[0], given.directed, seeds, weights, given.X is None, (), edges.repeats, chosen)
    described = None if given.graph is None else given.graph.edge_features
    # Only of classes there are as many as the columns may be explained by.
    marks = given.graph.marks if given.graph is not None and outcome.exclusive else None
    known = relations, described is not None and described.positions > 0, marks
    problem = FitProblem(parameters, features, edges.pairs, edges.weights, outcome, *how, *known)
    if problem.divisible and len(folds) > 1:
        return replace(problem, folds=folds)
    return replace(problem, val=chosen) if len(chosen) else problem


def _count(given: Given, problems: Problems) -> int:
    """How many nodes a graph without features has; 0 where X could not be read or nothing tells."""
    if given.X is not None:
        return 0
    if sp.issparse(given.edges):
        return int(sp.coo_array(given.edges).shape[0])
    if hasattr(given.edges, "nodes") and hasattr(given.edges, "edges"):
        return len(given.edges.nodes)
    if hasattr(given.edges, "vcount"):
        return int(given.edges.vcount())
    if given.y is None:
        problems.add("X and y", "nothing", "features, or a label (or that there is none) for each node")
        return 0
    return len(given.y.values if isinstance(given.y, Labels) else raw_labels(given.y)[0])


def check_parameters(parameters: Parameters, outcome: type[Outcome], problems: Problems) -> np.random.RandomState:
    """Record what is wrong with the parameters, whatever the data is like; the random state that they ask for."""
    ensemble, share = parameters["ensemble"], parameters["validation"]
    if isinstance(ensemble, bool) or not isinstance(ensemble, int | np.integer) or ensemble < 1:
        problems.add("ensemble", repr(ensemble), "a whole number of at least 1")
    if not _is_zero(share):
        check_share("validation", share, problems)
    problems.name("missing", parameters["missing"], MISSING)
    for name in ("refit", "inductive", "directed", "verbose"):
        if not isinstance(parameters[name], bool | np.bool_ | int):
            problems.add(name, repr(parameters[name]), "true or false")
    problems.name("effort", parameters["effort"], EFFORTS)
    budget = parameters["budget"]
    timed = type(budget) is not bool and isinstance(budget, Real) and 0 < float(budget) < np.inf
    if budget is not None and not timed:
        problems.add("budget", repr(budget), "a number of seconds above 0, or None for no limit")
    _check_denoise(parameters["denoise"], parameters["model"], problems)
    if not _is_switch(parameters["label_noise"]):
        problems.add("label_noise", repr(parameters["label_noise"]), '"auto", true or false')
    _check_options(parameters["options"], problems)
    check_prior(parameters, outcome, problems)
    random = _random(parameters["random_state"], problems)
    tried = _candidates(parameters, outcome, 2, 1.0, math.inf, problems)
    check_candidates(tried, _common(parameters), parameters["device"], problems, outcome)
    return random


def _candidates(
    parameters: Parameters,
    outcome: type[Outcome],
    columns: int,
    balance: float,
    labels: float,
    problems: Problems,
    typed: bool = False,
) -> tuple[Candidate, ...]:
    options = dict(parameters["options"]) if isinstance(parameters["options"], Mapping) else {}
    model, prior = parameters["model"], asked_prior(parameters["prior"])
    if prior is not None:
        options["prior"] = prior
        model = replace(model, prior=prior) if isinstance(model, ModelSpec) else model
    if model != "auto":
        return candidates(model, parameters["objective"], options, (), problems, outcome)
    effort = EFFORTS.get(parameters["effort"], EFFORTS["default"])
    listed = tuple(Candidate(*one) for one in panel_of(outcome, columns, balance, labels)[: effort.models])
    listed = with_paths(listed) if typed else listed
    # What the caller asks for goes before what the panel would do.
    asked = {name: parameters[name] for name, usual in COMMON.items() if parameters[name] != usual}
    models = [replace(one, options={**one.options, **asked}) for one in listed]
    tried = candidates("auto", parameters["objective"], options, models, problems, outcome)
    return with_believers(tried) if prior == GIVEN else tried


def _common(parameters: Parameters) -> Parameters:
    """Options of every model. Answers will be calibrated, so losses are compared after calibration."""
    return {**{name: parameters[name] for name in COMMON}, "calibrated": True}


def _labels(given: Given, n: int, outcome: type[Outcome], problems: Problems) -> Labels | None:
    if given.y is None:
        problems.add("y", "nothing", f"a label for some nodes; {outcome.unknown_title} for the others", _NO_Y)
        return None
    count = n if given.nodes is None else len(given.nodes)
    labels = given.y if isinstance(given.y, Labels) else outcome.read(given.y, count, problems)
    if labels is not None and len(labels.values) != count:
        problems.add("y", f"{len(labels.values)} labels", f"one for each of the {count} nodes")
        return None
    return labels if labels is None or given.nodes is None else labels.within(given.nodes, n)


def _given_to_validate(given: Given, outcome: type[Outcome], labels: Labels, problems: Problems) -> np.ndarray:
    """The nodes that the caller gave to validate on."""
    chosen = None if given.val is None else node_indices("val", given.val, len(labels.values), problems)
    if chosen is None:
        return np.zeros(0, dtype=np.int64)
    outcome.check_validation(labels, chosen, problems)
    return chosen


def divided(
    outcome: type[Outcome],
    labels: Labels,
    given: np.ndarray,
    share: Any,
    random: np.random.RandomState,
    problems: Problems,
) -> tuple[np.ndarray, ...]:
    """Nodes to validate on, and others for other replicas. given: what the caller chose for that. If these are few,
    folds of the training labels choose beside them."""
    if not len(given):
        return outcome.folds(labels, share, random, problems) if is_share(share) else (given,)
    rest = replace(labels, values=without_labels_of(labels.values, given))
    if len(given) >= min(_ENOUGH, len(rest.labelled)):
        return (given,)
    first, *others = outcome.folds(rest, _FOLD, random, Problems())
    return (np.union1d(given, first), *others)


def _is_zero(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, Real) and float(value) == 0


def check_share(argument: str, value: object, problems: Problems) -> None:
    if not is_share(value):
        problems.add(argument, repr(value), "a number strictly between 0 and 1")


def is_share(value: object) -> bool:
    return isinstance(value, Real) and 0 < float(value) < 1


def _check_denoise(denoise: Any, model: Any, problems: Problems) -> None:
    if not _is_switch(denoise):
        problems.add("denoise", repr(denoise), '"auto", true or false')
    elif denoise is not False and not isinstance(denoise, str) and denoise and _looks_at_no_edge(model):
        advice = "mlp looks at no edge; leave denoise out, or name another model."
        problems.add("denoise", "True with model 'mlp'", "a model that looks at edges", advice)


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool | np.bool_) or (isinstance(value, str) and value == "auto")


def _looks_at_no_edge(model: Any) -> bool:
    """Whether neither posterior nor likelihood does."""
    if isinstance(model, ModelSpec):
        return model.posterior == "mlp" and model.likelihood is None
    return isinstance(model, str) and model.lower() == "mlp"


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
            advice = "Validation chooses what predicts isolated nodes; see isolated_answer_."
            problems.add(f"options[{name!r}]", repr(value), "any other option", advice)
        if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
            problems.add(f"options[{name!r}]", repr(value), "one value", "Try several with GridSearchCV.")


def _random(state: Any, problems: Problems) -> np.random.RandomState:
    try:
        return check_random_state(state)
    except ValueError:
        problems.add("random_state", repr(state), "None, a whole number from 0 to 2**32 - 1, or a RandomState")
        return np.random.RandomState(0)


def fingerprint(features: FeatureTable) -> str:
    """Tells one table of features from another: the same content gives the same text, sparse or dense and in any type
    of number."""
    matrix = features.matrix
    digest = hashlib.sha256(repr(matrix.shape).encode())
    height = max(1, _CELLS_AT_ONCE // matrix.shape[1])
    for start in range(0, matrix.shape[0], height):
        rows = sp.csr_array(matrix[start : start + height], dtype=np.float64, copy=True)
        rows.eliminate_zeros()
        rows.sort_indices()
        for array in (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data):
            digest.update(array.tobytes())
    return digest.hexdigest()
