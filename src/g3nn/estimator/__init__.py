"""The scikit-learn estimators: from a partly labelled graph to calibrated classes, tags and numbers."""

from g3nn.estimator.base import GraphEstimator
from g3nn.estimator.classifier import G3NNClassifier
from g3nn.estimator.loading import estimator_for, load_model
from g3nn.estimator.nodes import Nodes
from g3nn.estimator.panel import PanelEntry
from g3nn.estimator.regressor import G3NNRegressor

__all__ = [
    "G3NNClassifier",
    "G3NNRegressor",
    "GraphEstimator",
    "Nodes",
    "PanelEntry",
    "estimator_for",
    "load_model",
]
