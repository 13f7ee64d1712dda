"""Outcomes whose answers are normal distributions, of the value itself or of what it depends on; real numbers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import torch
from scipy.special import expit, logit
from torch import Tensor

from g3nn.base.options import choice
from g3nn.base.parse import LARGEST
from g3nn.graph.calibrate import Scaling, fit_noise
from g3nn.graph.outcomes.base import PanelModel, as_stack
from g3nn.graph.outcomes.numbers import NumberOutcome, ValueOptions
from g3nn.graph.outcomes.warps import Warp

LOG_TWO_PI = math.log(2 * math.pi)

_LOG_VARIANCE = (-10.0, 5.0)
"""The standard deviation is clamped to [1/150, 12] times that of the labels."""

_FAR = 3.0
"""Beyond this many deviations from the mean of the labels noise does not change any more."""

_OUTLIERS, _PSEUDO, _TURNS = 0.02, 20.0, 5
"""The expected share of outliers, how many labels that counts as, and how often it is estimated again."""


@dataclass(frozen=True)
class NormalOutcome(NumberOutcome):
    """An answer holds mean and log-variance, (R, n, 2T), of a normal: of the value itself, or of what it depends on."""

    measures: ClassVar[Mapping[str, str]] = {"rmse": "RMSE", "r2": "R²", "coverage": "share inside 90 % intervals"}
    joint_models: ClassVar[tuple[str, ...]] = ("near-gcn", "near-appnp")
    """Models of the panel in which nodes with close values are linked."""
    learns_start: ClassVar[bool] = True
    numbers_per_column: ClassVar[int] = 2
    learner: ClassVar[str] = "regressor"

    @classmethod
    def panel(cls, columns: int, balance: float) -> tuple[PanelModel, ...]:
        """Networks alone, and with a likelihood in which nodes with close values are linked."""
        close, wide = {"refine": True, "graph_weight": balance}, {"hidden": 64}
        return (
            ("mlp", "elbo", {}),
            ("gcn", "elbo", {}),
            *((model, "elbo", close) for model in cls.joint_models),
            *((model, "elbo", wide) for model in ("hops", "sage", "linkx", "appnp", "gat")),
        )

    @abstractmethod
    def interval(self, mean: np.ndarray, deviation: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest likely value in the caller's unit; what is outside has probability 1 - level or
        less, half of it on either side."""

    def claimed(self, answer: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        """(n, T) each: the `interval` of the distributions that an answer (n, width) claims."""
        low, high = self.interval(*self.warped_moments(answer), level)
        return self.unwarped(low), self.unwarped(high)

    @abstractmethod
    def anywhere(self, values: Tensor) -> Tensor:
        """Of the shape of `values`, in our unit: the log-density of a value that has nothing to do with its node."""

    def expected_log_prob(self, answer: Tensor, values: Tensor) -> Tensor:
        """(R, n, T): E_q log p(y | rate), where an answer is about a rate."""
        return self.log_prob(answer, values)

    def outliers(self, answer: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """An outlier comes not from the answer but from `anywhere`. The share of outliers and the temperature of the
        answer are estimated in turn."""
        values = self.targets(labels, np.zeros(0, dtype=np.int64), "cpu", torch.float64).values
        far, wrong, share = self.anywhere(values).numpy(), np.zeros(labels.shape), _OUTLIERS
        for _ in range(_TURNS):
            temperature = self.temperature(answer, np.where(wrong < 0.5, labels, np.nan))
            near = self.log_prob(as_stack(self.scaled(answer, Scaling(temperature))), values)[0].numpy()
            wrong = expit(far - near + logit(share))
            known = wrong[~np.isnan(labels)]
            share = float((known.sum() + _PSEUDO * _OUTLIERS) / (len(known) + _PSEUDO))
        return self.moments(answer)[0], wrong

    def cross_entropy(self, q: Tensor, p: Tensor) -> Tensor:
        (mean, log_variance), (centre, log_width) = q.chunk(2, dim=2), p.chunk(2, dim=2)
        apart = log_variance.exp() + (mean - centre).square()
        return 0.5 * (LOG_TWO_PI + log_width + apart * (-log_width).exp())

    def entropy(self, q: Tensor) -> Tensor:
        return 0.5 * (1 + LOG_TWO_PI + q.chunk(2, dim=2)[1])

    def mixture(self, answers: Tensor, weights: Tensor | None = None) -> Tensor:
        """The normal with mean and variance of the mixture."""

        def average(values: Tensor) -> Tensor:
            if weights is None:
                return values.mean(0, keepdim=True)
            return (values * weights.view(-1, 1, 1)).sum(0, keepdim=True)

        mean, log_variance = answers.chunk(2, dim=2)
        centre = average(mean)
        variance = average(log_variance.exp() + (mean - centre).square())
        return torch.cat([centre, variance.log()], dim=2)

    def tempered(self, answer: Tensor, temperature: float) -> Tensor:
        """A density proportional to p^(1 / temperature): the variance times the temperature. A count stays at least as
        uncertain as a Poisson."""
        mean, log_variance = answer.chunk(2, dim=2)
        return torch.cat([mean, log_variance + math.log(temperature)], dim=2)


@dataclass(frozen=True)
class RealOptions(ValueOptions):
    noise: str = choice(
        "shared", ("shared", "node"), "one learned variance of each column, or one that depends on the node"
    )


def _location_and_scale(values: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The mean and the standard deviation of each column of values (m, T); 1 where they do not differ."""
    deviation = np.nanstd(values, axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    return tuple(np.nanmean(values, axis=0).tolist()), tuple(scale.tolist())


@dataclass(frozen=True)
class Real(NormalOutcome):
    """y_it ~ N(m_it, v_it). An answer holds m and log v, (R, n, 2T); beliefs hold m and v, (R, n, 2T).

    We compute with (g - mean) / deviation of the training labels, where g is y or, with `warps`, a rising function of
    it: see `Warp`. Densities, means and intervals are those of y all the same. Labels of unlabelled nodes are drawn as
    m + sqrt(v) e (samples that gradients pass through, unbiased), or enter through the moments of their distance (a
    closed bound).
    """

    Options: ClassVar[type] = RealOptions
    name: ClassVar[str] = "real"
    score_key: ClassVar[str] = "r2"
    score_title: ClassVar[str] = "R²"
    columns_title: ClassVar[str] = "columns of numbers"
    values_title: ClassVar[str] = "numbers"
    allowed: ClassVar[str] = f"finite numbers up to {LARGEST:g}, nothing where unknown"
    advice: ClassVar[str] = (
        "Correct these values or leave them empty. Names of classes need outcome 'classes' (G3NNClassifier)."
    )

    has_scales: ClassVar[bool] = True
    warps: tuple[Warp, ...] = ()

    @staticmethod
    def accepts(values: np.ndarray) -> np.ndarray:
        return np.abs(values) <= LARGEST

    @classmethod
    def of(cls, labels: np.ndarray, columns: int, options: object = None) -> Self:
        zeros, ones = (0.0,) * columns, (1.0,) * columns
        return cls(columns, options or RealOptions(), *_location_and_scale(labels), zeros, ones)

    def on_scales(self, warps: tuple[Warp, ...], labels: np.ndarray) -> Self:
        warped = replace(self, warps=warps).warped(labels)
        location, scale = _location_and_scale(warped)
        return replace(self, warps=warps, location=location, scale=scale)

    def warped(self, labels: np.ndarray) -> np.ndarray:
        return self._applied(labels)[0] if self.warps else labels

    def _applied(self, labels: np.ndarray) -> np.ndarray:
        """(2, m, T): g of the labels and its derivatives."""
        columns = [warp.apply(torch.from_numpy(labels[:, t])) for t, warp in enumerate(self.warps)]
        return np.stack([np.stack(column) for column in columns], axis=2)

    def unwarped(self, values: np.ndarray) -> np.ndarray:
        """What is infinite stays so, within the range of the target."""
        found = values.copy()
        for t, warp in enumerate(self.warps):
            made, lowest = warp.inverse(torch.from_numpy(values[:, t])).numpy(), 0.0 if warp.low >= 0 else -np.inf
            found[:, t] = np.where(np.isinf(values[:, t]), np.maximum(values[:, t], lowest), made)
        return found

    def unit_at(self, labels: np.ndarray) -> np.ndarray:
        if not self.warps:
            return super().unit_at(labels)
        known = np.where(np.isnan(labels), self.unwarped(np.array([self.location])), labels)
        return np.asarray(self.scale / self._applied(known)[1])

    def in_units(self, answer: Tensor) -> tuple[np.ndarray, np.ndarray]:
        if not self.warps:
            return super().in_units(answer)
        mean, deviation = self._unwarped_moments(answer.double().cpu())
        return mean.numpy(), deviation.numpy()

    def _unwarped_moments(self, answer: Tensor) -> Tensor:
        """(2, R, n, T): mean and standard deviation in the caller's unit."""
        mean, deviation = self.mean(answer), self.variance(answer).sqrt()
        parts = enumerate(zip(self.warps, self.location, self.scale, strict=True))
        columns = [warp.moments(at + by * mean[..., t], by * deviation[..., t]) for t, (warp, at, by) in parts]
        return torch.stack([torch.stack(column) for column in columns], dim=-1)

    @property
    def _noise_of_nodes(self) -> bool:
        return isinstance(self.options, RealOptions) and self.options.noise == "node"

    @property
    def num_scores(self) -> int:
        return 2 * self.columns if self._noise_of_nodes else self.columns

    def answer(self, scores: Tensor, start: Tensor | None) -> Tensor:
        assert start is not None
        mean = scores[:, :, : self.columns]
        log_variance = start.unsqueeze(1).expand_as(mean)
        if self._noise_of_nodes:
            log_variance = log_variance + scores[:, :, self.columns :]
        return torch.cat([mean, log_variance.clamp(*_LOG_VARIANCE)], dim=2)

    def log_prob(self, answer: Tensor, values: Tensor) -> Tensor:
        mean, log_variance = answer.chunk(2, dim=2)
        return -0.5 * (LOG_TWO_PI + log_variance + (values - mean).square() * (-log_variance).exp())

    def anywhere(self, values: Tensor) -> Tensor:
        """Cauchy, around the mean of the training labels."""
        return -(math.pi * (1 + values.square())).log()

    def mean(self, answer: Tensor) -> Tensor:
        return answer.chunk(2, dim=2)[0]

    def variance(self, answer: Tensor) -> Tensor:
        return answer.chunk(2, dim=2)[1].exp()

    def around(self, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """spread: variances in our unit."""
        log_variance = np.clip(np.log(np.maximum(spread, np.finfo(np.float64).tiny)), *_LOG_VARIANCE)
        return np.concatenate([self._standard(mean), np.broadcast_to(log_variance, mean.shape)], axis=1)

    def spread_around(self, mean: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Of a column without any known label it is the variance of the labels themselves."""
        known = ~np.isnan(labels)
        squares = np.where(known, ((labels - mean) / self.scale) ** 2, 0.0).sum(0)
        return np.where(known.any(0), squares / np.maximum(known.sum(0), 1), 1.0)

    def _noise_columns(self, answer: np.ndarray, usual: float) -> np.ndarray:
        """(n, T, 3): what noise may depend on: the mean, its square, and how far members are apart, which is in the
        variance. usual: a log-variance."""
        mean, log_variance = np.split(answer, 2, axis=1)
        mean = np.clip(mean, -_FAR, _FAR)
        return np.stack([mean, mean**2 - 1, np.clip(log_variance - usual, -_FAR, _FAR)], axis=2)

    def fit_scaling(self, answer: np.ndarray, labels: np.ndarray, nodes: np.ndarray | None = None) -> Scaling:
        """A temperature, and the noise of each node as far as these labels support that."""
        known, (mean, log_variance) = ~np.isnan(labels), np.split(answer, 2, axis=1)
        usual = float(log_variance[known].mean()) if known.any() else 0.0
        squares = (self.in_our_unit(labels) - mean) ** 2 * np.exp(-log_variance)
        about = None if nodes is None else np.broadcast_to(nodes[:, None], known.shape)[known]
        slopes = fit_noise(squares[known], self._noise_columns(answer, usual)[known], about)
        if slopes is None:
            return super().fit_scaling(answer, labels, nodes)
        offsets = np.array([*slopes, usual])
        return Scaling(self.temperature(self.scaled(answer, Scaling(offsets=offsets)), labels), offsets)

    def scaled(self, answer: np.ndarray, scaling: Scaling) -> np.ndarray:
        """offsets: (4,), the slopes of the log-variance in `_noise_columns`, and what is usual there."""
        if scaling.offsets is not None:
            *slopes, usual = scaling.offsets
            more = self._noise_columns(answer, usual) @ np.array(slopes)
            answer = answer + np.concatenate([np.zeros_like(more), more], axis=1)
        return super().scaled(answer, scaling)

    def score(self, rows: Tensor, values: Tensor, known: Tensor) -> Tensor:
        mean = self.mean(rows)
        if self.warps:
            # In the caller's unit, in which an observed value is an answer without doubt.
            certain = torch.cat([values, torch.full_like(values, -torch.inf)], dim=1)
            mean, values = self._unwarped_moments(rows)[0], self._unwarped_moments(certain.unsqueeze(0))[0, 0]
        centre = (values * known).sum(0) / known.sum(0).clamp_min(1)
        if self.warps:
            # Columns have different units then.
            unit = (((values - centre).square() * known).sum(0) / known.sum(0).clamp_min(1)).sqrt()
            unit = torch.where(unit > 0, unit, 1.0)
            mean, values, centre = mean / unit, values / unit, centre / unit
        missed = ((mean - values).square() * known).sum((1, 2))
        return 1 - missed / ((centre - values).square() * known).sum()

    def interval(self, mean: np.ndarray, deviation: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        from scipy.special import ndtri

        width = float(ndtri((1 + level) / 2)) * deviation
        return mean - width, mean + width
