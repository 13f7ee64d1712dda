"""Label priors p(Y | X), by name."""

from g3nn.base.registry import Registry
from g3nn.model.priors import standard
from g3nn.model.priors.base import LabelPrior

_OWN: dict[str, type[LabelPrior]] = {
    "mlp": standard.MLPPrior,
    "linear": standard.LinearPrior,
    "uniform": standard.UniformPrior,
    "bernoulli": standard.BernoulliFeatures,
    "gaussian": standard.GaussianFeatures,
    "given": standard.GivenPrior,
}
PRIORS = Registry("g3nn.priors", LabelPrior, _OWN)

__all__ = ["PRIORS", "LabelPrior"]
