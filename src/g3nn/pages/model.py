"""What a page needs of a fitted estimator, so that this package need not import `g3nn.estimator`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

if TYPE_CHECKING:
    from g3nn.graph.outcomes import Outcome
    from g3nn.graph.rare import Threshold
    from g3nn.graph.tables.fitted_tables import FittedTables
    from g3nn.graph.task import NodeTask


class Reason(Protocol):
    """A neighbour, how much lower the answer would be without the edge to it, and the type of that edge."""

    @property
    def node(self) -> Any: ...

    @property
    def change(self) -> float: ...

    @property
    def type(self) -> str: ...


Reasons = tuple[Sequence[Reason], Sequence[tuple[str, float]]]
"""Of an answer: (node, change, exact) of neighbours and (name, change) of features, the strongest first."""


class Member(Protocol):
    """One of the models of a mixture."""

    @property
    def name(self) -> str: ...
    @property
    def isolated_weight(self) -> float: ...


class Answerer(Protocol):
    @property
    def members(self) -> Sequence[Member]: ...


class FittedModel(Protocol):
    """What a fit learned, and its answers for the nodes of the fit."""

    @property
    def task(self) -> NodeTask: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def columns(self) -> np.ndarray: ...
    @property
    def flat(self) -> bool: ...
    @property
    def features(self) -> Sequence[str] | None: ...
    @property
    def structural(self) -> bool: ...
    @property
    def tables(self) -> FittedTables | None: ...
    @property
    def answerer(self) -> Answerer: ...
    @property
    def model(self) -> str: ...
    @property
    def val_score(self) -> float: ...
    @property
    def val_loss(self) -> float: ...
    @property
    def seen(self) -> np.ndarray: ...
    @property
    def labels(self) -> object | None: ...
    @property
    def refitted(self) -> bool: ...
    @property
    def rare(self) -> Sequence[int]: ...
    def threshold(self, k: int, asked: str, share: float) -> Threshold: ...
    def calibrated(self) -> np.ndarray: ...
    def conformal(self, alpha: float) -> np.ndarray: ...
    def evaluate(self, nodes: np.ndarray, labels: np.ndarray, alpha: float) -> Mapping[str, object]: ...
    def without(self, edges: np.ndarray) -> Self: ...


class FittedEstimator(Protocol):
    """See `GraphEstimator` for its attributes; templates read more of them. panel_: data classes, one for each
    candidate."""

    random_state: object
    history_: np.ndarray
    history_names_: tuple[str, ...]

    @property
    def fitted_(self) -> FittedModel: ...
    @property
    def panel_(self) -> Sequence[object]: ...
    def explain(self, nodes: np.ndarray, *, ids: bool = True) -> Sequence[Reasons]: ...
    def audit_labels(self, *, ids: bool = True) -> np.ndarray: ...
