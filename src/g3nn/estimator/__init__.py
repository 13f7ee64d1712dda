"""The scikit-learn estimators: from a partly labelled graph to calibrated classes, tags and numbers."""

from g3nn.estimator.base import GraphEstimator
from g3nn.estimator.classifier import G3NNClassifier
from g3nn.estimator.nodes import Nodes
from g3nn.estimator.regressor import G3NNRegressor
from g3nn.estimator.saving import load_model
from g3nn.estimator.trained import PanelEntry

__all__ = ["G3NNClassifier", "G3NNRegressor", "GraphEstimator", "Nodes", "PanelEntry", "load_model"]
