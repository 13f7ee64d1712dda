"""`load_model`: a saved estimator of the right kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from g3nn.base.errors import DataError, G3NNError
from g3nn.estimator.archive import AUDIT, GRAPH, PARAMETERS, read_archive
from g3nn.estimator.base import GraphEstimator
from g3nn.estimator.classifier import G3NNClassifier
from g3nn.estimator.regressor import G3NNRegressor
from g3nn.estimator.saving import MissingPackageError, check_packages, restored


def load_model(folder: str | Path) -> Any:
    """A fitted estimator from a folder that `save` or `g3nn fit` wrote: a `G3NNClassifier`, or a `G3NNRegressor`.

    No code from the folder is run. Parts that another package offered when the model was saved must be installed.
    """
    folder = Path(folder)
    record, tensors = read_archive(folder)
    try:
        check_packages(record)
        parameters, fitted = restored(record, tensors[PARAMETERS], tensors[GRAPH])
        estimator = estimator_for(fitted.task.outcome, parameters)
        estimator.restore(fitted, record["notes"], tensors.get(AUDIT))
        return estimator
    except MissingPackageError as error:
        raise DataError(f"{folder}: {error}") from None
    except (ArithmeticError, AttributeError, G3NNError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, G3NNError) else f"{type(error).__name__}: {error}"
        raise DataError(f"{folder}: its parts do not fit together ({reason}). Fit and save the model again.") from error


def estimator_for(outcome: str, parameters: dict[str, Any]) -> GraphEstimator:
    """The estimator of an outcome, with these parameters."""
    if G3NNRegressor.learns(outcome):
        return G3NNRegressor(**{**parameters, "outcome": outcome})
    return G3NNClassifier(**parameters)
