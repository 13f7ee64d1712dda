"""p(y | x) of each node on its own, by a classifier or regressor of scikit-learn."""

from __future__ import annotations

from g3nn.tabular.conversion import check_feature_model, converted
from g3nn.tabular.cross_fit import CrossFitted, FoldModel
from g3nn.tabular.models import FeatureModel, Linear, Trees
from g3nn.tabular.neighbourhood import Neighbourhood, neighbour_features

__all__ = [
    "CrossFitted",
    "FeatureModel",
    "FoldModel",
    "Linear",
    "Neighbourhood",
    "Trees",
    "check_feature_model",
    "converted",
    "neighbour_features",
]
