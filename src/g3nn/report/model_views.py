"""What the page of a classifier says in words: what was fitted, how well, and what to be careful with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from g3nn.experiments.statistics import wilson_interval
from g3nn.report.assets import number
from g3nn.report.beliefs import ClassFindings
from g3nn.report.views import Card

if TYPE_CHECKING:
    from g3nn.estimator import G3NNClassifier, GraphEstimator, PanelEntry
    from g3nn.task import NodeTask

ALPHA = 0.1
"""The sets of classes miss the true one at most this often."""

_COLD_STARTS = {
    "prior": "the label prior, from features alone",
    "posterior": "the network without edges",
    "both": "the label prior and the network without edges together",
}


@dataclass(frozen=True)
class Fact:
    name: str
    value: str
    more: str = ""


def introduction(found: ClassFindings) -> str:
    return split_words(found.task, f"{len(found.classes)} classes")


def split_words(task: NodeTask, taught: str) -> str:
    """The graph and its labels in two sentences; taught: what labels are of."""
    held = f"{len(task.val):,} more {'was' if len(task.val) == 1 else 'were'} held back"
    return (
        f"{_many(task.num_nodes, 'node')} joined by {_many(task.num_edges, 'edge')}. "
        f"{_many(len(task.train), 'label')} taught {taught}; {held} to choose a model and to check its answers."
    )


def cards(
    scores: Mapping[str, Any] | None, chosen: PanelEntry, found: ClassFindings, test: Mapping[str, Any] | None
) -> list[Card]:
    """The key figures, each with what it means.

    scores: of the validation nodes, unless the model has learned them; then those of before. test: of test nodes.
    """
    K, nodes = len(found.classes), len(found.task.val)
    accuracy = chosen.val_score if scores is None else scores["accuracy"]
    loss = chosen.val_loss if scores is None else scores["nll"]
    meaning = f"As if every true class had been given a probability of {math.exp(-loss):.2g}."
    blind = f"A blind guess among {K} classes has a loss of {number(math.log(K))}."
    made = [_accuracy("validation", accuracy, nodes), Card("Validation loss", number(loss), meaning, (blind,))]
    if test is not None:
        made.insert(0, _accuracy("test", test["accuracy"], test["nodes"]))
    judged = scores if test is None else test
    if judged is not None:
        points = number(100 * judged["ece"], 1)
        label = f"Stated probability and share of right answers differ by {points} points in 100 on average."
        where = f"On {_many(judged['nodes'], 'validation node' if test is None else 'test node')}."
        made.append(Card("Calibration error (ECE)", number(judged["ece"]), label, (where,)))
    return made


def _accuracy(where: str, accuracy: float, nodes: int) -> Card:
    low, high = wilson_interval(accuracy, nodes)
    label = f"{round(accuracy * nodes):,} of {_many(nodes, f'{where} node')} got their true class."
    interval = f"95 % interval: {percent(low)} to {percent(high)}."
    return Card(f"{where.capitalize()} accuracy", percent(accuracy), label, (interval,))


def caution(classifier: GraphEstimator) -> str:
    """How to take the figures."""
    if classifier.refit:
        return (
            "After the choice the model was trained again on all labels. The figures are those of before; of the "
            "final model, which has learned the validation nodes too, they would say nothing."
        )
    return (
        "The validation nodes have also decided when to stop, which model to choose and how sure it may be, so new "
        "nodes will fare a little worse."
    )


def few_validation_nodes(nodes: int) -> list[str]:
    """What to say if there are but few."""
    from g3nn.estimator.fitted import FEW_VALIDATION_NODES

    if nodes >= FEW_VALIDATION_NODES:
        return []
    return [
        f"Only {_many(nodes, 'validation node')}: every figure on validation is rough, and so are the choice of "
        f"the model and its probabilities. At least {FEW_VALIDATION_NODES} are advised."
    ]


def warnings(found: ClassFindings) -> list[str]:
    """What a reader should know before trusting the page."""
    nodes = len(found.task.val)
    said = few_validation_nodes(nodes)
    if nodes < math.ceil(1 / ALPHA) - 1:
        said.append("There are too few validation nodes to leave any class out of a set: every set holds all classes.")
    unseen = np.setdiff1d(np.arange(len(found.classes)), found.task.labels[found.task.val])
    if unseen.size:
        names = ", ".join(found.classes[k] for k in unseen[:5].tolist())
        more = f" and {unseen.size - 5} more" if unseen.size > 5 else ""
        said.append(f"No validation node has the class {names}{more}: how well it is told apart is not known.")
    return said


def facts(classifier: G3NNClassifier, chosen: PanelEntry, found: ClassFindings) -> list[Fact]:
    size = f"{number(float(found.sets.sum(1).mean()), 2)} classes on average"
    promise = f"made to hold the true class {round(100 * (1 - ALPHA))} times in 100"
    common = common_facts(classifier, chosen)
    temperature = Fact("Temperature", number(classifier.temperature_, 2), _calibration(classifier))
    return [*common[:2], temperature, common[3], Fact("Sets of classes", size, promise), common[4]]


def common_facts(classifier: GraphEstimator, chosen: PanelEntry) -> list[Fact]:
    """Model, answers, temperature, nodes without edges and features: what there is to say of every outcome."""
    task = classifier.task_
    replicas = "one replica" if chosen.replicas == 1 else f"mean of {chosen.replicas} replicas"
    epochs = f"trained for {_many(classifier.n_iter_, 'epoch')}"
    alone = int((np.bincount(task.edges.ravel(), minlength=task.num_nodes) == 0).sum())
    who = _COLD_STARTS[classifier.isolated_answer_]
    temperature = number(classifier.isolated_temperature_, 2)
    cold = f"{'answered' if alone else 'would be answered'} by {who}, temperature {temperature}"
    return [
        Fact("Chosen model", classifier.model_, f"{chosen.objective} objective"),
        Fact("Answers", replicas, epochs),
        Fact("Temperature", number(classifier.temperature_, 2), surer(classifier.temperature_)),
        Fact("Nodes without edges", f"{alone:,}", cold),
        Fact("Features", f"{task.num_features:,}", "; ".join(_ways(classifier))),
    ]


def _ways(classifier: GraphEstimator) -> list[str]:
    """How this fit was unlike others."""
    ways = {
        "unlabelled nodes kept out of training": classifier.inductive,
        "trained again on all labels": classifier.refit,
        "missing ones filled in from neighbours": classifier.missing == "impute",
    }
    return [text for text, holds in ways.items() if holds]


def _calibration(classifier: G3NNClassifier) -> str:
    """What was done to the probabilities after training."""
    told, offsets = surer(classifier.temperature_), classifier.class_offsets_
    if offsets is None:
        return told
    return f"{told}; offsets of classes from {number(offsets.min(), 2)} to {number(offsets.max(), 2)}"


def surer(temperature: float) -> str:
    """What a temperature did to the answers."""
    if abs(temperature - 1) < 0.05:
        return "probabilities are nearly as trained"
    return "answers were made surer than trained" if temperature < 1 else "answers were made less sure than trained"


def class_rows(found: ClassFindings, judged: bool) -> list[list[Any]]:
    """number, training labels, validation labels, answers, their mean probability, share found on validation."""
    K, task = len(found.classes), found.task
    labels = task.labels[task.val]
    right = labels[found.answers[task.val] == labels]
    training, validation, hits = (np.bincount(part, minlength=K) for part in (task.labels[task.train], labels, right))
    answered = np.bincount(found.answers, minlength=K)
    surety = np.bincount(found.answers, weights=found.probabilities.max(1), minlength=K)
    return [
        [
            k,
            int(training[k]),
            int(validation[k]),
            int(answered[k]),
            round(float(surety[k] / answered[k]), 4) if answered[k] else None,
            round(float(hits[k] / validation[k]), 4) if judged and validation[k] else None,
        ]
        for k in range(K)
    ]


def panel_rows(panel: Sequence[PanelEntry]) -> list[list[Any]]:
    """model, objective, options, validation loss, validation accuracy, epochs, replicas, chosen."""
    return [
        [
            entry.model,
            entry.objective,
            ", ".join(f"{name} {_short(value)}" for name, value in entry.options.items()),
            round(entry.val_loss, 5) if math.isfinite(entry.val_loss) else None,
            round(entry.val_score, 5) if math.isfinite(entry.val_loss) else None,
            entry.epochs,
            entry.replicas,
            entry.chosen,
        ]
        for entry in panel
    ]


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _many(number: int, singular: str) -> str:
    return f"{number:,} {singular}{'' if number == 1 else 's'}"
