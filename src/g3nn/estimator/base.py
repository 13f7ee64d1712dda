"""What the estimators share: parameters, fitting, answering for old and new nodes, edges, saving."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import Tags as SklearnTags
from sklearn.utils.validation import check_is_fitted

from g3nn.base.errors import Problems, check_name, refuse, warn_caller
from g3nn.base.parse import node_numbers
from g3nn.estimator import updating
from g3nn.estimator.asked_prior import SavedPrior
from g3nn.estimator.fitted import Fitted, judged_again
from g3nn.estimator.fitting import fit_model
from g3nn.estimator.members import Parameters
from g3nn.estimator.problem import COMMON, check_parameters, read_problem
from g3nn.estimator.saving import save_model
from g3nn.estimator.showing import Explanation, Panel, Shown, answer_table, explain, label_table
from g3nn.graph.given import Given, Nodes, take_apart
from g3nn.graph.outcomes import COVERAGE, Labels, Outcome
from g3nn.graph.tables.fitted_tables import FittedTables
from g3nn.graph.tables.frames import library_of, native_frame
from g3nn.model.generative import POSTERIOR, ModelSpec
from g3nn.model.objective import Objective
from g3nn.queries import (
    AuditTables,
    EdgeSuggestion,
    EdgeType,
    GraphAudit,
    LabelSuggestion,
    LearningCurve,
    SampledGraph,
    Suggestion,
    check_graph,
    edge_types,
)
from g3nn.queries.audit_tables import with_ids
from g3nn.queries.covering import Likeness
from g3nn.queries.strategies import Strategy
from g3nn.queries.wrong_labels import JudgedLabels
from g3nn.training.progress import course, say
from g3nn.training.result import history_names
from g3nn.training.tracking import Tracker, tracker

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(eq=False, repr=False)
class GraphEstimator(Shown):
    """An estimator for the nodes of a partly labelled graph. As in scikit-learn, making one stores its parameters and
    does nothing else; they are described where they are used, in `G3NNClassifier` and `G3NNRegressor`."""

    model: str | ModelSpec = "auto"
    _: KW_ONLY
    objective: str | Objective = "auto"
    prior: str | BaseEstimator | SavedPrior = "auto"
    effort: str = "default"
    budget: float | None = None
    denoise: bool | str = "auto"
    label_noise: bool | str = "auto"
    ensemble: int = 5
    validation: float = 0.2
    refit: bool = False
    missing: str = "impute"
    inductive: bool = False
    directed: bool = False
    hidden: int = COMMON["hidden"]
    lr: float = COMMON["lr"]
    weight_decay: float = COMMON["weight_decay"]
    epochs: int = COMMON["epochs"]
    patience: int = COMMON["patience"]
    options: Parameters | None = None
    device: str = "auto"
    random_state: int | np.random.RandomState | None = 0
    verbose: bool = False

    _library = "pandas"
    """Of the data frame of the fit."""

    def __sklearn_tags__(self) -> SklearnTags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "impute"
        return tags

    def fit(
        self,
        X: object,
        y: object = None,
        edges: object = None,
        *,
        val: object = None,
        id: str | None = None,
        ids: bool = True,
        weights: object = None,
        edge_types: object = None,
        node_kinds: object = None,
        sample_weight: npt.ArrayLike | None = None,
        warm_start: bool = False,
        track: Tracker | str | None = None,
    ) -> Self:
        """Train on the labelled nodes of a graph.

        X:     (n, d) features: an array, a scipy sparse matrix or any data frame, whose columns may hold numbers,
               categories, dates and text; `Nodes`; or, alone, a PyG `Data` or what `g3nn.read_tables` gives.
        y:     the labels, as the class says.
        edges: (2, E) or (E, 2) node numbers, a list of tuples, a tuple of two arrays, a scipy adjacency matrix, a
               networkx or igraph graph, a data frame, or None for no edges at all. A 2 x 2 array is read as (2, E).
               Without weights, an undirected edge weighs as much as it was repeated.
        val:   the labelled nodes to validate on, instead of a share split off: ids of the tables, or else numbers or a
               mask. ids: False if they are given by their numbers in any case.
        id:    a column of the data frame X with ids, or the name of its index, by which a data frame of edges, or a
               networkx graph, names its ends. An index that has all nodes of such a graph needs no name. y may also be
               the name of a column, empty where the label is unknown.
        weights: (E,) of the edges, by default those that come with them (the values of a matrix, the attribute weight
               of a graph, the column weight of a data frame); 0 is no edge. False: all edges count alike.
        edge_types: (E,) of the edges as given, names or numbers; or edges may be a mapping from types to edges. By
               default those that come with a PyG `Data` or in a column called type or relation. Of data frames the name
               of the column, or "none".
        node_kinds: (n,) of the nodes, names or numbers. Without edge_types, kinds of both ends are the type of an edge.
               Of data frames the name of the column, or "none".
        sample_weight: (n,), how often the label of each node counts in training, choice and calibration.
        warm_start: go on from the last fit, on the same graph with other labels, as `update` does.
        track: "tensorboard:FOLDER", "mlflow:URI" or a `g3nn.training.tracking.Tracker`, which records every training.
        """
        parameters, problems = self.get_params(deep=False), Problems()
        given = Given(X, y, edges, val, bool(self.directed), None, weights, sample_weight, id, ids)
        given = replace(given, edge_types=edge_types, node_kinds=node_kinds)
        given = take_apart(given, problems, self.table_outcomes())
        outcome, told, notes = self.outcome_for(given.y, problems), tracker(track, problems), list(given.notes)
        problem = read_problem(parameters, outcome, given, problems, notes)
        others = ", other ones for each replica" if problem.folds else ""
        self._say(f"{len(problem.train)} training nodes and {len(problem.val)} validation nodes{others}")
        try:
            with course(self.verbose, told) as progress:
                if warm_start and hasattr(self, "fitted_"):
                    fitted = updating.go_on(self.fitted_, problem, progress)
                else:
                    fitted = fit_model(problem, progress, notes)
        finally:
            for note in notes:
                warn_caller(note)
        self.restore(fitted if given.graph is None else replace(fitted, tables=FittedTables.of(given.graph)))
        self._library = library_of(X.X if isinstance(X, Nodes) else X)
        self._say_choice()
        return self

    def continue_fit(self, *, effort: str = "thorough", budget: float | None = None) -> Self:
        """Go on where the fit ended, with more effort: what it tried is not tried again.

        effort, budget: as the parameters, for what is done now. A model that was loaded cannot go on, since what it
        tried and did not choose is not saved; nor can one that was asked for by name, which is trained to its end.
        """
        check_is_fitted(self)
        problems, before, problem, notes = Problems(), self.fitted_, self.fitted_.problem, list[str]()
        if problem is None:
            advice = f"Fit again with effort={effort!r}."
            refuse("continue_fit", "a model that was loaded", "one that was fitted in this process", advice)
        # What was tried before stays comparable: options of every model, and the prior, are those of the fit.
        kept = {name: problem.parameters[name] for name in (*COMMON, "prior")}
        parameters = {**self.get_params(deep=False), **kept, "effort": effort, "budget": budget}
        # What was tried on other labels, or validated on other nodes, does not count.
        known = () if before.updated or before.corrected else before.trials
        if before.few:
            # Networks that were trained alike, for as many epochs, are no replicas of those that a search trains.
            known = tuple(trial for trial in known if trial.candidate.simple)
        if problem.parameters["model"] != "auto" or not len(problem.val):
            problems.add("continue_fit", "a single model, trained to its end", 'a fit with model="auto" that validates')
        elif parameters["model"] != "auto":
            advice = "Call fit to train another model, or set_params(model='auto') to go on."
            problems.add("model", f"{parameters['model']!r}, set after the fit", "'auto', as in the fit", advice)
        check_parameters(parameters, problem.outcome, problems)
        problems.raise_if_any()
        try:
            with course(self.verbose) as progress:
                fitted = fit_model(replace(problem, parameters=parameters), progress, notes, known)
        finally:
            for note in notes:
                warn_caller(note)
        self.restore(replace(fitted, tables=before.tables), self.notes_)
        self._say_choice()
        return self

    def _say_choice(self) -> None:
        self._say(f"chose {self.model_}, temperature {self.temperature_:.3g}")
        best = self.fitted_.best_simple
        if best is not None:
            score, own = self.fitted_.outcome.score_title, self.fitted_.val_score
            self._say(f"validation {score} {own:.3f}; the best simple model, {best.model}, has {best.val_score:.3f}")

    def _say(self, text: str) -> None:
        if self.verbose:
            say(text)

    @abstractmethod
    def outcome_for(self, y: object, problems: Problems) -> type[Outcome]:
        """What these labels are."""

    @abstractmethod
    def table_outcomes(self) -> tuple[str, ...]:
        """What a single column of labels may be, and last what several may be."""

    def restore(
        self,
        fitted: Fitted,
        notes: Parameters | None = None,
        audit: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Take over what a fit learned, now or before it was saved; audit: the state of a `GraphAudit`."""
        answerer, networks, task = fitted.answerer, fitted.answerer.networks, fitted.task
        self.fitted_ = fitted
        # What `set_params` changes later does not change what was fitted.
        self._fitted_parameters = self.get_params(deep=False) if fitted.problem is None else fitted.problem.parameters
        self._name_labels(fitted)
        names = fitted.features
        if fitted.tables is not None:
            self.schema_ = fitted.tables.read
            names = tuple(one.column for one in fitted.tables.schema.read)
        self.n_features_in_ = task.num_features if names is None else len(names)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        for name, known in (("feature_names_in_", names), ("schema_", fitted.tables)):
            if known is None and hasattr(self, name):
                delattr(self, name)
        self.model_ = fitted.model
        self.panel_ = Panel(fitted.panel)
        self.temperature_ = answerer.calibrations["linked"].scaling.temperature
        self.isolated_temperature_ = answerer.calibrations["isolated"].scaling.temperature
        self.isolated_answer_ = networks[0].isolated_answer if networks else POSTERIOR
        self.task_ = task
        self.val_nodes_ = task.val
        self.n_validation_ = len(task.val)
        self.n_iter_ = networks[0].epochs if networks else 1
        self.history_names_ = history_names(fitted.outcome)
        self.history_ = networks[0].history if networks else np.zeros((0, len(self.history_names_), 1))
        self.notes_: dict[str, Any] = dict(notes or {})
        self.graph_audit_: GraphAudit | None = None
        self.learning_curve_: LearningCurve | None = None
        self._likeness: Likeness | None = None
        if audit is not None:
            self.graph_audit_ = GraphAudit.from_state(*fitted.groups(), audit)

    @abstractmethod
    def _name_labels(self, fitted: Fitted) -> None:
        """Take over what the labels are called."""

    def _moments(self, X: object, edges: object) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation (n, K or T); the means of classes and tags are their probabilities."""
        check_is_fitted(self)
        return self.fitted_.outcome.moments(self.fitted_.calibrated(X, edges)[self._with_rows(X, edges)])

    def _conformal(self, alpha: float, X: object, edges: object, by_class: bool = False) -> np.ndarray:
        check_is_fitted(self)
        return self.fitted_.conformal(alpha, X, edges, by_class)[self._with_rows(X, edges)]

    def _with_rows(self, X: object, edges: object) -> slice:
        """Of the nodes of the fit, those that only columns of a table name are not asked about."""
        tables = self.fitted_.tables
        own = X is None and edges is None and tables is not None and tables.added
        return slice(len(tables.ids) - tables.added) if own and tables is not None else slice(None)

    def evaluate(self, nodes: object, y: object, *, ids: bool = True) -> dict[str, object]:
        """How good the answers for some nodes of the fitted graph are, given their labels.

        nodes: ids of the tables of the fit, or else numbers or a mask; or `test` of a graph from `g3nn.read_tables`,
        with its `test_labels` as y. ids: False if nodes are given by their numbers in any case.

        Classes: accuracy, balanced_accuracy, f1_macro, nll (mean of - log p), ece (expected calibration error, 15 bins)
        and brier. `classes` holds of each precision, recall, f1, support and predicted (how many of the nodes have it
        and how many are predicted as it), and, unless no node or every node has it, average_precision, auc and coverage
        (the share of its nodes whose 90 % set holds it); `rare` names those with less than 10 % of the labels. Tags:
        accuracy, nll and brier as means over known tags, f1_micro and f1_macro. Numbers: rmse, mae, r2, log_prob (mean
        log-probability or density of a value) and coverage (share of the values inside 90 % intervals); of several
        columns these are means, and `columns` holds them for each. Always: the number of nodes.
        """
        check_is_fitted(self)
        problems = Problems()
        if isinstance(y, Labels) and np.array_equal(y.names, self.fitted_.columns):
            chosen = node_numbers("nodes", nodes, self.task_.num_nodes, problems)
            labels: np.ndarray | None = y.values
        else:
            fitted = self.fitted_ if ids else replace(self.fitted_, tables=None)
            chosen = updating.numbers_of(fitted, "nodes", nodes, problems)
            labels = self.fitted_.outcome.encode(y, self.fitted_.columns, problems)
        if labels is not None and chosen is not None and len(labels) != len(chosen):
            problems.add("y", f"{len(labels)} labels", f"one for each of the {len(chosen)} nodes")
        if chosen is not None and len(chosen) == 0:
            problems.add("nodes", "none", "at least one node")
        problems.raise_if_any()
        assert chosen is not None
        assert labels is not None
        return self.fitted_.evaluate(chosen, labels, 1 - COVERAGE)

    def answer_table(
        self, X: object = None, edges: object = None, *, alpha: float = 0.1, keep: pa.Table | None = None
    ) -> pa.Table:
        """What is known and answered about each node, as an Arrow table: see `to_frame`.

        keep: an Arrow table with original columns to put beside the answers.
        """
        check_is_fitted(self)
        return answer_table(self.fitted_, X, edges, alpha, keep)

    def to_frame(self, X: object = None, edges: object = None, *, alpha: float = 0.1) -> DataFrame | pa.Table:
        """What is known and answered about each node, as a data frame: of the library that `set_output` names, or else
        that of X, here or in the fit, or else pandas (an Arrow table without pandas).

        id; of fitted nodes given (the label that was given) and role (train, validation, test or unlabelled); then, of
        classes, label, the probability of each class, entropy and conformal_set; of tags those that are likelier than
        not, and the probability of each; of numbers mean, deviation, low and high; and has_edges. Sets and intervals
        miss the truth in a share `alpha` of the nodes. X, edges: as in `predict`.
        """
        usual = {"transform": get_config()["transform_output"]}
        library = getattr(self, "_sklearn_output_config", usual)["transform"]
        if library == "default":
            library = self._library if X is None else library_of(X)
        return native_frame(self.answer_table(X, edges, alpha=alpha), library)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Which data frames `to_frame` gives: "pandas", "polars", or "default" for those of the library of X. None
        changes nothing."""
        if transform is not None:
            check_name("transform", transform, ("default", "pandas", "polars"))
            self._sklearn_output_config = {"transform": transform}
        return self

    def explain(self, nodes: object, *, ids: bool = True) -> list[Explanation]:
        """What pulled the answers for these nodes of the fitted graph, or this one: for each an `Explanation`.

        nodes: ids of the tables of the fit, or else numbers or a mask. ids: False if nodes are given, and come back, by
        their numbers in any case.
        """
        check_is_fitted(self)
        problems, fitted = Problems(), self.fitted_ if ids else replace(self.fitted_, tables=None)
        chosen = updating.numbers_of(fitted, "nodes", nodes, problems)
        problems.raise_if_any()
        assert chosen is not None
        return explain(fitted, chosen)

    def edge_proba(self, pairs: object, density: str = "balanced", *, ids: bool = True) -> np.ndarray:
        """(P,) the probability of an edge for each pair of fitted nodes, averaged over beliefs about labels.

        pairs:   (2, P) or (P, 2), a list of tuples, a tuple of two arrays (sources, targets), or a data frame, with ids
                 of the tables of the fit, or else node numbers. An array that is 2 x 2 is read as (2, P).
        density: "balanced" (0.5: as likely an edge as not, if there were as many of either), "observed" (the
        probability in a graph as sparse as this one) or "genuine" (the probability that an edge which was observed is
        no error). An observed edge is judged by the graph without it.
        ids: False if pairs are of node numbers in any case.
        """
        audit, problems = self._graph_audit(), Problems()
        numbers = updating.pairs_of(self.fitted_ if ids else replace(self.fitted_, tables=None), pairs, problems)
        problems.raise_if_any()
        return audit.edge_proba(numbers, density)

    def audit(self, missing: int = 100, *, ids: bool = True) -> AuditTables:
        """Observed edges from the most suspicious on, `missing` pairs that probably should have one, and the given
        labels from the most suspicious on. ids: False for node numbers even if the tables of the fit have ids."""
        return replace(self.audit_edges(missing, ids=ids), labels=self.audit_labels(ids=ids))

    def audit_edges(self, missing: int = 100, *, ids: bool = True) -> AuditTables:
        """`audit` without the labels."""
        found, tables = self._graph_audit().tables(missing), self.fitted_.tables
        return found if tables is None or not ids else found.named(tables.node_ids)

    def audit_labels(self, *, ids: bool = True) -> np.ndarray:
        """The labels of `audit` alone, which needs no edges; see `AuditTables.labels`."""
        check_is_fitted(self)
        found, tables = label_table(self.fitted_, self._judged_labels()), self.fitted_.tables
        return found if tables is None or not ids else with_ids(found, tables.node_ids)

    def _judged_labels(self) -> JudgedLabels:
        """Judged when they are first asked for, if the fit did not."""
        check_is_fitted(self)
        if self.fitted_.labels is None:
            with course(self.verbose) as progress:
                progress.stage("judging labels", 1.0, 1)
                judged = judged_again(self.fitted_, self.effort == "quick", self.device, progress)
            self.fitted_ = replace(self.fitted_, labels=judged)
        assert self.fitted_.labels is not None
        return self.fitted_.labels

    def edge_types(self) -> list[EdgeType]:
        """The types of edges, those that say most about labels first; none where edges have no types. What one says is
        its `evidence` in nats for each labelled node; see docs/method.md."""
        check_is_fitted(self)
        fitted = self.fitted_
        return edge_types(replace(fitted.task, features=fitted.views[0].apply(fitted.task.features)), fitted.seed)

    def sample_graph(self, seed: int = 0) -> SampledGraph:
        """A new graph as dense as the fitted one: labels drawn from the answers, then edges from p(G | X, Y)."""
        drawn = self._graph_audit().sample(seed)
        return replace(drawn, labels=self.fitted_.drawn_labels(drawn.labels, np.random.default_rng(seed % 2**63)))

    def _graph_audit(self) -> GraphAudit:
        """Fitted when it is first asked for."""
        check_is_fitted(self)
        if self.graph_audit_ is None:
            problems = Problems()
            check_graph(self.task_, problems)
            problems.raise_if_any()
            with course(self.verbose) as progress:
                progress.stage("judging edges", 1.0, 1)
                self.graph_audit_ = GraphAudit.fit(
                    *self.fitted_.weighed_groups(),
                    judged=self.fitted_.judged_edges(self.device),
                    seed=self.fitted_.seed,
                    device=self.device,
                    progress=progress,
                )
        return self.graph_audit_

    def suggest(
        self, k: int = 1, strategy: str | Strategy = "default", *, candidates: object = None, exclude: object = None
    ) -> list[Suggestion]:
        """The k unlabelled nodes whose labels would help most, the most useful first, each with a score and a reason.

        strategy: "default", "coverage", "expected-error", "disagreement", "entropy", "margin" or "random", or a
        function of your own; see docs/labelling.md. candidates: the only nodes to choose from; exclude: nodes to leave
        out. Nodes are given, and come back, by the ids of the tables of the fit, or else by their numbers.
        """
        check_is_fitted(self)
        given = (k, strategy, candidates, exclude, self._likeness)
        found, self._likeness = updating.suggest(self.fitted_, *given)
        return found

    def suggest_edges(self, k: int = 10) -> list[EdgeSuggestion]:
        """The k edges to check first: those that are probably false and matter to what is believed of their ends."""
        check_is_fitted(self)
        return updating.suggest_edges(self.fitted_, self._graph_audit(), k)

    def suggest_labels(self, k: int = 10) -> list[LabelSuggestion]:
        """At most k labels that models contradict which have not seen them, the most probably wrong first."""
        check_is_fitted(self)
        return updating.suggest_labels(self.fitted_, k, self._judged_labels)

    def update(self, nodes: object, labels: object) -> Self:
        """Take in new or corrected labels of some nodes quickly: the model goes on from where it is.

        nodes: ids of the tables of the fit, or else numbers or a mask. labels: one for each, as in `fit`. The
        members go on training, on all labels, for a few epochs; of many only the quickest with the largest weights do,
        and the others are left out until `fit` is called again. Nothing changes if anything is wrong.
        """
        check_is_fitted(self)
        with course(self.verbose) as progress:
            fitted = updating.update(self.fitted_, self.get_params(deep=False), nodes, labels, progress)
        likeness = self._likeness
        self.restore(fitted, self.notes_)
        # It depends on features and edges alone.
        self._likeness = likeness
        return self

    def save(self, folder: str | Path) -> None:
        """Write the fitted model into a new folder, as safetensors and JSON. `g3nn.load_model` reads it back.

        What was learned about edges is written too if they have been asked for.
        """
        check_is_fitted(self)
        save_model(self.fitted_, self._fitted_parameters, self.notes_, self.graph_audit_, Path(folder))
