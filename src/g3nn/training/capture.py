"""CUDA graphs: a function is recorded once and replayed."""

from __future__ import annotations

from collections.abc import Callable

import torch

_WARM_UP = 3
"""Calls before a function is captured."""


class Captured:
    """Calls a function; after a few calls captures it as a CUDA graph and replays the graph from then on.

    The function must read and write the same tensors at every call and never wait for the device. A new one is needed
    when those tensors were replaced.
    """

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        if self._graph is not None:
            self._graph.replay()
            return
        # The first calls run on a stream of their own, as capturing requires; then the graph is recorded.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._function()
        torch.cuda.current_stream().wait_stream(stream)
        self._calls += 1
        if self._calls == _WARM_UP:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._function()
            self._graph = graph
