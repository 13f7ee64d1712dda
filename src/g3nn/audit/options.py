"""What can be set on an audit."""

from __future__ import annotations

from dataclasses import dataclass

from g3nn.options import integer, number


@dataclass(frozen=True)
class AuditOptions:
    folds: int = integer(5, "parts of the edges; each is judged by a model that was fitted to the other parts", low=3)
    hops: int = integer(2, "features are also averaged over neighbours so many steps away; 0: p(G | X, Y) alone", low=0)
    coordinates: int = integer(128, "features are reduced to this many directions, if there are more", low=1)
    latent: int = integer(32, "size of the latent space", low=1)
    latent_dropout: float = number(0.5, "share of the coordinates left out of each step", low=0, high=0.95)
    lr: float = number(0.03, "learning rate of Adam", low=0, open_ends=True)
    weight_decay: float = number(2e-4, "L2 penalty on all parameters", low=0)
    steps: int = integer(300, "at most this many updates of each model", low=1)
    patience: int = integer(50, "stop after this many updates without a lower loss on held-out edges", low=1)
