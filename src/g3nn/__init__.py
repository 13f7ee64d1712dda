"""g3nn labels the nodes of a partly labelled, noisy graph with a joint generative model."""

from g3nn.catalogue import available
from g3nn.data import load, synthetic
from g3nn.errors import DataError, G3NNError, G3NNWarning, InputError, TrainingError
from g3nn.model import GenerativeModel, ModelSpec
from g3nn.objective import Objective
from g3nn.task import NodeTask
from g3nn.training import FitResult, fit

__version__ = "0.1.0"

__all__ = [
    "DataError",
    "FitResult",
    "G3NNError",
    "G3NNWarning",
    "GenerativeModel",
    "InputError",
    "ModelSpec",
    "NodeTask",
    "Objective",
    "TrainingError",
    "available",
    "fit",
    "load",
    "synthetic",
]
