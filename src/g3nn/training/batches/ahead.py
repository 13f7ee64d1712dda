"""Batches that are drawn while a GPU computes on the ones before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeVar

import torch

T = TypeVar("T")


def drawn_ahead(draw: Callable[[int], T], count: int, device: torch.device) -> Iterator[T]:
    """draw(0), draw(1), ... To draw a batch on a GPU its size must be known, and so the host waits for the GPU. On a
    stream of its own it waits for the drawing alone, and the GPU goes on computing."""
    if device.type != "cuda":
        yield from map(draw, range(count))
        return
    computing, drawing = torch.cuda.current_stream(device), _drawing_stream(device)
    before = computing.record_event()
    for turn in range(count):
        # The batch before the last one is gone: its memory is used again once nobody computes on it any more.
        drawing.wait_event(before)
        before = computing.record_event()
        with torch.cuda.stream(drawing):
            batch = draw(turn)
        computing.wait_stream(drawing)
        yield batch


@cache
def _drawing_stream(device: torch.device) -> torch.cuda.Stream:
    """Always the same one, since freed memory belongs to its stream. What the host waits for goes before the rest."""
    return torch.cuda.Stream(device, priority=-1)
