"""One more factor of the joint model: what columns say about edges, given the labels of both ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from g3nn.graph.marks import Marks

_FAR = 4.0
"""Standard deviations at which numbers end: a normal distribution would believe one far value more than all others."""
_HEAVY = 2.0
"""Skewness or excess kurtosis from which on numbers are read as logarithms."""
_SURE = 1.0
"""By how many standard deviations a table has to explain a column better than chance."""
_ROUNDS = 2
"""Tables from a network's answers alone are blurred; those from what the marks make of them are less so."""


@dataclass(frozen=True, eq=False)
class EdgeMarks:
    """p(column_ij | y_i, y_j) of every column of every type of edges: of a number a normal distribution for each pair
    of classes, of categories their probabilities.

    log p is relative to the distribution of the column over all edges, so it is 0 where classes make no difference, and
    so are missing values. What is known of each pair of classes follows from the beliefs in closed form: with
    f = (1, m, m^2), or an indicator of each category, and n_kl = sum q_ik q_jl over the edges,

        E f | k, l = (sum q_ik q_jl f_ij + c E f) / (n_kl + c).

    c, as how many edges the mean of all counts, is the smaller the better pairs of classes explain the column, by the
    method of moments: where they explain no more than chance would, it is beyond all edges.
    """

    columns: tuple[_Column, ...]
    rows: int

    @classmethod
    def of(cls, marks: Marks, device: torch.device, dtype: torch.dtype) -> EdgeMarks:
        return cls(tuple(_columns(marks, device, dtype)), max(marks.pairs.shape[1], 1))

    def expected_log_prob(self, q: Tensor) -> Tensor:
        """(R,): E_q log p of all known values, exact, for beliefs q (R, n, K)."""
        total = q.new_zeros(q.shape[0])
        for column in self.columns:
            to_source, _ = column.messages(q, column.table(q))
            total = total + (q[:, column.i] * to_source).sum((1, 2))
        return total

    def heard(self, log_q: Tensor) -> Tensor:
        """(R, n, K): a network's answer with what the marks say, which is what mean-field inference makes of them:
        log q_i(k) + sum over edges and labels l of q_j(l) log p(m_ij | k, l), normalised."""
        q = beliefs = log_q.exp()
        for _ in range(_ROUNDS):
            found = log_q
            for column in self.columns:
                to_source, to_target = column.messages(q, column.table(beliefs))
                found = found.index_add(1, column.i, to_source).index_add(1, column.j, to_target)
            found = found.log_softmax(2)
            beliefs = found.detach().exp()
        return found


@dataclass(frozen=True, eq=False)
class _Column:
    """The known values of one column on M edges of one type. i, j: (M,) their ends. f: (M, F). base: (F,), the mean of
    f over all edges. number: whether f is (1, m, m^2). mirrored: whether both ends are alike."""

    i: Tensor
    j: Tensor
    f: Tensor
    base: Tensor
    number: bool
    mirrored: bool

    @torch.no_grad()
    def table(self, q: Tensor) -> Tensor:
        """(R, K, K, F): log p(m | k, l) is its product with f."""
        source, target, K = q[:, self.i], q[:, self.j], q.shape[2]
        sums = torch.stack([(source[:, :, [k]] * target).transpose(1, 2) @ self.f for k in range(K)], dim=1)
        squares = source.square().transpose(1, 2) @ target.square()
        if self.mirrored:
            both = source * target
            sums = (sums + sums.transpose(1, 2)) / 2
            squares = ((squares + squares.transpose(1, 2)) / 2 + both.transpose(1, 2) @ both) / 2
        spread = squares.unsqueeze(3) / self._count(sums).clamp_min(1e-12)
        free = 2 if self.number else len(self.base) - 1
        chance = free * (spread.sum((1, 2, 3)) - 1).clamp_min(0)
        gain = 2 * (sums * self._natural(sums, spread)).sum((1, 2, 3))
        beyond = gain - chance - _SURE * (2 * chance).sqrt()
        return self._natural(sums, spread * (len(self.f) * free / beyond.clamp_min(1e-6)).view(-1, 1, 1, 1))

    def _count(self, sums: Tensor) -> Tensor:
        return sums[..., :1] if self.number else sums.sum(3, keepdim=True)

    def _natural(self, sums: Tensor, c: Tensor) -> Tensor:
        mean = (sums + c * self.base) / (self._count(sums) + c).clamp_min(1e-12)
        if not self.number:
            return (mean / self.base).log()
        m, variance = mean[..., 1], (mean[..., 2] - mean[..., 1].square()).clamp_min(1e-3)
        parts = -(variance.log() + m.square() / variance) / 2, m / variance, (1 - 1 / variance) / 2
        return torch.stack(parts, dim=3)

    def messages(self, q: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        """(R, M, K) each: the expected log p for each label of the source, and of the target."""
        source, target, K = q[:, self.i], q[:, self.j], range(q.shape[2])
        to_source = sum(target[:, :, [k]] * (self.f @ table[:, :, k].transpose(1, 2)) for k in K)
        to_target = sum(source[:, :, [k]] * (self.f @ table[:, k].transpose(1, 2)) for k in K)
        return to_source, to_target  # type: ignore[return-value]


def _columns(marks: Marks, device: torch.device, dtype: torch.dtype) -> Iterator[_Column]:
    for c, size in enumerate(marks.categories):
        for type, directed in enumerate(marks.directed):
            known = np.flatnonzero(~np.isnan(marks.values[:, c]) & (marks.types == type))
            values = marks.values[known, c]
            if len(np.unique(values)) < 2:  # It says nothing.
                continue
            if size:
                f = np.eye(size)[values.astype(np.int64)]
                f = f[:, f.any(axis=0)]
            else:
                m = _standard(values)
                f = np.stack([np.ones_like(m), m, m**2], axis=1)
            i, j = (torch.from_numpy(end[known]).to(device) for end in marks.pairs)
            known_f, base = (torch.from_numpy(part).to(device, dtype) for part in (f, f.mean(axis=0)))
            yield _Column(i, j, known_f, base, not size, not directed)


def _standard(values: np.ndarray) -> np.ndarray:
    """With mean 0 and variance 1, on a scale on which the tails are not heavy."""
    z = (values - values.mean()) / values.std()
    if max(abs((z**3).mean()), (z**4).mean() - 3) > _HEAVY:
        unit = np.median(np.abs(values[values != 0]))
        z = np.sign(values) * np.log1p(np.abs(values) / unit) if values.min() <= 0 else np.log(values)
        z = (z - z.mean()) / z.std()
    z = z.clip(-_FAR, _FAR)
    return np.asarray((z - z.mean()) / z.std())
