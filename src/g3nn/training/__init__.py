"""Training: stacks of replicas, the optimiser, early stopping, and `fit`."""

from g3nn.training.fit import fit
from g3nn.training.options import TrainingOptions
from g3nn.training.result import FitResult
from g3nn.training.stack import Stack

__all__ = ["FitResult", "Stack", "TrainingOptions", "fit"]
