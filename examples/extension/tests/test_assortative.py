import numpy as np
import torch
from g3nn_assortative.block import AssortativeBlock
from g3nn_assortative.karate import karate

import g3nn
from g3nn.model.likelihoods import Pairs
from g3nn.model.replicas import Replicas, Sizes
from g3nn.testing import contract_tests

test_contract = contract_tests(AssortativeBlock)


def test_the_observed_densities_are_the_most_likely():
    """At the share of linked pairs within each class, and between classes, the gradient is zero."""
    task = karate()
    block = AssortativeBlock(Sizes.of(task), Replicas((0,))).double()
    i, j = np.triu_indices(task.num_nodes, 1)
    linked = np.isin(i * task.num_nodes + j, task.edges[0] * task.num_nodes + task.edges[1])
    blocks = np.where(task.labels[i] == task.labels[j], task.labels[i], task.num_classes)
    density = torch.from_numpy(np.bincount(blocks, linked) / np.bincount(blocks))
    block.within.data[0], block.between.data[0] = density[:-1].logit(), density[-1:].logit()
    labels = torch.nn.functional.one_hot(torch.from_numpy(task.labels)).double().unsqueeze(0)
    for present, chosen in ((True, linked), (False, ~linked)):
        pairs = Pairs(torch.from_numpy(i[chosen]), torch.from_numpy(j[chosen]), present)
        block.expected_log_prob(None, labels, pairs).sum().backward()
    for parameter in block.parameters():
        torch.testing.assert_close(parameter.grad, torch.zeros_like(parameter), atol=1e-10, rtol=0)


def test_the_names_are_known_once_the_package_is_installed():
    assert g3nn.ModelSpec.parse("asbm-gcn").components()["likelihood"] is AssortativeBlock
    assert g3nn.load("karate").num_nodes == 34
    assert "asbm" in g3nn.available()["likelihoods"]
