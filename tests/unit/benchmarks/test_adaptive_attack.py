"""The attack of `benchmarks/adaptive_attack.py`: it follows the gradient of what the library does, and it hurts."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression

import g3nn
from g3nn.graph.datasets.noise import random_edges
from g3nn.queries import edge_trust, genuine

FOLDER = Path(__file__).parents[3] / "benchmarks"
OWN = tuple(f"adaptive_attack{part}" for part in ("", "_answers", "_report", "_search", "_trust"))
MODULES = (*OWN, "any_graph", "any_graph_report", "classifier", "records")
N = 60


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """Scripts import each other from their own folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield {name.removeprefix("adaptive_attack_"): importlib.import_module(name) for name in MODULES}
        for name in MODULES:
            del sys.modules[name]


@pytest.fixture(scope="module")
def task() -> g3nn.NodeTask:
    """Nobody has a single neighbour: in the library rounding then decides whom a neighbourhood without it is like."""
    drawn = g3nn.synthetic(
        nodes=N, classes=3, degree=4, features=10, signal=1.5, labels_per_class=5, val=12, test=30, seed=1
    )
    ring = np.stack([np.arange(N), (np.arange(N) + 1) % N])
    edges = np.unique(np.sort(np.concatenate([drawn.edges, ring], axis=1), axis=0), axis=1)
    return replace(drawn, edges=edges, name="cora")


@pytest.fixture(scope="module")
def short(scripts) -> Iterator[None]:
    """Trainings are short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scripts["answers"], "EPOCHS", 20)
        patch.setattr(edge_trust, "_EPOCHS", 20)
        yield


@pytest.fixture(scope="module", params=["gcn", "g3nn"])
def answer(request, scripts, task, short) -> Any:
    """Victims as the attacker imagines them."""
    answer = scripts["answers"].ANSWERS[request.param](task, 0, "cpu", torch.float64)
    answer.learn(task.edges)
    return answer


@pytest.fixture
def solved(monkeypatch) -> None:
    """The library's regression stops early; here it goes on, so that what is left are errors of ours."""
    longer = partial(LogisticRegression, tol=1e-10)
    monkeypatch.setattr(genuine.sklearn.linear_model, "LogisticRegression", lambda max_iter: longer(max_iter=5000))


def free_pairs(scripts: dict[str, Any], edges: np.ndarray, count: int) -> np.ndarray:
    pairs = np.unique(np.sort(scripts["trust"].chance_pairs(edges, N, 9), axis=0), axis=1)
    return pairs[:, np.random.default_rng(0).permutation(pairs.shape[1])[:count]]


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("added", [0, 1])
def test_edges_are_believed_as_by_the_library(scripts, task, solved, sparse, added):
    """Whether pairs are added in full or not at all."""
    features = sp.csr_array(np.maximum(task.features, 0)) if sparse else task.features
    prior = np.full((N, 3), 1 / 3)
    prior[task.train] = np.eye(3)[task.labels[task.train]]
    pairs = np.concatenate([task.edges, free_pairs(scripts, task.edges, 40)], axis=1)
    presence = torch.ones(pairs.shape[1], dtype=torch.float64)
    presence[task.num_edges :] = added
    edges = pairs[:, presence.numpy() > 0]
    soft = replace(scripts["trust"].SoftTrust.of(features, prior, "cpu", torch.float64), floor=1e-9)
    chance = torch.from_numpy(scripts["trust"].chance_pairs(edges, N, 3))
    found = soft(scripts["trust"].PartGraph(torch.from_numpy(pairs), presence, N), chance, (0.8, 0.5))
    judged = replace(task, features=features).with_edges(edges)
    wanted = genuine.Evidence(judged, seed=3).judge(prior, (0.8, 0.5))
    for ours, theirs in zip(found, wanted, strict=True):
        assert np.ptp(theirs.probability) > 0.3
        np.testing.assert_allclose(ours.probability[: edges.shape[1]].numpy(), theirs.probability, atol=2e-6)
        np.testing.assert_allclose(ours.beliefs.numpy(), theirs.beliefs, atol=2e-6)


@pytest.mark.slow
def test_answers_are_those_of_the_library(answer, task, solved):
    other = random_edges(task, 0.2, 1).task.edges
    np.testing.assert_allclose(answer.on(other).numpy(), answer.library_log_prob(other), atol=1e-4)
    assert abs(answer.library_log_prob(other) - answer.library_log_prob(task.edges)).max() > 0.05


def test_the_gradient_is_that_of_the_whole_answer(scripts, answer, task):
    pairs = np.concatenate([task.edges, free_pairs(scripts, task.edges, 40)], axis=1)
    rng = np.random.default_rng(0)
    presence, way = torch.from_numpy(rng.uniform(0.2, 0.8, pairs.shape[1])), rng.standard_normal(pairs.shape[1])
    chance = torch.from_numpy(scripts["trust"].chance_pairs(task.edges, N, 3))
    aims = scripts["search"].Aims.guessed(answer.on(task.edges), task.unlabelled)

    def loss(presence: torch.Tensor) -> torch.Tensor:
        graph = scripts["trust"].PartGraph(torch.from_numpy(pairs), presence, N)
        return aims.loss(answer.log_prob(graph, chance))

    (gradient,) = torch.autograd.grad(loss(presence.requires_grad_()), presence)
    step, way = 1e-5, torch.from_numpy(way)
    with torch.no_grad():
        difference = (loss(presence + step * way) - loss(presence - step * way)) / (2 * step)
    assert abs(difference) > 1e-3
    torch.testing.assert_close(gradient @ way, difference, rtol=1e-5, atol=0)


@pytest.mark.slow
def test_the_attack_hurts_more_than_random_flips(scripts, answer, task):
    search, rate = scripts["search"], 0.3
    effort = search.Effort(steps=20, block=800, renew=5, relearn=0, samples=4)
    attack = search.Search(answer, search.Aims.known(task.labels, task.unlabelled, "cpu"), effort, seed=0)
    budget = round(rate * task.num_edges)
    found = attack.run(budget)
    assert 0 < len(np.unique(found.flips)) == len(found.flips) <= budget
    after = search.flipped(task.edges, found.flips, N)
    assert (after[0] < after[1]).all()
    assert found.after == attack.wrong(after)
    random = [attack.wrong(random_edges(task, rate, seed).task.edges) for seed in range(5)]
    assert found.after > max(random) + 0.05
    assert found.after > found.before + 0.1


def test_what_is_projected_is_the_nearest_point_within_the_budget(scripts):
    project = scripts["search"].project
    inside = torch.tensor([0.2, 0.9, 0.0])
    torch.testing.assert_close(project(inside, 2), inside)
    torch.testing.assert_close(project(torch.tensor([-1.0, 3.0, 0.5]), 2), torch.tensor([0.0, 1.0, 0.5]))
    torch.testing.assert_close(project(torch.tensor([2.0, 0.6, 0.4, -0.1]), 1.6), torch.tensor([1.0, 0.4, 0.2, 0.0]))


def test_nodes_that_are_lost_have_no_say(scripts):
    """The first is right, the second and third wrong by little and by much; the fourth does not count."""
    log_prob = torch.tensor([[0.5, 0.3, 0.2], [0.4, 0.5, 0.1], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]]).log()
    aims = scripts["search"].Aims.known(np.zeros(4, dtype=np.int64), np.arange(3), "cpu")
    torch.testing.assert_close(aims.loss(log_prob), -torch.tensor([0.5, 0.4]).log().sum() / 3)
    assert aims.reached(log_prob) == pytest.approx(2 / 3)


def test_what_is_guessed_counts_as_far_as_it_is_certain(scripts):
    log_prob = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.4, 0.4, 0.2]]).log()
    aims = scripts["search"].Aims.guessed(log_prob, np.array([0, 1]))
    assert aims.labels.tolist() == [0, 2]
    torch.testing.assert_close(aims.worth, torch.tensor([0.2, 0.7]))
    assert aims.reached(log_prob.roll(1, 1)) == pytest.approx(1)
    assert aims.reached(log_prob) == 0


def record(attack: str, rate: int, victim: str, accuracy: float, seed: int = 0, **more: Any) -> dict[str, Any]:
    kind = {"graph": "cora", "setting": "standard", "knows": "training", "effort": "quick"}
    return {**kind, "seed": seed, "attack": attack, "rate": rate, "victim": victim, "accuracy": accuracy, **more}


@pytest.fixture
def command(scripts, task, short, monkeypatch, tmp_path):
    """Runs the script on the small graph; victims are not trained, but say on which edges they would have been."""
    script, seen = scripts["adaptive_attack"], []
    monkeypatch.setattr(script, "load", lambda graph: task)
    script.imagined.cache_clear()

    def victim(job: Any, edges: np.ndarray, device: str) -> dict[str, Any]:
        seen.append(edges)
        return {"accuracy": 0.5, "seconds": 0.0}

    monkeypatch.setattr(script, "victim", victim)

    def run(*words: object) -> list[np.ndarray]:
        given = ("--quick", "--rates", 10, "--attacks", "gcn", "--victims", "gcn", "--device", "cpu", "--block", 500)
        monkeypatch.setattr(sys, "argv", ["adaptive_attack.py", *map(str, (*given, *words))])
        seen.clear()
        script.main()
        return list(seen)

    return run


@pytest.mark.slow
def test_a_run_goes_on_where_it_stopped(scripts, task, command, monkeypatch, tmp_path):
    out = tmp_path / "records.json"
    sound, attacked = command("--out", out)
    *before, last = json.loads(out.read_text())
    assert [(one["attack"], one["victim"]) for one in before] == [("nobody", "gcn"), ("gcn", "attacker")]
    np.testing.assert_array_equal(sound, task.edges)
    np.testing.assert_array_equal(attacked, scripts["search"].flipped(task.edges, before[1]["flips"], N))
    assert 0 < before[1]["added"] + before[1]["removed"] == len(before[1]["flips"]) <= round(0.1 * task.num_edges)
    assert before[1]["evasion"].keys() == {"gcn", "g3nn"}

    monkeypatch.delattr(scripts["adaptive_attack"], "attack")
    out.write_text(json.dumps(before))
    (again,) = command("--out", out)
    np.testing.assert_array_equal(again, attacked)
    assert json.loads(out.read_text()) == [*before, last]


def test_every_problem_is_told_at_once(command, tmp_path):
    out = tmp_path / "records.json"
    out.write_text('[{"graph": "cora"}]')
    with pytest.raises(SystemExit) as refused:
        command("--out", out, "--rates", 0, 200, "--seeds", 0)
    for part in ("--rates: got 0", "--rates: got 200", "--seeds: got 0", f"--out: got {out}"):
        assert part in str(refused.value)


def test_the_table(scripts):
    own = {"evasion": {"gcn": 0.4, "g3nn": 0.7}, "sound": {"gcn": 0.8, "g3nn": 0.85}, "flips": []}
    records = [
        record("nobody", 0, "gcn", 0.82),
        record("gcn", 5, "attacker", 0.4, **own),
        record("gcn", 5, "gcn", 0.6),
        record("gcn", 5, "gcn", 0.7, seed=1),
        record("gcn", 10, "gcn", 0.5),
        record("gcn", 10, "g3nn", 0.75),
    ]
    assert scripts["report"].table(records).splitlines() == [
        "cora, standard: the attacker knows the training labels, quick",
        "",
        "|  | attack made for | victim | 0 % | 5 % | 10 % |",
        "|---|---|---|---|---|---|",
        "| evasion | gcn | g3nn | 0.850 | 0.700 | – |",
        "| evasion | gcn | gcn | 0.800 | 0.400 | – |",
        "| poisoning | gcn | g3nn | – | – | 0.750 |",
        "| poisoning | gcn | gcn | 0.820 | 0.650 | 0.500 |",
    ]
