"""Any PyTorch Geometric module as a posterior."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from g3nn.base.errors import refuse, warn_caller
from g3nn.graph.outcomes import Outcome
from g3nn.model.inputs import Inputs
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes


class ModulePosterior(LabelPosterior):
    """q = softmax(module(x, edge_index)) for a user's own module that returns (n, K) scores. If edges have weights and
    its `forward` takes `edge_weight`, they are passed too.

    `source` is a module with `reset_parameters` (its own or its children's), or a function that makes one. Its
    parameters are stacked and it runs under `torch.func.vmap`, so it must be plain torch and PyG, without running
    statistics or changes to its own attributes. Its dropout uses torch's generator, seeded by the replicas and the
    step: the same plan gives the same numbers, but the noise of a replica depends on the rest of the stack.
    """

    outcomes = (Outcome,)
    capturable = False

    def __init__(self, sizes: Sizes, replicas: Replicas, source: nn.Module | Callable[[], nn.Module]) -> None:
        super().__init__(sizes, replicas)
        modules = [_fresh(source, seed) for seed in replicas.seeds]
        stacked, _ = torch.func.stack_module_state(modules)
        self.names = tuple(stacked)
        self.stacked = nn.ParameterList(nn.Parameter(stacked[name].detach()) for name in self.names)
        # Held in a list so that the parameters of this template are not registered as ours.
        self._module = [copy.deepcopy(modules[0]).to("meta")]
        takes_weights = "edge_weight" in inspect.signature(modules[0].forward).parameters
        # PyG's own models have the parameter in any case, and say here whether they use it.
        self._takes_weights = takes_weights and getattr(modules[0], "supports_edge_weight", True)
        self._has_warned = False

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        module = self._module[0].train(noise is not None)
        x, arcs, more = inputs.x.dense(), inputs.arcs, self._weights(inputs)

        def call(parameters: tuple[Tensor, ...]) -> Tensor:
            scores: Tensor = functional_call(module, dict(zip(self.names, parameters, strict=True)), (x, arcs), more)
            return scores

        with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):
            if noise is not None:
                torch.manual_seed(int(noise.integers(2**31, 1).sum()))
            scores = torch.func.vmap(call, randomness="different")(tuple(self.stacked))
        shape, wanted = tuple(scores.shape[1:]), (inputs.n, self.sizes.scores)
        if shape != wanted:
            refuse("posterior", f"a module that returns shape {shape}", f"shape {wanted}: nodes, scores")
        return self.answer(scores)

    def _weights(self, inputs: Inputs) -> dict[str, Tensor]:
        """What is passed to the module besides x and edge_index."""
        if inputs.arc_weight is None:
            return {}
        if self._takes_weights:
            return {"edge_weight": inputs.arc_weight}
        if not self._has_warned:
            name = type(self._module[0]).__name__
            warn_caller(f"{name} takes no edge_weight: to it, all edges are alike")
            self._has_warned = True
        return {}


def _fresh(source: nn.Module | Callable[[], nn.Module], seed: int) -> nn.Module:
    """A newly initialised module for one seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if not isinstance(source, nn.Module):
            return source()
        module = copy.deepcopy(source)
        was_reset = False
        for part in module.modules():
            reset: Any = getattr(part, "reset_parameters", None)
            if callable(reset):
                reset()
                was_reset = True
    if not was_reset:
        advice = "Pass a function that makes the module, or give the module a reset_parameters method."
        refuse("posterior", type(source).__name__, "a module that can be reinitialised", advice)
    return module
