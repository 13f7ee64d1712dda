"""Tags: yes or no, one flag or several that do not exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from g3nn.base.errors import Problems
from g3nn.base.parse import UNKNOWN
from g3nn.graph.calibrate import Scaling
from g3nn.graph.outcomes.base import PanelModel, Targets
from g3nn.graph.outcomes.labels import flat_values
from g3nn.graph.outcomes.numbers import NumberOutcome, ValueOptions

_WORDS = {"true": True, "yes": True, "y": True, "false": False, "no": False, "n": False}


@dataclass(frozen=True)
class Tags(NumberOutcome):
    """y_it is 0 or 1. An answer is the log-odds of each tag, (R, n, T): the share of the tag among the training nodes,
    plus a score. Beliefs are probabilities, (R, n, T).

    With one tag an expectation over both ends of a pair is the sum over their four labels, exact. With several it is a
    closed bound (Jaakkola and Jordan, 2000) from the mean and the variance of the log-odds.
    """

    name: ClassVar[str] = "tags"
    score_key: ClassVar[str] = "tag_accuracy"
    score_title: ClassVar[str] = "share of tags right"
    measures: ClassVar[Mapping[str, str]] = {
        "accuracy": "share of tags right",
        "f1_micro": "micro F1",
        "f1_macro": "macro F1",
    }
    columns_title: ClassVar[str] = "tags"
    values_title: ClassVar[str] = "tags"
    view: ClassVar[str] = "tags"
    allowed: ClassVar[str] = "0 or 1 (or true or false, yes or no) for each tag, nothing where unknown"
    advice: ClassVar[str] = (
        "One class out of several needs outcome 'classes', in one column; numbers need outcome 'real' (G3NNRegressor)."
    )
    constant: ClassVar[str] = "Leave out tags that no node has, or that all nodes have."
    takes_booleans: ClassVar[bool] = True
    flags: ClassVar[bool] = True
    pooled: ClassVar[bool] = True

    @staticmethod
    def accepts(values: np.ndarray) -> np.ndarray:
        return (values == 0) | (values == 1)

    @classmethod
    def _floats(cls, raw: np.ndarray, argument: str, problems: Problems) -> np.ndarray | None:
        """Words for yes and no are taken too."""
        if raw.dtype.kind in "OU":
            items = [
                _WORDS.get(item.strip().lower(), item) if isinstance(item, str) else item
                for item in raw.ravel().tolist()
            ]
            raw = flat_values(items).reshape(raw.shape)
        return super()._floats(raw, argument, problems)

    @classmethod
    def panel(cls, columns: int, balance: float) -> tuple[PanelModel, ...]:
        """Networks alone, and with likelihoods in which nodes with equal tags are linked."""
        return (
            ("mlp", "elbo", {}),
            ("gcn", "elbo", {}),
            ("sbm-gcn", "elbo", {}),
            ("tags-gcn", "elbo", {}),
            ("tags-gcn", "elbo", {"refine": True, "graph_weight": balance}),
            *((model, "elbo", {"hidden": 64}) for model in ("hops", "sage", "linkx", "appnp", "gat")),
        )

    @classmethod
    def of(cls, labels: np.ndarray, columns: int, options: object = None) -> Self:
        """The share of a tag is taken with one node more that has it and one more that has not."""
        known = ~np.isnan(labels)
        share = (np.where(known, labels, 0.0).sum(0) + 1) / (known.sum(0) + 2)
        start = tuple(float(odds) for odds in np.log(share / (1 - share)))
        return cls(columns, options or ValueOptions(), start=start, spread=tuple(np.sqrt(share * (1 - share)).tolist()))

    def answer(self, scores: Tensor, start: Tensor | None) -> Tensor:
        assert start is not None
        return scores + start.unsqueeze(1)

    def log_prob(self, answer: Tensor, values: Tensor) -> Tensor:
        return values * answer - softplus(answer)

    def cross_entropy(self, q: Tensor, p: Tensor) -> Tensor:
        return softplus(p) - q.sigmoid() * p

    def entropy(self, q: Tensor) -> Tensor:
        return softplus(q) - q.sigmoid() * q

    def mean(self, answer: Tensor) -> Tensor:
        return answer.sigmoid()

    def variance(self, answer: Tensor) -> Tensor:
        return answer.sigmoid() * (-answer).sigmoid()

    def beliefs(self, answer: Tensor, targets: Targets) -> Tensor:
        """(R, n, T): the probability of each tag says all."""
        return torch.where(targets.observed, targets.values, answer.sigmoid())

    def as_inputs(self, targets: Targets) -> Tensor:
        """1 for a tag, -1 for none, 0 for unknown."""
        return (2 * targets.values - 1) * targets.observed

    def mixture(self, answers: Tensor, weights: Tensor | None = None) -> Tensor:
        """The log-odds of the mean probabilities, exact."""
        share = 0.0 if weights is None else weights.log().view(-1, 1, 1)
        yes, no = ((logsigmoid(part) + share).logsumexp(0, keepdim=True) for part in (answers, -answers))
        return yes - no

    def tempered(self, answer: Tensor, temperature: float) -> Tensor:
        return answer / temperature

    def around(self, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
        return np.log(mean) - np.log1p(-mean)

    def log_probs_of(self, answer: np.ndarray, nodes: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Of no and yes."""
        odds = answer[nodes, columns]
        return Scaling()(np.stack([np.zeros_like(odds), odds], axis=1))

    def score(self, rows: Tensor, values: Tensor, known: Tensor) -> Tensor:
        right = (rows > 0) == (values > 0.5)
        return (right & known).sum((1, 2)).to(rows.dtype) / known.sum()

    def sharpened(self, mean: Tensor, temperature: float, balanced: bool = False) -> Tensor:
        return (torch.logit(mean, eps=1e-7) / temperature).sigmoid()

    def evaluate(
        self, answer: np.ndarray, labels: np.ndarray, region: np.ndarray, names: np.ndarray, flat: bool
    ) -> dict[str, object]:
        """accuracy (share of known tags that are right), nll and brier (means over known tags), f1_micro, f1_macro.

        f1_macro is the mean over tags that some node has or was given.
        """
        probabilities, known = self.moments(answer)[0], ~np.isnan(labels)
        has, given = (labels > 0.5) & known, (probabilities > 0.5) & known
        p = np.where(labels > 0.5, probabilities, 1 - probabilities)[known]
        marked = int(has.sum() + given.sum())
        each = [row["f1"] for row in tag_table(labels, probabilities) if row["f1"] is not None]
        return {
            "accuracy": float((has == given)[known].mean()),
            "nll": float(-np.log(np.maximum(p, np.finfo(np.float64).tiny)).mean()),
            "brier": float(((1 - p) ** 2).mean()),
            "f1_micro": 2 * int((has & given).sum()) / marked if marked else 1.0,
            "f1_macro": float(np.mean(each)) if each else 1.0,
        }

    def groups(self, answer: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One of the tags of a node, drawn at random, as its group; the last group has none. Beliefs (n, T + 1) are
        proportional to the probabilities of the tags and of having none; known tags have probability 0 or 1."""
        p = np.where(np.isnan(labels), self.moments(answer)[0], labels)
        shares = np.concatenate([p, (1 - p).prod(1, keepdims=True)], axis=1)
        return np.full(len(labels), UNKNOWN, dtype=np.int64), shares / shares.sum(1, keepdims=True)


def tag_table(values: np.ndarray, probabilities: np.ndarray) -> list[dict[str, float | None]]:
    """For each tag: nodes (for which it is known), share, precision, recall and f1 at a threshold of one half.

    values, probabilities: (n, T). A ratio without a denominator is None: no node has the tag, or none was given it.
    """
    known = ~np.isnan(values)
    has, given = (values > 0.5) & known, (probabilities > 0.5) & known
    counts = zip(*((part.sum(0).tolist()) for part in (known, has, given, has & given)), strict=True)
    return [
        {
            "nodes": nodes,
            "share": _ratio(true, nodes),
            "precision": _ratio(hits, positive),
            "recall": _ratio(hits, true),
            "f1": _ratio(2 * hits, true + positive),
        }
        for nodes, true, positive, hits in counts
    ]


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
