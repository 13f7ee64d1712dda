"""Label priors p(Y | X), by name."""

from g3nn.base.registry import Registry
from g3nn.model.components import components
from g3nn.model.priors.base import LabelPrior

_NAMES = ("mlp", "linear", "uniform", "bernoulli", "gaussian", "given")
PRIORS = Registry("g3nn.priors", LabelPrior, components(__name__, LabelPrior, _NAMES))

__all__ = ["PRIORS", "LabelPrior"]
