"""Draws new graphs from what was learned, without looking at every pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from g3nn.base.parse import distinct
from g3nn.queries.scores import ObservedEdges, PairScores, row_products
from g3nn.queries.survey import Labels, Survey

_CHUNK = 1 << 17
"""Pairs held at once."""

_MARGIN = np.log(2.0)
"""Pairs are drawn exactly up to this far above the highest log-odds met in their tile."""


@dataclass(frozen=True, eq=False)
class SampledGraph:
    """edges: (2, E) int64, in the form of `NodeTask.edges`. labels: (n,): the labels that the edges were drawn for."""

    edges: np.ndarray
    labels: np.ndarray


def sample_graph(
    scores: PairScores, survey: Survey, q: np.ndarray, observed: ObservedEdges, rng: np.random.Generator
) -> SampledGraph:
    """Labels from q, then every pair independently with its probability at the observed density: for these labels, or
    for observed edges whatever the labels are.

    Exact for observed edges and in the tiles where edges are likely: pair by pair. In the others, pairs receive hits at
    a common rate and keep one with the proportion of their own rate to it (as in `data.random_graph`). That rate comes
    from a sample of the tile, so the few pairs above it are drawn too rarely.
    """
    labels = Labels(q).draw(np.arange(len(q)), rng)
    again = rng.random(scores.odds.size) < expit(scores.odds + survey.shift)
    ends = scores.plug_in(np.eye(q.shape[1])[labels])
    others = (*_near(survey, ends, rng), *_far(survey, ends, rng))
    drawn = np.concatenate([observed.edges[:, again], *(pairs[:, observed.is_free(pairs)] for pairs in others)], axis=1)
    return SampledGraph(observed.pairs(distinct(observed.codes(drawn))), labels)


def _near(survey: Survey, ends: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> Iterator[np.ndarray]:
    for tile in survey.near.tolist():
        i, j, logits = survey.tiles.scores(tile, *ends)
        row, column = np.nonzero(rng.random(logits.shape, dtype=np.float32) < expit(logits + survey.shift))
        yield np.stack([i[row], j[column]])


def _far(survey: Survey, ends: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> Iterator[np.ndarray]:
    """A pair with log-odds t is linked if it receives at least one of a Poisson number of hits of mean log(1 + e^t)."""
    highest = np.logaddexp(0.0, survey.peaks + survey.shift + _MARGIN)
    hits = rng.poisson(highest[survey.far] * survey.tiles.pairs[survey.far])
    tiles = np.repeat(survey.far, hits)
    for start in range(0, tiles.size, _CHUNK):
        chunk = tiles[start : start + _CHUNK]
        pairs = survey.tiles.draw(chunk, rng)
        rate = np.logaddexp(0.0, row_products(*ends, pairs) + survey.shift)
        yield pairs[:, rng.random(chunk.size) * highest[chunk] < rate]
