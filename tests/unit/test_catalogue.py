from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import g3nn
from g3nn.graph.datasets import ALL_DATASETS, ALL_SETTINGS
from g3nn.graph.outcomes import OUTCOMES
from g3nn.model.channels import CHANNELS
from g3nn.model.generative import ModelOptions, ModelSpec, model_names
from g3nn.model.likelihoods import LIKELIHOODS
from g3nn.model.objective import OBJECTIVES, Objective
from g3nn.model.posteriors import POSTERIORS
from g3nn.model.priors import PRIORS
from g3nn.training import TrainingOptions
from g3nn.training.catalogue import all_options, available

REGISTRIES = {
    "likelihoods": LIKELIHOODS,
    "priors": PRIORS,
    "posteriors": POSTERIORS,
    "channels": CHANNELS,
    "outcomes": OUTCOMES,
}


def declared() -> list[type]:
    parts = [part.Options for registry in REGISTRIES.values() for part in registry.values()]
    return [*parts, ModelOptions, Objective, TrainingOptions]


def test_public_function():
    assert g3nn.available is available


def test_names():
    catalogue = available()
    assert catalogue["datasets"] == list(ALL_DATASETS)
    assert catalogue["settings"] == list(ALL_SETTINGS)
    assert catalogue["models"] == model_names()
    assert catalogue["objectives"] == list(OBJECTIVES)


@pytest.mark.parametrize("kind", REGISTRIES)
def test_every_part_with_its_options(kind):
    described = available()[kind]
    assert list(described) == list(REGISTRIES[kind])
    for name, part in REGISTRIES[kind].items():
        assert {option: row["default"] for option, row in described[name].items()} == dataclasses.asdict(part.Options())


@pytest.mark.parametrize(
    ("key", "options"),
    [("model_options", ModelOptions), ("objective_options", Objective), ("training_options", TrainingOptions)],
)
def test_options_outside_the_parts(key, options):
    rows = available()[key]
    assert {name: row["default"] for name, row in rows.items()} == dataclasses.asdict(options())
    for row in rows.values():
        assert set(row) == {"default", "allowed", "help", "per_trial"}
        assert row["help"]
        assert row["allowed"]


def test_it_says_which_options_may_differ_between_trials():
    rows = available()["training_options"]
    assert {name for name, row in rows.items() if row["per_trial"]} == {"lr", "weight_decay"}


def test_it_can_be_written_as_json():
    assert json.loads(json.dumps(available())) == available()


def test_every_declared_option_is_known_by_name():
    assert set(all_options()) == {field.name for options in declared() for field in dataclasses.fields(options)}


def test_an_option_of_several_parts_is_of_one_kind():
    """`--set` reads a value before it knows which part will take it."""
    kinds: dict[str, set[type]] = {}
    for options in declared():
        for field in dataclasses.fields(options):
            kinds.setdefault(field.name, set()).add(field.metadata["rule"].kind)
    assert {name for name, found in kinds.items() if len(found) > 1} == set()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_can_be_made(name):
    assert isinstance(Objective.named(name), Objective)


def test_an_objective_that_does_not_exist_is_refused():
    with pytest.raises(g3nn.InputError, match="Did you mean 'elbo'"):
        Objective.named("elbow")


LIKELIHOODS_OF_CLASSES = list(dict.fromkeys(ModelSpec.parse(name).likelihood for name in model_names("classes")))


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", LIKELIHOODS_OF_CLASSES)
def test_every_model_takes_two_steps_with_its_defaults(likelihood, learnable):
    """With the likelihood, or with none, and each of the posteriors."""
    for name in model_names("classes"):
        if ModelSpec.parse(name).likelihood != likelihood:
            continue
        result = g3nn.fit(learnable, name, epochs=2, device="cpu")
        assert result.model_name == name
        assert result.probabilities.shape == (1, 60, 3), name
        assert np.isfinite(result.history).all(), name


def columns(outcome: str, classes: np.ndarray) -> np.ndarray:
    """The classes of a task as two columns of another outcome."""
    both = np.stack([classes, 2 - classes], axis=1)
    return {"tags": both > 0, "real": both * 1.5, "counts": both}[outcome]


@pytest.mark.slow
@pytest.mark.parametrize("outcome", [name for name in OUTCOMES if name != "classes"])
def test_every_model_for_numbers_takes_two_steps_with_its_defaults(outcome, learnable):
    split = learnable.train, learnable.val, learnable.test
    labels = columns(outcome, learnable.labels)
    task = g3nn.NodeTask.build(learnable.features, learnable.edges, labels, *split, outcome=outcome)
    names = model_names(outcome)
    assert [name for name in names if "-" in name]
    for name in names:
        result = g3nn.fit(task, name, epochs=2, device="cpu")
        assert result.predictions.shape == (1, 60, 2), name
        assert np.isfinite(result.test_log_prob).all(), name


def test_models_of_all_outcomes_are_all_models():
    assert set(model_names()) == {name for outcome in OUTCOMES for name in model_names(outcome)}
