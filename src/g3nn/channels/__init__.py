"""Channels p(seen | true): how what was observed comes from what is true."""

from g3nn.channels.confusion import Confusion, fit_confusion

__all__ = ["Confusion", "fit_confusion"]
