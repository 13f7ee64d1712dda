"""Draws new graphs from the fitted model without looking at every pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from g3nn.audit.latent import LatentGraph, row_products
from g3nn.audit.observed import Observed
from g3nn.audit.survey import Labels, Survey, is_non_edge, plug_in
from g3nn.parse import distinct

_CHUNK = 1 << 17
"""Pairs held at once."""

_MARGIN = np.log(2.0)
"""How far above the highest logit that was met in a block one is still drawn exactly."""


@dataclass(frozen=True, eq=False)
class SampledGraph:
    """edges: (2, E) int64, in the form of `NodeTask.edges`. labels: (n,), those that the edges were drawn for."""

    edges: np.ndarray
    labels: np.ndarray


def sample_graph(
    graph: LatentGraph, survey: Survey, q: np.ndarray, observed: Observed, fold: np.ndarray, rng: np.random.Generator
) -> SampledGraph:
    """Labels from q, then every pair independently with its probability at the observed density.

    Exact for observed edges and in the blocks where the model puts edges: pair by pair. In the others, pairs receive
    hits at a common rate and keep one with the proportion of their own rate to it (as in `data.random_graph`). That
    rate comes from a sample of the block, so the few pairs above it are drawn too rarely.
    """
    labels, shift = Labels(q).draw(np.arange(len(q)), rng), survey.shift
    i, j = observed.edges
    logits = graph.base_of(observed.edges, fold) + graph.table[fold, labels[i], labels[j]] + shift
    found = [observed.codes(observed.edges[:, rng.random(fold.size) < expit(logits)])]
    ends = plug_in(graph, np.eye(q.shape[1])[labels])
    found += [_free(pairs, observed) for pairs in _near(survey, ends, rng)]
    found += [_free(pairs, observed) for pairs in _far(survey, ends, rng)]
    return SampledGraph(observed.pairs(distinct(np.concatenate(found))), labels)


def _free(pairs: np.ndarray, observed: Observed) -> np.ndarray:
    return observed.codes(pairs[:, is_non_edge(pairs, observed)])


def _near(survey: Survey, ends: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    found = []
    for block in survey.near.tolist():
        i, j, scores = survey.blocks.scores(block, *ends)
        row, column = np.nonzero(rng.random(scores.shape, dtype=np.float32) < expit(scores + survey.shift))
        found.append(np.stack([i[row], j[column]]))
    return found


def _far(survey: Survey, ends: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """A pair of logit t is linked if it receives at least one of a Poisson number of hits with mean log(1 + e^t)."""
    highest = np.logaddexp(0.0, survey.peaks + survey.shift + _MARGIN)
    hits = rng.poisson(highest[survey.far] * survey.blocks.pairs[survey.far])
    block = np.repeat(survey.far, hits)
    found = []
    for start in range(0, block.size, _CHUNK):
        part = block[start : start + _CHUNK]
        pairs = survey.blocks.draw(part, rng)
        rate = np.logaddexp(0.0, row_products(*ends, *pairs) + survey.shift)
        found.append(pairs[:, rng.random(part.size) * highest[part] < rate])
    return found
