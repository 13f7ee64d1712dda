"""Trains the likelihood `nlsm` on the edges of a task, with given beliefs about its labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.utils.extmath import randomized_svd
from torch import Tensor

from g3nn.base.options import flag, integer, number
from g3nn.base.parse import Matrix
from g3nn.base.threads import enough_for
from g3nn.graph.task import NodeTask
from g3nn.model.generative import GenerativeModel
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods.nlsm import NeighbourLatentSpace, NeighbourOptions
from g3nn.model.networks import ReplicaCount
from g3nn.model.objective import Objective
from g3nn.model.posteriors import LabelPosterior
from g3nn.model.priors.uniform import UniformPrior
from g3nn.model.replicas import Noise, Replicas, Sizes
from g3nn.training import TrainingOptions
from g3nn.training.progress import Course
from g3nn.training.stack import LAST, Stack


@dataclass(frozen=True)
class AuditOptions(NeighbourOptions):
    latent: int = integer(32, "number of dimensions of the latent space", low=1)
    latent_dropout: float = number(0.5, "share of the features left out of each step", low=0, high=0.95)
    hops: int = integer(2, "how many steps away neighbours' features help to place a node", low=0, high=2)
    degrees: bool = flag(True, "let nodes with many other edges have more edges")
    coordinates: int = integer(128, "features are reduced to this many directions, if there are more", low=1)
    replicas: int = integer(3, "models fitted with different seeds, whose log-odds are averaged", low=1)
    epochs: int = integer(100, "updates of each model", low=1)
    edges_per_step: int = integer(4096, "how many edges, and as many non-edges, one update looks at; 0: all", low=0)
    lr: float = number(0.03, "learning rate of Adam", low=0, open_ends=True)
    weight_decay: float = number(2e-4, "L2 penalty on all parameters", low=0)


class GivenBeliefs(LabelPosterior):
    """q(Y | X, G) that was found before: (n, K), nothing to learn."""

    uses_graph: ClassVar[bool] = False

    def __init__(self, sizes: Sizes, replicas: Replicas, q: Tensor) -> None:
        super().__init__(sizes, replicas)
        self.each = ReplicaCount(replicas)
        self._log_q = q.clamp_min(torch.finfo(q.dtype).tiny).log()

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        answer: Tensor = self.each(self._log_q)
        return answer


def fit_scores(
    task: NodeTask, q: np.ndarray, options: AuditOptions, seed: int, device: torch.device, progress: Course
) -> dict[str, np.ndarray]:
    """What the likelihood says of every pair after training on the graph term alone, with q (n, K) held fixed: left,
    right and table of `PairScores`."""
    # Nothing is chosen by validation, but the trainer scores validation nodes: their likeliest groups stand in.
    labels = task.labels.copy()
    labels[task.val] = q[task.val].argmax(1)
    features = coordinates(task.features, options.coordinates)
    inputs = Inputs.of(replace(task, features=features, labels=labels), device)
    replicas = Replicas(tuple(np.random.default_rng(seed).integers(2**62, size=options.replicas).tolist()))
    sizes = Sizes.of(inputs.task)
    likelihood = NeighbourLatentSpace(sizes, replicas.within("likelihood"), options)
    beliefs = GivenBeliefs(sizes, replicas, torch.from_numpy(q).to(device, inputs.dtype))
    objective = Objective(
        eta=0.0, kl_weight=0.0, prior_weight=0.0, feature_weight=0.0, edges_per_step=options.edges_per_step
    )
    training = TrainingOptions(lr=options.lr, weight_decay=options.weight_decay, epochs=options.epochs, keep=LAST)
    model = GenerativeModel(beliefs, likelihood, UniformPrior(sizes, replicas))
    stack = Stack(model, objective, inputs, replicas, training)
    with enough_for(inputs.task.extent, replicas.size), progress.training(options.epochs) as watch:
        while not stack.finished:
            stack.step()
            watch(stack, 0)
        stack.end()
        return _scores(likelihood, inputs)


@torch.no_grad()
def _scores(likelihood: NeighbourLatentSpace, inputs: Inputs) -> dict[str, np.ndarray]:
    """The mean of the replicas' log-odds, which is again an inner product and a table."""
    left, right = likelihood.ends(likelihood.node_state(inputs, None))
    return {
        "left": torch.cat(list(left / len(left)), dim=1).cpu().numpy(),
        "right": torch.cat(list(right), dim=1).cpu().numpy(),
        "table": likelihood.table().mean(0).cpu().numpy(),
    }


def coordinates(features: Matrix, size: int) -> np.ndarray:
    """(n, r) float32 with r <= size + 1: features of equal variance, or their leading directions if there are more
    than `size`, in rows of length one.

    Rows of sparse features have length one before they are reduced: a text counts by what is in it, not by how long it
    is. Dense ones are centred and get a constant coordinate, so that small rows can be told from large ones.
    """
    sparse = sp.issparse(features)
    scaled = _scaled(features)
    r = min(size, *features.shape)
    if r < features.shape[1]:
        directions, lengths, _ = randomized_svd(scaled, r, random_state=0)
        reduced = directions * lengths
    else:
        reduced = scaled.toarray() if sparse else scaled
    if not sparse:
        reduced = np.concatenate([reduced, np.ones((len(reduced), 1))], axis=1)
    return np.ascontiguousarray(normalize(reduced), dtype=np.float32)


def unit_rows(features: Matrix) -> Matrix:
    """(n, d): features of equal variance, in rows of length one; dense ones are centred."""
    return normalize(_scaled(features))


def _scaled(features: Matrix) -> Matrix:
    sparse = sp.issparse(features)
    scaled = StandardScaler(with_mean=not sparse).fit_transform(features)
    return normalize(scaled) if sparse else scaled / np.sqrt(features.shape[1])
