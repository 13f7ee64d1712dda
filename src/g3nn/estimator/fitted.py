"""A fitted model: what a fit learned, how it came about, and its answers for old and new nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from g3nn.base.errors import Problems, refuse, warn_caller
from g3nn.base.parse import Edges, Matrix, read_edges, read_weighted_edges, stated_edges, two_by_two
from g3nn.estimator.answers import Answerer
from g3nn.estimator.members import Answers, beliefs_about, surroundings_of
from g3nn.estimator.panel import PanelEntry, Trial, judges
from g3nn.estimator.problem import FitProblem, fingerprint
from g3nn.graph.features import FeatureTable, as_kind, read_features
from g3nn.graph.given import Nodes, asked_of, is_table
from g3nn.graph.outcomes import COVERAGE, Classes, Outcome, has_label, unlabelled
from g3nn.graph.rare import Threshold, rare_classes, threshold
from g3nn.graph.relations import Relations, read_relations
from g3nn.graph.tables.fitted_tables import FittedTables, NewNodes
from g3nn.graph.task import NodeTask
from g3nn.graph.transforms import FeatureTransform, Form, transforms_of
from g3nn.kernels.sparse import is_identity
from g3nn.model.tabular import CrossFitted
from g3nn.queries.edge_trust import SHARES, judged_edges
from g3nn.queries.genuine import GenuineEdges
from g3nn.queries.messages import beliefs_in_groups, drawn_classes, labels_in_groups, merged_groups
from g3nn.queries.wrong_labels import JudgedLabels, judged_labels, known_labels
from g3nn.training.progress import Course


@dataclass(frozen=True, eq=False)
class Fitted:
    """Trained models that answer together, with their graph, calibration and training record.

    columns:  the names of the K classes or T columns. flat: whether labels came as (n,), so that answers of one column
              do too.
    panel:    how all candidates did. val_loss, val_score: of the answers on the validation nodes.
    seen:     the nodes whose labels were trained on.
    answers:  those for the fitted nodes, before calibration.
    features: the names of the feature columns. form: what is done to their values before anything else. means: of the
              columns in this form, where missing values are filled in.
    key:      the fingerprint of the features as they came. structural: whether they were made from the edges. filled:
              (n, d), which values were missing and filled in; None if none was.
    seed:     what everything random that follows a fit begins with.
    unit:     the mean of the weights of the edges, as they came; 1 without weights. repeats: whether these are how
              often edges were stated.
    prior:    where an estimator was the label prior, what it learned; the beliefs of the task come from it.
    tables:   what is to be remembered of the tables of the fit, if there were any.
    labels:   how the given labels were judged, if they were. refitted: whether members were trained on the validation
              nodes in the end; corrected: on what labels probably are.
    problem:  what the fit was asked for, with the latest labels, and trials: what was tried, from which a search or
              an update can go on. updated: whether labels have come in since then, which these have not seen.
              None of these is saved.
    held_back: (n,) nodes whose answers came only from replicas that were not trained on them.
    """

    columns: np.ndarray
    flat: bool
    panel: tuple[PanelEntry, ...]
    val_loss: float
    val_score: float
    task: NodeTask
    seen: np.ndarray
    answerer: Answerer
    answers: Answers
    features: tuple[str, ...] | None
    form: Form
    means: np.ndarray | None
    key: str
    structural: bool
    seed: int
    unit: float
    filled: sp.csr_array | None = None
    prior: CrossFitted | None = None
    tables: FittedTables | None = None
    labels: JudgedLabels | None = None
    refitted: bool = False
    corrected: bool = False
    problem: FitProblem | None = None
    trials: tuple[Trial, ...] = ()
    updated: bool = False
    held_back: np.ndarray | None = None
    repeats: bool = False

    @property
    def outcome(self) -> Outcome:
        return self.answerer.outcome

    @cached_property
    def views(self) -> tuple[FeatureTransform, ...]:
        """Forms of the features that members may see."""
        return transforms_of(self.task.features, self.form.counts, self.form.numbers)

    @cached_property
    def known_labels(self) -> np.ndarray:
        """(n,) or (n, T): the labels as members were trained on them."""
        return known_labels(self.task, self.labels if self.corrected else None)

    @property
    def best_simple(self) -> PanelEntry | None:
        """Of the models that anyone would try first, the one with the highest score on the validation nodes."""
        tried = [entry for entry in self.panel if entry.simple and math.isfinite(entry.val_score + entry.val_loss)]
        return max(tried, key=lambda entry: entry.val_score, default=None)

    @property
    def model(self) -> str:
        """What answers: the name of a model, or several with their weights."""
        weights: dict[str, float] = {}
        for member in self.answerer.members:
            if member.weight:
                weights[member.name] = weights.get(member.name, 0.0) + member.weight
        if len(weights) == 1:
            return next(iter(weights))
        return " + ".join(f"{weight:.2f} {name}" for name, weight in weights.items())

    def ask(self, X: object, edges: object) -> Answers:
        """Nothing, or the features of the fit: the fitted nodes. `Nodes`: those nodes. Otherwise features and edges of
        new nodes."""
        if X is None:
            if self.structural and edges is not None:
                return self._structural(edges)
            if edges is not None:
                refuse("edges", "edges without X", "both, or neither", "X holds the features of the new nodes.")
            return self.answers
        if self.tables is not None and is_table(X):
            return self._rows(asked_of(self.tables, X, edges), self.tables)
        if not isinstance(X, Nodes):
            features = self._read(X, Problems())
            if fingerprint(features) != self.key:
                return self._new_nodes(features, edges)
            self._check_edges(edges)
            return self.answers
        if edges is not None:
            refuse("edges", "edges beside Nodes", "nothing", "Nodes hold their own edges.")
        return self._nodes(X)

    def _rows(self, asked: NewNodes, tables: FittedTables) -> Answers:
        """Rows of a table: nodes of the fit, new ones, or both."""
        if not asked.count:
            return self.answers.at(asked.numbers)
        features = asked.features
        if not features.names:
            features = FeatureTable(np.full((asked.count, self.task.num_features), np.nan, np.float32))
        elif tables.node_columns.id is None and fingerprint(features) == self.key:
            self._check_edges(tuple(asked.edges) if asked.edges.size else None)
            return self.answers
        new = self._new_nodes(features, Edges(asked.edges, asked.weights, types=asked.types), asked.kinds)
        if asked.count == len(asked.numbers):
            return new
        return Answers.joined(self.answers, new).at(asked.numbers)

    def calibrated(self, X: object = None, edges: object = None) -> np.ndarray:
        """(n, width): calibrated answers, for nodes as in `ask`."""
        return self.answerer.calibrated(self.ask(X, edges))

    def conformal(self, alpha: float, X: object = None, edges: object = None, by_class: bool = False) -> np.ndarray:
        """Sets or intervals that miss the truth in a share alpha of the nodes (by_class: of each class), for nodes as
        in `ask`."""
        return self.answerer.conformal(self.ask(X, edges), alpha, by_class)

    def without(self, edges: np.ndarray) -> Fitted:
        """The same models, not trained again, asked about the fitted nodes on the graph without these edges (E,).

        A labelled node that some replicas were trained on and others held back keeps its answer: it came from the
        latter alone, and which they were is not remembered.
        """
        task, kept = replace(self.task, labels=self.known_labels, train=self.seen), self.held_back
        if kept is None and not self.refitted:
            kept = np.isin(np.arange(task.num_nodes), np.intersect1d(task.val, self.seen))
        found = self.answerer(task.with_edges(~edges), self.answers.new)
        if kept is not None:
            found.answer[kept], found.isolated[kept] = self.answers.answer[kept], self.answers.isolated[kept]
        return replace(self, answers=found)

    def evaluate(self, nodes: np.ndarray, labels: np.ndarray, alpha: float) -> dict[str, Any]:
        """How good the answers for some fitted nodes are, given their labels. rare: names of rare classes."""
        answers = self.answers.at(nodes)
        answer, region = self.answerer.calibrated(answers), self.answerer.conformal(answers, alpha)
        found = self.outcome.evaluate(answer, labels, region, self.columns, self.flat)
        rare = {"rare": [str(self.columns[k]) for k in self.rare]} if self.outcome.exclusive else {}
        return {**found, **rare, "nodes": len(nodes)}

    @property
    def rare(self) -> list[int]:
        """The rare classes, by the labels of the fit."""
        labels = self.task.labels[np.concatenate([self.task.train, self.task.val])]
        return rare_classes(labels, len(self.columns)) if self.outcome.exclusive else []

    @property
    def rare_scores(self) -> dict[str, Any]:
        """How well each rare class is recognised on the validation nodes; None where they cannot judge that."""
        task, names, rows = self.task, [str(self.columns[k]) for k in self.rare], dict[str, Any]()
        if names and len(task.val) and not self.refitted:
            rows = self.evaluate(task.val, task.labels[task.val], 1 - COVERAGE)["classes"]
        return {name: rows.get(name) for name in names}

    def threshold(self, k: int, asked: str, share: float) -> Threshold:
        """From which probability of a class on nodes are chosen, for a share of recall or precision."""
        val = self.task.val
        p = self.outcome.moments(self.answerer.calibrated(self.answers.at(val)))[0][:, k]
        return threshold(self.columns.tolist()[k], p, self.task.labels[val] == k, asked, share)

    @property
    def split(self) -> str:
        """How many labels there were, for what."""
        train, val = len(self.task.train), len(self.task.val)
        if np.isin(self.task.val, self.seen).any() and not self.refitted:
            return f"{train + val:,} labels, {val:,} of them to validate on by turns"
        return f"{train:,} labels to train on, {val:,} to validate on"

    @property
    def few(self) -> bool:
        """Whether models were mixed without a search, since labels were few: those that judged it were trained on in
        the end."""
        judged = math.isfinite(self.val_score) and not len(self.task.val)
        networks = self.answerer.networks
        return judged and bool(networks) and not any(one.stops_early for one in networks)

    def check_validation(self, problems: Problems) -> None:
        """Record why validation nodes cannot judge the model."""
        if self.refitted or not len(self.task.val):
            given = "a model that was trained on them" if self.refitted else "none"
            problems.add("validation nodes", given, "nodes that the model was not trained on", "Fit with refit=False.")

    def groups(self) -> tuple[NodeTask, np.ndarray]:
        """What may explain the edges: a task with groups of labels as classes, and beliefs (n, G) about them."""
        codes, beliefs, group = self._merged_groups()
        labels, count = labels_in_groups(codes, group), int(group.max()) + 1
        task = replace(self.task, labels=labels, num_classes=count, outcome=Classes.name, beliefs=None)
        return task, beliefs_in_groups(beliefs, group)

    def weighed_groups(self) -> tuple[NodeTask, np.ndarray]:
        """The same, with edges that count as much as the member with the largest weight believes them: if validation
        found some false, what an edge looks like should not be learned from those."""
        task, beliefs = self.groups()
        trust = self.answerer.members[0].trust
        return task if trust is None or not trust.share else trust.weigh(task), beliefs

    def judged_edges(self, device: str) -> GenuineEdges:
        """How each edge is judged by features and all known labels, if the share that the member with the largest
        weight believes is genuine."""
        task = replace(self.task, labels=self.known_labels, train=np.flatnonzero(has_label(self.known_labels)))
        task = replace(task, features=self.views[0].apply(task.features))
        trust = self.answerer.members[0].trust
        share = SHARES[0] if trust is None or not trust.share else trust.share
        described = None if self.tables is None else self.tables.edge_features
        of_edges = self.structural or (described is not None and described.positions > 0)
        return judged_edges(task, share, of_edges or is_identity(self.task.features), self.seed, device)

    def drawn_labels(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(n,): labels out of the groups (n,) that were drawn for the nodes."""
        _, beliefs, group = self._merged_groups()
        return drawn_classes(groups, beliefs, group, rng)

    def _merged_groups(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels (n,) and beliefs (n, K) as the outcome has them, and the group (K,) in which each class is merged."""
        labelled = np.concatenate([self.task.train, self.task.val])
        labels = self._labels_of(labelled, self.task.num_nodes)
        codes, beliefs = self.outcome.groups(self.calibrated(), labels)
        return codes, beliefs, merged_groups(beliefs, self.task.edges)

    def _labels_of(self, nodes: np.ndarray, n: int) -> np.ndarray:
        """The labels of these nodes of the fit, and none of the other nodes of a graph with n nodes."""
        labels = unlabelled((n, *self.task.labels.shape[1:]), self.task.labels.dtype)
        labels[nodes] = self.known_labels[nodes]
        return labels

    def _nodes(self, nodes: Nodes) -> Answers:
        """Of the fitted graph, or of another one, which is then answered as a whole."""
        problems, edges, types, kinds = Problems(), nodes.edges, nodes.edge_types, nodes.node_kinds
        if self.tables is not None and is_table(nodes.X):
            asked = asked_of(self.tables, nodes.X, edges, quiet=True)
            if self.tables.node_columns.id is not None:
                return self._rows(asked, self.tables).at(nodes.index)
            features, edges = asked.features, Edges(asked.edges, asked.weights, types=asked.types)
            # Names of columns have been read.
            types, kinds = (None if isinstance(given, str) else given for given in (types, kinds))
            kinds = asked.kinds if kinds is None else kinds
        else:
            features, kinds = self._read(nodes.X, problems), None if isinstance(kinds, str) else kinds
        n = features.num_nodes
        stated = stated_edges(edges, n, problems, nodes.weights, types)
        pairs, weights, *_ = self._merged(stated, n, problems)
        relations = self._relations(stated, n, problems, kinds)
        problems.raise_if_any()
        same, known = np.array_equal(pairs, self.task.edges), fingerprint(features) == self.key
        if same and known and _equal(weights, self.task.weights) and _alike(relations, self.task.relations):
            return self.answers.at(nodes.index)
        answerer = self._with_parameters()
        features = self._treated(features, problems)
        features = features if self.means is None else features.filled(pairs, self.means)
        none = np.zeros(0, dtype=np.int64)
        matrix, of_fit = as_kind(features.matrix, self.task.features), self.task.num_nodes if known else 0
        task = self._graph(matrix, pairs, weights, none, of_fit, relations)
        return answerer(task, np.ones(task.num_nodes, dtype=bool)).at(nodes.index)

    def _structural(self, edges: object) -> Answers:
        """Of a model without features: the fitted nodes if the edges are those of the fit, otherwise new ones, whose
        features are filled in from their neighbours."""
        n, problems = self.task.num_nodes, Problems()
        if self._are_fitted(edges):
            return self.answers
        how = (np.iinfo(np.int32).max, self.task.directed, problems, None, self.repeats)
        found = read_weighted_edges(two_by_two(edges, n), *how)
        problems.raise_if_any()
        count = max(int(found.pairs.max(initial=-1)) + 1 - n, 1)
        return self._new_nodes(FeatureTable(np.full((count, self.task.num_features), np.nan, np.float32)), found)

    def _check_edges(self, edges: object) -> None:
        """Edges beside the features of the fit must be those of the fit."""
        if edges is not None and not self._are_fitted(edges):
            advice = "Leave edges out for the fitted nodes; Nodes(X, edges) asks about the same nodes in another graph."
            refuse("edges", "other edges than in the fit, with the X of the fit", "the edges of the fit", advice)

    def _are_fitted(self, edges: object) -> bool:
        """Whether these edges are those of the fit."""
        problems = Problems()
        pairs = read_edges(edges, self.task.num_nodes, self.task.directed, problems)
        return not problems.found and np.array_equal(pairs, self.task.edges)

    def _merged(self, edges: Edges, n: int, problems: Problems) -> Edges:
        """Each edge once, with its weight."""
        how = (n, self.task.directed, problems, None, self.repeats)
        return self._weighted(read_weighted_edges(edges, *how))

    def _weighted(self, edges: Edges) -> Edges:
        """With weights in the unit of the fit, if edges had weights there; unknown ones are as large as the mean, or
        where repeats are weights as that of an edge that was stated once."""
        if self.task.weights is None:
            return Edges(edges.pairs)
        weights = self._usual_weights(edges.pairs) if edges.weights is None else edges.weights
        return Edges(edges.pairs, weights / self.unit)

    def _usual_weights(self, pairs: np.ndarray) -> np.ndarray:
        """Of edges of which nothing else is known."""
        return np.full(pairs.shape[1], 1.0 if self.repeats else self.unit)

    def _relations(
        self, edges: Edges, n: int, problems: Problems, kinds: object, usual: int | None = None
    ) -> Relations | None:
        """Those of a graph to be answered, with the types and kinds of the fit, and weights if there were some. usual:
        as in `read_relations`."""
        like = self.task.relations
        if like is None or problems.found:
            return None
        # Edges of unknown weight weigh as much as the mean, however often they are stated.
        once = edges.weights is None and self.task.weights is not None and not self.repeats
        how: dict[str, Any] = {"kinds": kinds, "weights": False if once else None, "like": like, "usual": usual}
        found = read_relations(edges, n, self.task.directed, problems, **how)
        if found is None or (found.weights is None) == (like.weights is None):
            return found
        return replace(found, weights=None if like.weights is None else self._usual_weights(found.pairs))

    def _joining(self, edges: Edges, n: int, kinds: np.ndarray | None, problems: Problems) -> Relations | None:
        """The relations of the fit, enlarged by those of new nodes."""
        like = self.task.relations
        if like is None:
            return None
        if kinds is not None:
            kinds = np.concatenate([np.array(like.kind_names, dtype=object)[like.kinds], kinds])
        usual = int(np.bincount(like.kinds[self.seen]).argmax()) if len(self.seen) else 0
        new = self._relations(edges, n, problems, kinds, usual)
        return None if new is None else like.enlarged(new)

    def _new_nodes(self, features: FeatureTable, edges: object, kinds: np.ndarray | None = None) -> Answers:
        """The fitted graph is enlarged by the new nodes, and the trained replicas answer there. An edge that was in the
        fit keeps its weight."""
        problems = Problems()
        n, total = self.task.num_nodes, self.task.num_nodes + features.num_nodes
        stated = stated_edges(two_by_two(edges, n), total, problems)
        pairs, weights, *_ = self._merged(stated, total, problems)
        relations = self._joining(stated, total, kinds, problems)
        if pairs.size and pairs.max() < n:
            advice = f"The j-th new node has the number {n} + j; the fitted nodes are those below."
            problems.add("edges", "edges among fitted nodes alone", f"edges of the new nodes {n}..{total - 1}", advice)
        problems.raise_if_any()
        features = self._treated(features, problems)
        alone = features.num_nodes - np.unique(pairs[pairs >= n]).size
        if alone and self.task.num_edges:
            words = f"{alone} of {features.num_nodes} new nodes have no edge: only their features predict them"
            warn_caller(words)
        codes = [part[0] * total + part[1] for part in (self.task.edges, pairs)]
        union, first = np.unique(np.concatenate(codes), return_index=True)
        merged = np.stack([union // total, union % total])
        if weights is not None:
            weights = np.concatenate([self.task.weights, weights])[first]
        table = FeatureTable(self.task.features, self.features).above(features)
        table = table if self.means is None else table.filled(merged, self.means)
        task = self._graph(table.matrix, merged, weights, self.seen, n, relations)
        return self.answerer(task, np.arange(total) >= n).at(np.arange(n, total))

    def _graph(
        self,
        features: Matrix,
        edges: np.ndarray,
        weights: np.ndarray | None,
        seen: np.ndarray,
        known: int,
        relations: Relations | None,
    ) -> NodeTask:
        """A graph to be answered, with the labels of the nodes `seen`. The first `known` nodes are those of the fit."""
        # What stands on edges of new nodes is in the features of both ends alone.
        marks = self.task.marks if known else None
        marks = None if marks is None else marks.among(edges, features.shape[0], self.task.directed)
        parts = {"features": features, "edges": edges, "weights": weights, "relations": relations, "marks": marks}
        if self.prior is not None:
            assert self.task.beliefs is not None
            parts["beliefs"] = beliefs_about(self.prior, self.task.beliefs, features, np.arange(known))
        labels = self._labels_of(seen, features.shape[0])
        return replace(self.task, **parts, labels=labels, train=seen, val=seen[:0])

    def _read(self, X: object, problems: Problems) -> FeatureTable:
        if self.structural:
            advice = "Give the edges of new nodes alone: predict(edges=...)."
            refuse("X", "features, for a model that was fitted without", "nothing", advice)
        features = read_features(X, "error" if self.means is None else "impute", problems)
        if features is not None:
            features = features.aligned(self.features, self.task.num_features, problems)
        problems.raise_if_any()
        assert features is not None
        return features

    def _treated(self, features: FeatureTable, problems: Problems) -> FeatureTable:
        features = self.form.apply(features, problems)
        problems.raise_if_any()
        return features

    def _with_parameters(self) -> Answerer:
        """Without members that learn from labels when they are asked: on another graph there are none."""
        kept = [one for one in self.answerer.members if not one.learns_when_asked]
        if not any(member.weight for member in kept):
            advice = "Fit again with the new nodes in the graph, without labels."
            refuse("model", f"{self.model}, which learns nothing", "a model with parameters", advice)
        return self.answerer.of(kept)


def judged_again(fitted: Fitted, quick: bool, device: str, progress: Course) -> JudgedLabels:
    """Every label that the fit knew, judged by models that have not seen it."""
    labelled = np.flatnonzero(has_label(fitted.task.labels))
    task = replace(fitted.task, train=labelled, val=labelled[:0])
    plans = judges(task, quick, fitted.seed, device)
    task = replace(task, features=fitted.views[0].apply(task.features))
    if task.relations is not None:
        task = replace(task, features=surroundings_of(task).apply(task))
    return judged_labels(task, plans, fitted.seed, progress)[0]


def _equal(first: np.ndarray | None, second: np.ndarray | None) -> bool:
    """Whether two sets of weights are the same."""
    return first is second or (first is not None and second is not None and np.allclose(first, second, rtol=1e-12))


def _alike(first: Relations | None, second: Relations | None) -> bool:
    """Whether two graphs have the same edges of the same types between nodes of the same kinds."""
    if first is None or second is None:
        return first is second
    parts = ((getattr(one, name) for one in (first, second)) for name in ("pairs", "types", "kinds"))
    return all(np.array_equal(*part) for part in parts) and _equal(first.weights, second.weights)
