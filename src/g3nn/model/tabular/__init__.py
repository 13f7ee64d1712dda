"""p(y | x) of each node on its own, by a classifier or regressor of scikit-learn."""

from __future__ import annotations

from g3nn.model.tabular.conversion import check_feature_model, converted, estimator_name
from g3nn.model.tabular.cross_fit import CrossFitted, FoldModel
from g3nn.model.tabular.models import FeatureModel, Linear, Trees
from g3nn.model.tabular.named import NAMED, boosted_trees
from g3nn.model.tabular.neighbourhood import Neighbourhood, neighbour_features

__all__ = [
    "NAMED",
    "CrossFitted",
    "FeatureModel",
    "FoldModel",
    "Linear",
    "Neighbourhood",
    "Trees",
    "boosted_trees",
    "check_feature_model",
    "converted",
    "estimator_name",
    "neighbour_features",
]
