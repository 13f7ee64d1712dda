"""The scikit-learn estimators: from a partly labelled graph to calibrated classes, tags and numbers."""

from g3nn.estimator.base import GraphEstimator
from g3nn.estimator.estimators import G3NNClassifier, G3NNRegressor, estimator_for, load_model
from g3nn.estimator.panel import PanelEntry
from g3nn.graph.given import Nodes

__all__ = [
    "G3NNClassifier",
    "G3NNRegressor",
    "GraphEstimator",
    "Nodes",
    "PanelEntry",
    "estimator_for",
    "load_model",
]
