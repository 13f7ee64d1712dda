"""The scikit-learn estimator: from a partly labelled graph to calibrated labels."""

from g3nn.estimator.classifier import G3NNClassifier
from g3nn.estimator.nodes import Nodes
from g3nn.estimator.saving import load_model
from g3nn.estimator.trained import PanelEntry

__all__ = ["G3NNClassifier", "Nodes", "PanelEntry", "load_model"]
