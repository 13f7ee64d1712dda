"""The models that are worth trying where labels are classes."""

from __future__ import annotations

from typing import Any

from g3nn.graph.outcomes.base import PanelModel

_WIDE: dict[str, Any] = {"hidden": 64}
_TWO_PASSES: dict[str, Any] = {"samples": 2, "consistency_weight": 1.0}
_NORMALISED: dict[str, Any] = {
    "order": 5,
    "dropout": 0.8,
    "feature_dropout": 0.6,
    "sharpening": 0.2,
    "normalise": True,
    "lr": 0.05,
}
"""Parts of the options of the panel's models."""

_PAIRED_CLASSES = 12
"""Up to so many the panel tries models that look at all pairs of classes. On 1,000 nodes and 3,000 edges an epoch of
blsm-gcn takes 5 times as long as one of sbm-gcn with 7 classes, 23 times with 32, and 146 times with 100."""


def models_for_classes(columns: int) -> tuple[PanelModel, ...]:
    """Models for homophilous and heterophilous graphs, and for edges that say nothing, the most useful first.

    Each is a combination that the paper or measurements found good for one kind of graph. With many classes `blsm` is
    left out: it looks at every pair of classes for every pair of nodes, and would take nearly all of the time.
    """
    share = {"graph_weight": 1 / columns, "kl_weight": 1 / columns, **_WIDE}
    far = {**_WIDE, **_TWO_PASSES, "order": 8, "feature_dropout": 0.8}
    near = {**_WIDE, **_TWO_PASSES, "order": 2, "dropout": 0.2, "feature_dropout": 0.0, "sharpening": 0.3}
    late = {"warm_up": 100}
    paired: dict[str, Any] = {"entropy_weight": 0.5, **_WIDE}
    models: tuple[PanelModel, ...] = (
        ("hops", "elbo", _WIDE),
        ("linkx", "elbo", _WIDE),
        ("sbm-appnp", "elbo", share),
        ("grand", "elbo", {**_WIDE, **_TWO_PASSES, **_NORMALISED}),
        ("blsm-grand", "elbo", {**far, **late, "entropy_weight": 0.7}),
        ("dcsbm-grand", "elbo", {**near, **late, "entropy_weight": 0.5, "isolated_share": 0.3}),
        ("blsm-mlp", "elbo", paired),
        ("gat", "elbo", _WIDE),
        ("blsm-appnp", "elbo", paired),
        ("sage", "elbo", _WIDE),
        ("blsm-linkx", "elbo", paired),
        ("mlp", "elbo", _WIDE),
        ("dcsbm-grand", "elbo", {**far, **late, "entropy_weight": 0.7}),
        ("blsm-gcn", "elbo", paired),
        ("grand", "elbo", {**_WIDE, **_TWO_PASSES, **_NORMALISED, "travelling": "features", "lr": 0.2}),
        ("gcnii", "elbo", _WIDE),
        ("grand", "elbo", far),
        ("gcn", "elbo", _WIDE),
        ("appnp", "elbo", _WIDE),
        ("sbm-gcn", "released", {"eta": 0.5, **_WIDE}),
        ("gsbm-mlp", "elbo", {"p0": 0.1, "p1": 0.9, **_WIDE}),
        ("gsbm-sage", "elbo", {"p0": 0.1, "p1": 0.9, **_WIDE}),
    )
    if columns <= _PAIRED_CLASSES:
        return models
    return tuple(one for one in models if not one[0].startswith("blsm-"))
