"""Label priors p(Y | X), by name."""

from g3nn.base.registry import Registry
from g3nn.model.priors.base import LabelPrior
from g3nn.model.priors.bernoulli import BernoulliFeatures
from g3nn.model.priors.gaussian import GaussianFeatures
from g3nn.model.priors.given import GivenPrior
from g3nn.model.priors.linear import LinearPrior
from g3nn.model.priors.mlp import MLPPrior
from g3nn.model.priors.uniform import UniformPrior

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
