"""Channels p(seen | true) by name: what was observed is emitted by what is true."""

from g3nn.base.registry import Registry
from g3nn.model.channels.base import Channel, EdgeChannel, Emission, LabelChannel
from g3nn.model.channels.confusion import Confusion, fit_confusion
from g3nn.model.components import components

CHANNELS = Registry("g3nn.channels", Channel, components(__name__, Channel, ("flips", "outliers", "edges")))

__all__ = ["CHANNELS", "Channel", "Confusion", "EdgeChannel", "Emission", "LabelChannel", "fit_confusion"]
