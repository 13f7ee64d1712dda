"""Channels p(seen | true) by name: what was observed is emitted by what is true."""

from g3nn.channels.base import Channel, EdgeChannel, Emission, LabelChannel
from g3nn.channels.confusion import Confusion, fit_confusion
from g3nn.channels.edges import DoubtfulEdges
from g3nn.channels.flips import Flips
from g3nn.channels.outliers import Outliers
from g3nn.registry import Registry

_OWN: dict[str, type[Channel]] = {"flips": Flips, "outliers": Outliers, "edges": DoubtfulEdges}
CHANNELS = Registry("g3nn.channels", Channel, _OWN)

__all__ = ["CHANNELS", "Channel", "Confusion", "EdgeChannel", "Emission", "LabelChannel", "fit_confusion"]
