"""Label priors p(Y | X), by name."""

from g3nn.priors.base import LabelPrior
from g3nn.priors.bernoulli import BernoulliFeatures
from g3nn.priors.gaussian import GaussianFeatures
from g3nn.priors.given import GivenPrior
from g3nn.priors.linear import LinearPrior
from g3nn.priors.mlp import MLPPrior
from g3nn.priors.uniform import UniformPrior
from g3nn.registry import Registry

_OWN: dict[str, type[LabelPrior]] = {
    "mlp": MLPPrior,
    "linear": LinearPrior,
    "uniform": UniformPrior,
    "bernoulli": BernoulliFeatures,
    "gaussian": GaussianFeatures,
    "given": GivenPrior,
}
PRIORS = Registry("g3nn.priors", LabelPrior, _OWN)

__all__ = ["PRIORS", "LabelPrior"]
