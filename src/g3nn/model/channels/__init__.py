"""Channels p(seen | true) by name: what was observed is emitted by what is true."""

from g3nn.base.registry import Registry
from g3nn.model.channels.base import Channel, EdgeChannel, Emission, LabelChannel
from g3nn.model.channels.confusion import Confusion, fit_confusion
from g3nn.model.channels.edges import DoubtfulEdges
from g3nn.model.channels.flips import Flips
from g3nn.model.channels.outliers import Outliers

_OWN: dict[str, type[Channel]] = {"flips": Flips, "outliers": Outliers, "edges": DoubtfulEdges}
CHANNELS = Registry("g3nn.channels", Channel, _OWN)

__all__ = ["CHANNELS", "Channel", "Confusion", "EdgeChannel", "Emission", "LabelChannel", "fit_confusion"]
