"""What channels promise."""

from __future__ import annotations

import torch
from torch.autograd import gradcheck
from torch.nn.functional import one_hot

from g3nn.base.options import rules
from g3nn.model.channels import Channel, EdgeChannel, LabelChannel
from g3nn.testing.components import close
from g3nn.testing.situations import Case, answers_of, beliefs_of, judged_pairs, likelihood_for, n


def a_channel_declares_when_it_is_clear(case: Case) -> None:
    """It derives from LabelChannel or EdgeChannel, and `clear` names options of its own with values that they take. Its
    parameters and buffers lead with R and are finite, of a clear one too."""
    component, declared = case.component, rules(case.component.Options)
    assert issubclass(component, LabelChannel | EdgeChannel), "it is a channel neither of labels nor of edges"
    assert component.clear, "there is no way to make it clear"
    wrong = {
        name for name, value in component.clear.items() if name not in declared or not declared[name].accepts(value)
    }
    assert not wrong, f"clear has {', '.join(sorted(wrong))}, which is no option or not within its limits"
    assert not component.is_clear(component.Options()), "it is clear by default"
    for part in (case.channel(), case.channel(component.clear)):
        for name, one in part.state_dict().items():
            assert one.dim() >= 2, f"{name} has no dimension after the first"
            assert one.shape[0] == case.R, f"{name} does not lead with R={case.R}"
            assert torch.isfinite(one).all(), f"some numbers of {name} are not finite"


def what_is_seen_is_normalised(case: Case) -> None:
    """The probabilities of everything that may be seen sum to 1: of classes and tags, and of an edge and of none."""
    channel, total = case.channel(), None
    if isinstance(channel, EdgeChannel):
        odds = torch.linspace(-5.0, 5.0, 7, dtype=torch.float64).expand(case.R, 1, 7)
        total = channel.log_prob(odds, True).exp() + channel.log_prob(odds, False).exp()
        for probability in (channel.genuine(odds), channel.missing(odds)):
            assert ((probability >= 0) & (probability <= 1)).all(), "a probability is not between 0 and 1"
    elif channel.outcome.pooled:
        each = range(case.K) if case.of_classes else (0.0, 1.0)
        shape = (n,) if case.of_classes else (n, case.K)
        q = answers_of(channel)
        total = torch.stack([channel.log_prob(q, torch.full(shape, seen)) for seen in each]).exp().sum(0)
    if total is not None:
        close(total, torch.ones_like(total))


def a_clear_channel_changes_nothing(case: Case) -> None:
    """With the options in `clear`, terms and beliefs are those of the outcome, and of the likelihood."""
    assert issubclass(case.component, Channel)
    channel = case.channel(case.component.clear)
    if isinstance(channel, EdgeChannel):
        likelihood = likelihood_for(channel)
        q = beliefs_of(channel.outcome, answers_of(channel), case.inputs)
        for pairs in judged_pairs(case.R):
            expected = likelihood.expected_log_prob(None, q, pairs)
            close(channel.expected_log_prob(likelihood, None, q, pairs), expected, atol=1e-9)
        return
    outcome, targets = channel.outcome, case.inputs.targets
    q, p = answers_of(channel), answers_of(channel, 1)
    for of_posterior in (True, False):
        arguments = (q, p, targets, of_posterior, (0.5, 0.25))
        for found, expected in zip(channel.node_terms(*arguments), outcome.node_terms(*arguments), strict=True):
            close(found, expected, atol=1e-9)
    close(channel.supervised(q, targets), outcome.supervised(q, targets), atol=1e-9)
    close(channel.observed_prior(q, p, targets), outcome.observed_prior(q, p, targets), atol=1e-9)
    judged = (q, targets, case.inputs.val)
    close(channel.validation(*judged), outcome.validation(*judged), atol=1e-9)
    close(channel.calibrated_loss(*judged), outcome.calibrated_loss(*judged), atol=1e-6)
    if (prior := channel.log_prior()) is not None:
        close(prior, torch.zeros_like(prior))


def the_terms_of_labels_are_a_bound(case: Case) -> None:
    """`log_joint` of q and p is at most `log_prob` of p, whatever q says. `node_terms` sums the terms of nodes, leaves
    those without labels to the outcome, and has their answers as beliefs."""
    channel = case.channel()
    if isinstance(channel, EdgeChannel):
        return
    targets, outcome = case.inputs.targets, channel.outcome
    q, p = answers_of(channel), answers_of(channel, 1)
    for other in (q, p):
        gap = channel.log_prob(p, targets.values) - channel.log_joint(other, p, targets.values)
        assert gap.min() > -1e-9, f"it exceeds what it bounds by {-gap.min():.2g}"
    sums, beliefs = channel.node_terms(q, p, targets, True, (0.5, 0.25))
    close(sums[:, 0], -0.5 * channel.supervised(q, targets).sum(1))
    close(sums[:, 1], -0.5 * channel.observed_prior(q, p, targets).sum(1))
    expected, observed = outcome.node_terms(q, p, targets, True, (0.5, 0.25))
    close(sums[:, 2:], expected[:, 2:])
    hidden = torch.arange(len(case.inputs.task.train), n)
    close(beliefs[:, hidden], observed[:, hidden])


def the_expectation_over_labels_is_right(case: Case) -> None:
    """Where labels are certain, `expected_log_prob` of an edge channel is `log_prob` of the log-odds of the likelihood,
    and `expected_edge` is `genuine` or `missing`."""
    channel = case.channel()
    if isinstance(channel, LabelChannel):
        return
    likelihood = likelihood_for(channel)
    values = case.inputs.targets.values
    certain = one_hot(values, case.K).double() if case.of_classes else values
    certain = certain.expand(case.R, *certain.shape)
    spread = [torch.zeros_like(certain)] * (channel.outcome.numbers_per_column - 1)
    for pairs in judged_pairs(case.R):
        odds = likelihood.log_odds(None, certain, pairs)
        arguments = (likelihood, None, torch.cat([certain, *spread], dim=2), pairs)
        close(channel.expected_log_prob(*arguments), channel.log_prob(odds, pairs.present), atol=1e-6)
        of_edge = channel.genuine if pairs.present else channel.missing
        close(channel.expected_edge(*arguments), of_edge(odds), atol=1e-6)


def a_channel_has_the_right_gradient(case: Case) -> None:
    """The gradients of its terms and beliefs by the answers are those of finite differences."""
    channel, targets = case.channel(), case.inputs.targets
    if isinstance(channel, EdgeChannel):
        likelihood = likelihood_for(channel)
        q = beliefs_of(channel.outcome, answers_of(channel), case.inputs).clone().requires_grad_()
        for pairs in judged_pairs(case.R, first=9):
            assert gradcheck(lambda q, pairs=pairs: channel.expected_log_prob(likelihood, None, q, pairs), q)
        return
    q, p = (answers_of(channel, seed).clone().requires_grad_() for seed in (0, 1))
    assert gradcheck(lambda q: channel.supervised(q, targets), q)
    assert gradcheck(lambda q, p: channel.observed_prior(q, p, targets), (q, p))
    assert gradcheck(lambda q: channel.beliefs(q, targets), q)
