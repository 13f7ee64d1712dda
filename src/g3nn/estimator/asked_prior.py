"""Which label prior was asked for: the name of one, or an estimator that is to learn p(y | x)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sklearn.base import BaseEstimator

from g3nn.base.errors import Problems
from g3nn.estimator.members import Parameters
from g3nn.graph.outcomes import Outcome
from g3nn.model.generative import ModelSpec
from g3nn.model.priors import PRIORS
from g3nn.model.tabular.models import check_feature_model, estimator_name
from g3nn.training.checks import checked_spec

AUTO, GIVEN = "auto", "given"
_DEFAULT = "mlp"


@dataclass(frozen=True)
class SavedPrior:
    """The estimator that was the prior of a saved model, in words: its class and its parameters."""

    name: str
    parameters: Mapping[str, str]

    @classmethod
    def of(cls, estimator: BaseEstimator) -> SavedPrior:
        return cls(type(estimator).__name__, {name: repr(value) for name, value in estimator.get_params().items()})


def feature_model(prior: str | BaseEstimator | SavedPrior) -> BaseEstimator | None:
    """The estimator that is to learn p(y | x), None if the prior is no such thing."""
    return None if isinstance(prior, str | SavedPrior) else prior


def asked_prior(prior: str | BaseEstimator | SavedPrior) -> str | None:
    """The name of the prior of every joint model, None if nothing was asked for that exists."""
    if isinstance(prior, str):
        return prior if prior in PRIORS and prior != GIVEN else None
    return GIVEN


def check_prior(parameters: Parameters, outcome: type[Outcome], problems: Problems) -> None:
    """Record what is wrong with the prior by itself, and together with the model and the options."""
    prior, model, options = (parameters[name] for name in ("prior", "model", "options"))
    other = options.get("prior") if isinstance(options, Mapping) else None
    if isinstance(prior, SavedPrior):
        advice = f"The model was loaded: it answers, but to fit it again pass a new {prior.name} as prior."
        problems.add("prior", f"the description of a saved {prior.name}", "a name or an estimator", advice)
        return
    if isinstance(prior, str):
        problems.name("prior", prior, (AUTO, *(name for name in PRIORS if name != GIVEN)))
        if other == GIVEN:
            advice = "Pass what gives the beliefs: prior=LogisticRegression()."
            problems.add("options['prior']", repr(other), "any other prior", advice)
        if prior == AUTO:
            return
    else:
        check_feature_model(prior, outcome, problems)
        spec = None if model == AUTO else checked_spec(model, _DEFAULT, Problems())
        if spec is not None and spec.likelihood is None:
            advice = "Name a model with a likelihood, such as 'sbm-gcn', or leave model='auto'."
            given = f"{estimator_name(prior)} for model {spec.name!r}, which has no likelihood"
            problems.add("prior", given, "a model that has a prior", advice)
    if other is not None:
        problems.add("prior", f"a prior beside options['prior'], {other!r}", "one of them")
    if isinstance(model, ModelSpec) and model.prior != _DEFAULT:
        problems.add("prior", "a prior beside that of a ModelSpec", "one of them")
