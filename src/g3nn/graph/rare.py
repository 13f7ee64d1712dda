"""Rare classes: which they are, how well one is recognised, and from which probability on to act."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from g3nn.base.errors import refuse
from g3nn.graph.calibrate import FEW_VALIDATION_NODES, wilson_interval

RARE = 0.1
"""Classes with a smaller share of the labels are rare, where there are few classes: see `rare_classes`."""
ASKED = ("recall", "precision")
"""What a threshold may be asked for."""


def rare_classes(labels: np.ndarray, classes: int) -> list[int]:
    """The rare ones among the classes of labels (n,), the rarest first: with a share below `RARE`, and below half of
    what each would have if all were alike."""
    shares = np.bincount(labels, minlength=classes) / max(len(labels), 1)
    order = np.argsort(shares, kind="stable")
    return [int(k) for k in order if 0 < shares[k] < min(RARE, 0.5 / classes)]


@dataclass(frozen=True)
class Threshold:
    """Nodes are chosen whose probability of the class `label` is at least `probability`, for a `share` of recall or of
    precision, whichever was `asked` for.

    Of the validation nodes `positives` have the class, `chosen` reach the probability, and `hits` do both. recall and
    precision are shares of hits, and the intervals are Wilson's 95 % intervals of them.
    """

    label: object
    asked: str
    share: float
    probability: float
    recall: float
    recall_interval: tuple[float, float]
    precision: float
    precision_interval: tuple[float, float]
    positives: int
    chosen: int
    hits: int

    def __str__(self) -> str:
        recall, precision = part_of(self.hits, self.positives), part_of(self.hits, self.chosen)
        return f"{self.label} from probability {self.probability:.3g} on: recall {recall}, precision {precision}"


def threshold(label: object, p: np.ndarray, has: np.ndarray, asked: str, share: float) -> Threshold:
    """The highest one with this recall, or the lowest one with this precision, at a node of the class. p, has: (n,) the
    probability of the class, and whether nodes have it.

    One more node is counted against it, one of the class that is missed, or one that is chosen and not of the class.
    If new nodes are like these, one of the class is then chosen with a probability of at least this recall (split
    conformal). What so few nodes of the class cannot support is refused.
    """
    steps, positives = np.unique(p[has])[::-1], int(has.sum())
    chosen, hits = (len(some) - np.searchsorted(np.sort(some), steps) for some in (p, p[has]))
    supported = hits / (1 + (chosen if asked == "precision" else positives))
    enough = np.flatnonzero(supported >= share)
    if not len(enough):
        most = math.floor(100 * supported.max(initial=0)) / 100
        given = f"{share:g}, with {positives} validation nodes of the class {label!r}"
        refuse(asked, given, f"at most {most:.2f}", "Ask for less, or label more nodes of this class.")
    place = enough[0] if asked == "recall" else enough[-1]
    some, right = int(chosen[place]), int(hits[place])
    measured = [(right / all_of, wilson_interval(right / all_of, all_of)) for all_of in (positives, some)]
    return Threshold(label, asked, share, float(steps[place]), *measured[0], *measured[1], positives, some, right)


def part_of(part: int, whole: int) -> str:
    """A share with its 95 % interval."""
    low, high = wilson_interval(part / whole, whole)
    return f"{part / whole:.2f} ({part} of {whole}; 95 % interval {low:.2f} to {high:.2f})"


def in_words(row: Mapping[str, float] | None, nodes: int) -> list[str]:
    """How well a class is recognised. row: of the class, from `evaluate` on a number of nodes; None where none can
    judge the model."""
    if not row or not row["support"]:
        return ["no node can say how well it is recognised"]
    positives, predicted = int(row["support"]), int(row["predicted"])
    hits = round(row["recall"] * positives)
    few = [f"rough: fewer than {FEW_VALIDATION_NODES} nodes of this class"] * (positives < FEW_VALIDATION_NODES)
    right = part_of(hits, predicted) if predicted else "unknown, since none is predicted; a threshold finds some"
    return [
        f"recall, the share of its nodes that is found: {part_of(hits, positives)}",
        f"precision, the share of its predictions that is right: {right}",
        f"average precision {row['average_precision']:.3f}, by chance {positives / nodes:.3f}; AUC {row['auc']:.3f}",
        *few,
    ]
