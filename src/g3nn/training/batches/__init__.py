"""Parts of a graph that stand for the whole: sampled neighbourhoods, and pairs for the graph term."""

from __future__ import annotations

from g3nn.training.batches.source import BatchSource

__all__ = ["BatchSource"]
