"""Running the same sequence of device operations again and again."""

from __future__ import annotations

from collections.abc import Callable

import torch

_WARM_UP = 3


class Repeated:
    """Calls a function; if asked to, captures it as a CUDA graph after a few calls and replays the graph from then on.

    The function must read and write the same tensors at every call and never wait for the device. `forget` must be
    called when those tensors were replaced.
    """

    def __init__(self, function: Callable[[], None], capture: bool) -> None:
        self._function = function
        self._capture = capture
        self.forget()

    def forget(self) -> None:
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        if not self._capture:
            self._function()
        elif self._graph is not None:
            self._graph.replay()
        else:
            self._warm_up()

    def _warm_up(self) -> None:
        """The first calls run on a stream of their own, as capturing requires; then the graph is recorded."""
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
