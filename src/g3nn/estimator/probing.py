"""Which views of the features suit a graph, found out with a network that is quickly trained."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from g3nn.base.errors import G3NNWarning
from g3nn.estimator.panel import Candidate
from g3nn.kernels.sparse import neighbour_mean

if TYPE_CHECKING:
    from g3nn.estimator.search import Search

_PROBE = Candidate("mlp", "elbo", {"hidden": 64})
_PROBE_EPOCHS = 100
"""Which views suit a graph is found out with a network that is quickly trained: on labelled nodes alone."""


def ranked_views(search: Search) -> list[str]:
    """The views, that with the lowest loss first.

    A perceptron on the features of a node and their mean over its neighbours, which needs the labelled nodes only.
    """
    if len(search.views) == 1:
        return list(search.views)
    task, losses = search.task, dict[str, float]()
    search.progress.stage("trying forms of the features", 0.05, len(search.views))
    nodes = np.union1d(task.train, task.val)
    around = neighbour_mean(task.edges, task.num_nodes, task.weights)[nodes]
    labelled = replace(
        task,
        edges=task.edges[:, :0],
        weights=None,
        beliefs=None,
        labels=task.labels[nodes],
        train=np.searchsorted(nodes, task.train),
        val=np.searchsorted(nodes, task.val),
    )
    plan = _PROBE.plan(
        {**search.common, "epochs": min(_PROBE_EPOCHS, int(search.common["epochs"]))}, (search.seeds[0],), search.device
    )
    for view in search.views:
        features = search.seen(view).features
        stacked = sp.hstack if sp.issparse(features) else np.hstack
        near = stacked([features[nodes], around @ features])
        near = sp.csr_array(near) if sp.issparse(near) else near.astype(np.float32)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="the graph has no edges", category=G3NNWarning)
            found = plan.fit(replace(labelled, features=near), search.progress, None)
        losses[view] = float(found.val_loss[0]) if np.isfinite(found.val_loss[0]) else math.inf
    return sorted(losses, key=lambda view: losses[view])
