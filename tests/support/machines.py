"""How long state machines run: few steps, always the same, or as many examples as G3NN_EXAMPLES says."""

import os

from hypothesis import HealthCheck, settings

_MORE = int(os.environ.get("G3NN_EXAMPLES", "0"))

SETTINGS = settings(
    max_examples=_MORE or 10,
    stateful_step_count=50 if _MORE else 20,
    derandomize=not _MORE,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
