"""Calibration: measures and how certain they are, temperature scaling with offsets of classes, and conformal sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

BINS = 15
"""Equal-width bins of confidence, as is usual in the literature."""

TEMPERATURES = (0.05, 20.0)
"""The lowest and the highest temperature that is tried."""

WIDTHS = (0.0, 0.1, 0.2, 0.5, 1.0)
"""Standard deviations that are tried for the offsets of classes; 0 means no offsets."""

NOISE_WIDTHS = (0.0, 0.1, 0.3)
"""Standard deviations that are tried for what noise depends on; 0 means on nothing."""

FEW_VALIDATION_NODES = 30
"""With fewer, nothing that is chosen or measured by them can be relied on."""

_FOLDS, _REPEATS = 5, 4
_STEPS, _CLOSE, _AT_ONCE = 100, 1e-5, 1 << 18
"""Of Newton's method: the most steps, how short the last one is, and how many numbers are held at once."""
_LEAST_DOUBT = 1e-4
"""Less makes no difference."""
_DOUBTS = np.sin(np.pi / 2 * (np.arange(40) + 0.5) / 40) ** 2
"""Quantiles of the arcsine distribution."""
_LEVELS, _REFINED, _LEAST_SPREAD = np.linspace(-3, 3, 31), 2, 0.02
"""Of log T, in standard deviations: first of the prior, then of what labels leave of it."""


@dataclass(frozen=True)
class Bin:
    """Nodes with a confidence above `low` and at most `high`, or a degree from `low` to `high`.

    accuracy: the share of right answers. confidence: the mean of the largest probability.
    """

    low: float
    high: float
    nodes: int
    accuracy: float
    confidence: float


def reliability_bins(probabilities: np.ndarray, labels: np.ndarray, bins: int = BINS) -> list[Bin]:
    """Nodes by confidence, in bins of equal width; empty bins are left out. probabilities (n, K), labels (n,)."""
    levels = np.clip(np.ceil(probabilities.max(1).astype(np.float64) * bins).astype(np.int64) - 1, 0, bins - 1)
    return _binned(levels, lambda level: (level / bins, (level + 1) / bins), probabilities, labels)


def degree_bins(
    probabilities: np.ndarray, labels: np.ndarray, degrees: np.ndarray, most: int | None = None
) -> list[Bin]:
    """Nodes by degree, in bins that double: 0, 1, 2, 3 to 4, 5 to 8, and so on; empty bins are left out.

    probabilities (n, K), labels and degrees (n,). With `most` bins the last one holds all higher degrees.
    """
    levels = np.where(degrees > 0, np.ceil(np.log2(np.maximum(degrees, 1))) + 1, 0).astype(np.int64)
    last = int(levels.max(initial=0)) if most is None else most - 1
    highest = int(degrees.max(initial=0))

    def limits(level: int) -> tuple[int, int]:
        low, high = (level, level) if level < 2 else (2 ** (level - 2) + 1, 2 ** (level - 1))
        return low, highest if level == last else min(high, highest)

    return _binned(np.minimum(levels, last), limits, probabilities, labels)


def _binned(
    levels: np.ndarray, limits: Callable[[int], tuple[float, float]], probabilities: np.ndarray, labels: np.ndarray
) -> list[Bin]:
    """The nodes of each level (n,) as one bin."""
    right, confidence = probabilities.argmax(1) == labels, probabilities.max(1).astype(np.float64)
    members = [(level, levels == level) for level in np.unique(levels).tolist()]
    return [
        Bin(*limits(level), int(inside.sum()), float(right[inside].mean()), float(confidence[inside].mean()))
        for level, inside in members
    ]


def expected_calibration_error(probabilities: np.ndarray, labels: np.ndarray, bins: int = BINS) -> float:
    """Mean distance between accuracy and confidence over the bins, weighted by their nodes."""
    parts = reliability_bins(probabilities, labels, bins)
    return sum(part.nodes * abs(part.accuracy - part.confidence) for part in parts) / len(labels)


def wilson_interval(share: float, size: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a share of `size` independent nodes, rounded to whole nodes."""
    from scipy.stats import binomtest

    interval = binomtest(round(share * size), size).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)


def brier_score(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Mean squared distance between the probabilities and the one-hot label: 0 is perfect, 2 the worst."""
    missed = probabilities.astype(np.float64)
    missed[np.arange(len(labels)), labels] -= 1.0
    return float((missed**2).sum(1).mean())


def log_seen(log_prob: np.ndarray, labels: np.ndarray, table: np.ndarray | None = None) -> np.ndarray:
    """(n,): log p of the labels (n,) from log_prob (n, K). table: (K, K), T[k, s] = p(seen = s | true = k), where
    labels may be wrong; the true class is then summed out (forward correction)."""
    if table is None:
        return np.asarray(log_prob[np.arange(len(labels)), labels])
    with np.errstate(divide="ignore"):
        return np.asarray(np.logaddexp.reduce(log_prob + np.log(table.T[labels]), axis=1))


def right_share(agree: float, table: np.ndarray) -> float:
    """The share of right answers among answers that agree with this share of the labels, where labels may be wrong: a
    share a of right ones agrees with a (1 - e) + (1 - a) e / (K - 1) of the labels, e being the mean share of wrong
    ones in the table."""
    wrong = 1 - float(np.diag(table).mean())
    by_chance = wrong / (len(table) - 1)
    return (agree - by_chance) / (1 - wrong - by_chance)


def negative_log_likelihood(log_prob: np.ndarray, labels: np.ndarray, table: np.ndarray | None = None) -> float:
    """Mean of - log p(label); see `log_seen`."""
    return float(-log_seen(log_prob, labels, table).mean())


def best_temperature(loss: Callable[[float], float], labels: int) -> float:
    """The temperature that minimises labels * loss(T) + (log T)^2 / 2, a standard normal prior on log T.

    With hundreds of labels the prior hardly matters; with a handful that are all right, T would fall to the lowest
    value that is tried without it.
    """
    if labels == 0:
        return 1.0
    from scipy.optimize import minimize_scalar

    def cost(log_temperature: float) -> float:
        value = loss(math.exp(log_temperature))
        return labels * value + log_temperature**2 / 2 if math.isfinite(value) else math.inf

    bounds = tuple(math.log(limit) for limit in TEMPERATURES)
    return math.exp(float(minimize_scalar(cost, bounds=bounds, method="bounded").x))


def fit_temperature(log_prob: np.ndarray, labels: np.ndarray, table: np.ndarray | None = None) -> float:
    """The `best_temperature` of answers log_prob (n, K) on labels (n,); table: see `log_seen`."""
    return best_temperature(lambda T: negative_log_likelihood(Scaling(T)(log_prob), labels, table), len(labels))


@dataclass(frozen=True, eq=False)
class Scaling:
    """Probabilities made proportional to p_k^(1 / temperature) exp(offset_k). offsets: (K,), or None for zeros; of
    numbers, how the variance depends on the answer (see `Real.scaled`), or None if it does not.

    Above 1 a temperature makes them less certain, below 1 more certain. base: (K,), doubt times the frequencies of the
    classes, where doubt is the probability that nothing but these was learned: then p becomes (1 - doubt) p + base.
    """

    temperature: float = 1.0
    offsets: np.ndarray | None = None
    base: np.ndarray | None = None

    def warmer(self, factor: float) -> Scaling:
        """With a temperature that is so many times higher."""
        return replace(self, temperature=self.temperature * factor)

    def __call__(self, log_prob: np.ndarray) -> np.ndarray:
        """(n, K) log-probabilities."""
        scores = log_prob.astype(np.float64) / self.temperature
        scaled = _log_softmax(scores if self.offsets is None else scores + self.offsets)
        return scaled if self.base is None else np.log((1 - self.base.sum()) * np.exp(scaled) + self.base)


def _log_softmax(scores: np.ndarray) -> np.ndarray:
    """(n, K) over classes, as scipy has it but without the checks that take longer than the work itself."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def fit_scaling(
    log_prob: np.ndarray, labels: np.ndarray, table: np.ndarray | None = None, nodes: np.ndarray | None = None
) -> Scaling:
    """A temperature, and an offset for each class as far as these labels (n,) support one; log_prob (n, K). table: see
    `log_seen`. nodes: (n,), of which some may occur more than once.

    Labels to train on are often taken in equal numbers from every class, whatever their share in the graph; offsets
    make up for that. They have a normal prior of the `narrowest` width that is good enough when each fold of the labels
    is scaled by what the others taught. A width of 0, which is a temperature alone, is among those tried.
    """
    own = _places(nodes, len(labels))
    count = int(own.max(initial=-1)) + 1
    # Copies of a node weigh it, but are no further evidence.
    temperature = best_temperature(lambda T: negative_log_likelihood(Scaling(T)(log_prob), labels, table), count)
    if count < 2 * _FOLDS:
        return Scaling(temperature)
    each = count / len(labels)
    rng = np.random.default_rng(0)
    shuffles = [rng.permutation(count)[own] % _FOLDS for _ in range(_REPEATS)]
    folds = np.stack([shuffle == one for shuffle in shuffles for one in range(_FOLDS)])

    def losses(width: float) -> np.ndarray:
        found = np.zeros(len(labels))
        for held, scaling in zip(
            folds, _modes(log_prob, labels, ~folds * each, width, temperature, table), strict=True
        ):
            found[held] -= log_seen(scaling(log_prob[held]), labels[held], table)
        return found

    width = narrowest({width: losses(width) for width in WIDTHS}, own)
    every = np.full((1, len(labels)), each)
    return _modes(log_prob, labels, every, width, temperature, table)[0] if width else Scaling(temperature)


def _places(nodes: np.ndarray | None, n: int) -> np.ndarray:
    """(n,): which of the distinct nodes each row is about."""
    return np.arange(n) if nodes is None else np.unique(nodes, return_inverse=True)[1]


def narrowest(losses: Mapping[float, np.ndarray], own: np.ndarray) -> float:
    """The narrowest width whose mean of losses (n,) exceeds the lowest one by no more than its standard error.
    own: (n,), which node a row is about: rows about one node are no independent evidence."""
    lowest = min(losses.values(), key=lambda one: float(one.mean()))

    def is_close(width: float) -> bool:
        more = losses[width] - lowest
        error = np.bincount(own, more - more.mean())
        return bool(more.sum() <= math.sqrt(float(error @ error)))

    return min(filter(is_close, losses))


def _modes(
    log_prob: np.ndarray,
    labels: np.ndarray,
    used: np.ndarray,
    width: float,
    temperature: float,
    table: np.ndarray | None,
) -> list[Scaling]:
    """For each row of `used` (F, n), which says how much labels count, the mode of the posterior, with the prior of
    `fit_temperature` and offsets of a given width: by Newton's method, damped where a step does not lower the cost.
    temperature: one to begin with."""
    parts = np.array_split(used, min(len(used), -(-len(used) * log_prob.size // _AT_ONCE)))
    if len(parts) > 1:
        return [one for part in parts for one in _modes(log_prob, labels, part, width, temperature, table)]
    seen = np.eye(log_prob.shape[1]) if table is None else table
    given = log_prob.T.astype(np.float64), seen[:, labels], table is None, used, width
    point, damping = np.zeros((len(used), 1 + log_prob.shape[1])), np.zeros(len(used))
    point[:, 0] = math.log(temperature)
    cost, slope, curvature = _posterior(point, *given)
    for _ in range(_STEPS):
        damped = curvature + damping[:, None, None] * np.eye(point.shape[1])
        tried = point - np.linalg.solve(damped, slope[:, :, None])[:, :, 0]
        tried[:, 0] = np.clip(tried[:, 0], *np.log(TEMPERATURES))
        found = _posterior(tried, *given)
        lower, steps = found[0] <= cost, abs(tried - point).max(1)
        for old, new in zip((point, cost, slope, curvature), (tried, *found), strict=True):
            old[lower] = new[lower]
        if (steps < _CLOSE).all():
            break
        damping = np.where(lower, damping / 10, np.maximum(10 * damping, 1.0))
    return [Scaling(math.exp(one[0]), width * one[1:]) for one in point]


def _posterior(
    point: np.ndarray, log_prob: np.ndarray, seen: np.ndarray, right: bool, used: np.ndarray, width: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The negative logarithm of the posterior (F,) at (log T, offsets / width), for each row of point (F, 1 + K), with
    its gradient and curvature. log_prob (K, n); seen (K, n): p(given label | true = k); right: labels are never wrong;
    used (F, n).

    At a temperature at its limit a gradient that leads beyond it is left out.
    """
    scaled = log_prob * np.exp(-point[:, :1, None])
    made = scaled + width * point[:, 1:, None]
    made -= made.max(axis=1, keepdims=True)
    p = np.exp(made)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    if right:
        true, likelihood = seen, (made * seen).sum(1) - np.log(total[:, 0])
    else:
        # What labels probably are, by these answers.
        true = p * seen
        chance = np.maximum(true.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        true, likelihood = true / chance, np.log(chance[:, 0])
    cost = (point**2).sum(1) / 2 - (used * likelihood).sum(1)
    slope, curvature = point.copy(), np.tile(np.eye(point.shape[1]), (len(point), 1, 1))
    each = np.arange(1, point.shape[1])
    for sign, q in ((1, p * used[:, None]), (-1, true * used[:, None])):
        count, moment = q.sum(2), q * scaled
        mean = moment.sum(1)
        slope[:, 0] -= sign * mean.sum(1)
        slope[:, 1:] += sign * width * count
        if sign < 0 and right:
            continue
        curvature[:, 0, 0] += sign * (np.einsum("fkn,fkn->f", moment, scaled) - (mean**2).sum(1))
        curvature[:, 0, 1:] += sign * width * ((q @ mean[:, :, None])[:, :, 0] - moment.sum(2))
        curvature[:, each, each] += sign * width**2 * count
        curvature[:, 1:, 1:] -= sign * width**2 * (q @ q.transpose(0, 2, 1))
    curvature[:, 0, 0] += np.maximum(point[:, 0] - slope[:, 0], -1)
    curvature[:, 1:, 0] = curvature[:, 0, 1:]
    stuck = np.isin(point[:, 0], np.log(TEMPERATURES)) & (slope[:, 0] * point[:, 0] < 0)
    slope[stuck, 0] = 0
    curvature[stuck, 0, 1:] = curvature[stuck, 1:, 0] = 0
    return cost, slope, curvature


def base_rates(labels: np.ndarray, classes: int, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """(K,) expected frequencies of the classes, and the log-evidence of the labels (n,) without any other model.
    weights: (n,), how often each label counts.

    Frequencies are all alike, or drawn from a flat Dirichlet distribution; both are equally likely beforehand. So few
    labels of which some more are of one class do not make it the likelier one.
    """
    counts = np.bincount(labels, weights, minlength=classes)
    n = float(counts.sum())
    alike = -n * math.log(classes)
    drawn = math.lgamma(classes) - math.lgamma(classes + n) + sum(math.lgamma(count + 1) for count in counts.tolist())
    evidence = float(np.logaddexp(alike, drawn))
    share = math.exp(drawn - evidence)
    return (1 - share) / classes + share * (counts + 1) / (n + classes), evidence - math.log(2)


@dataclass(frozen=True, eq=False)
class Validated:
    """Answers (n, width) about nodes whose labels, (n,) or (n, T), are known. weights: (n,), how much labels count, all
    alike if there are none. known: all labels there are, whose frequencies are the base rates; None: these alone."""

    answer: np.ndarray
    labels: np.ndarray
    weights: np.ndarray | None = None
    known: np.ndarray | None = None


def with_doubt(scaling: Scaling, known: Validated, tried: int, table: np.ndarray | None = None) -> Scaling:
    """The scaling with no more confidence than labels (n,) support, by its answers (n, K) to them.

    A label is drawn from the scaled answer, or with probability d from the base rates. A priori log T is normal and d
    has an arcsine distribution, Beta(1/2, 1/2); or nothing was learned, d = 1. The latter is as probable, and the
    former is divided among the models `tried`, one of which these labels chose. T becomes exp E[log T], and the doubt
    E[d | T]. The mean of the weights is taken to be 1. Without any label the doubt is one half.
    """
    log_prob, labels, n = known.answer, known.labels, len(known.labels)
    weights = np.ones(n) if known.weights is None else known.weights * (n / max(float(known.weights.sum()), 1e-300))
    rates, without = base_rates(labels, log_prob.shape[1], weights)
    if known.known is not None:
        rates, _ = base_rates(known.known, log_prob.shape[1], np.ones(len(known.known)))
    if not n:
        return replace(scaling, base=rates / 2)
    centre, spread = 0.0, 1.0
    for _ in range(_REFINED):
        levels = np.clip(centre + spread * _LEVELS, *np.log(TEMPERATURES))
        scalings = [replace(scaling, temperature=math.exp(level), base=None) for level in levels]
        right = np.exp([log_seen(one(log_prob), labels, table) for one in scalings])
        likelihood = [np.log((1 - d) * right + d * rates[labels]) @ weights for d in _DOUBTS]
        posterior = np.stack(likelihood, axis=1) - levels[:, None] ** 2 / 2
        # The grid over T is coarse at first; then it covers what is left of it.
        share = np.exp(posterior - posterior.max()).sum(1)
        share /= share.sum()
        centre, before = float(share @ levels), spread
        spread = math.sqrt(float(share @ (levels - centre) ** 2)) + before * _LEAST_SPREAD
    total = float(np.logaddexp.reduce(posterior.ravel()))
    there = np.exp(posterior[np.abs(levels - centre).argmin()] - posterior.max())
    learned = float(there @ _DOUBTS / there.sum())
    step = math.log(before * (_LEVELS[1] - _LEVELS[0]) / math.sqrt(2 * math.pi) / len(_DOUBTS))
    nothing = 1 / (1 + math.exp(min(total + step - math.log(max(tried, 1)) - without, 100.0)))
    doubt = nothing + (1 - nothing) * learned
    scaling = replace(scaling, temperature=math.exp(centre))
    return scaling if doubt < _LEAST_DOUBT else replace(scaling, base=doubt * rates)


def fit_noise(squares: np.ndarray, columns: np.ndarray, nodes: np.ndarray | None = None) -> np.ndarray | None:
    """(C,): how the logarithm of the variance of each value rises with columns (m, C) of what is known about it, as far
    as values that had no say support it; None if they do not. squares: (m,), squared errors over claimed variances.
    nodes: (m,), of which some may occur more than once.

    Coefficients have a normal prior of the `narrowest` width that is good enough on folds that were left out.
    """
    own = _places(nodes, len(squares))
    count = int(own.max(initial=-1)) + 1
    if count < FEW_VALIDATION_NODES:
        return None
    fold = np.random.default_rng(0).permutation(count)[own] % _FOLDS
    losses = {width: np.empty(len(squares)) for width in NOISE_WIDTHS}
    for width, loss in losses.items():
        for one in range(_FOLDS):
            held, rest = fold == one, fold != one
            level, *slopes = _noise(squares[rest], columns[rest], width)
            log_variance = level + columns[held] @ slopes
            loss[held] = 0.5 * (log_variance + squares[held] * np.exp(-log_variance))
    width = narrowest(losses, own)
    return _noise(squares, columns, width)[1:] if width else None


def _noise(squares: np.ndarray, columns: np.ndarray, width: float) -> np.ndarray:
    """(1 + C,): the mode of the posterior of a level, with the prior of `fit_temperature`, and of the slopes."""
    from scipy.optimize import minimize

    inputs = np.concatenate([np.ones((len(squares), 1)), width * columns], axis=1)

    def cost(point: np.ndarray) -> tuple[float, np.ndarray]:
        log_variance = np.clip(inputs @ point, -20.0, 20.0)
        ratio = squares * np.exp(-log_variance)
        return float(0.5 * (log_variance + ratio).sum() + point @ point / 2), 0.5 * (1 - ratio) @ inputs + point

    start = np.zeros(inputs.shape[1])
    start[0] = math.log(max(float(squares.mean()), 1e-12))
    found = minimize(cost, start, jac=True, method="L-BFGS-B").x
    return np.concatenate([found[:1], width * found[1:]])


def conformal_sets(
    probabilities: np.ndarray, scores: np.ndarray, alpha: float, labels: np.ndarray | None = None
) -> np.ndarray:
    """(m, K) booleans: the classes that are no stranger than all but a share alpha of the `scores` (split conformal).

    If the nodes of the scores and of the answers are alike, a set holds the true class with probability 1 - alpha or
    more. With fewer than 1 / alpha - 1 scores nothing can be left out. The likeliest class is always in its set.
    labels: of the nodes of the scores, if all this shall hold for each class by itself.
    """
    threshold: float | np.ndarray = conformal_threshold(scores, alpha)
    if labels is not None:
        each = range(probabilities.shape[1])
        threshold = np.array([conformal_threshold(scores[labels == k], alpha) for k in each])
    sets: np.ndarray = 1.0 - probabilities <= threshold
    sets[np.arange(len(sets)), probabilities.argmax(1)] = True
    return sets


def conformal_threshold(scores: np.ndarray, alpha: float) -> float:
    """The quantile 1 - alpha of the scores and one more at infinity."""
    rank = math.ceil((len(scores) + 1) * (1 - alpha))
    return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else math.inf
