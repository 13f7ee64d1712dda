"""What each model of the panel says with few labels: of labels that were left out, and of test nodes.

    export G3NN_DATA=FOLDER G3NN_GRAPHS=FOLDER
    python benchmarks/few_members.py --out FOLDER --device cuda --processes 14 --seconds 540
    python benchmarks/few_members.py --out FOLDER --graphs cora texas --labels 3 --seeds 0

From these answers mixtures can be compared without training again (`benchmarks/few_mixture.py`). Joint models of the
panel, the networks in them alone, and `gentle`, the joint models with a weight of the graph that falls with the number
of labels, are trained for 200 epochs: a replica without each fold of the labels, and three on all of them. One file for
each graph, number of labels of each class and drawing; a file that is there is not made again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from scarce import EPOCHS, GRAPHS

from g3nn.base.errors import Problems
from g3nn.estimator import G3NNClassifier
from g3nn.estimator.fitting import _search
from g3nn.estimator.panel import Candidate, networks_alone, panel_of
from g3nn.estimator.problem import read_problem
from g3nn.estimator.search import Search
from g3nn.graph.datasets import load
from g3nn.graph.datasets.scarce import few_known
from g3nn.graph.given import Given, take_apart
from g3nn.graph.outcomes import OUTCOMES, Classes
from g3nn.graph.task import NodeTask
from g3nn.training.progress import Course

LEFT_OUT = ("hops", "linkx", "gcnii", "sbm-gcn", "gsbm-mlp", "gsbm-sage", "grand", "gat", "blsm-linkx")
WHOLE, ASKED = 2, 700
"""Replicas that learn from all labels; and test nodes whose answers are kept."""
Job = tuple[str, int, int, str, str, float, tuple[float, ...]]


def candidates(task: NodeTask, labels: int) -> dict[str, Candidate]:
    """By a name of their own."""
    found, classes = dict[str, Candidate](), OUTCOMES["classes"]
    share = min(labels / 20, 1.0)
    for place, one in enumerate(panel_of(classes, task.num_classes, 2.0, len(task.train))):
        joint = Candidate(*one)
        if joint.options.get("travelling") == "features":
            continue
        if joint.name in LEFT_OUT:
            continue
        found[f"{place} {joint.name}"] = joint
        if "-" in joint.name:
            (network,) = networks_alone([joint], classes)
            found[f"{place} {network.name} alone"] = network
            if joint.name == "dcsbm-grand":
                weights = {"graph_weight": float(joint.options["graph_weight"]) * share}
                found[f"{place} {joint.name} gentle"] = replace(joint, options={**joint.options, **weights})
    each = {one.key: name for name, one in reversed(found.items())}
    return {name: one for name, one in found.items() if each[one.key] == name}


def search_of(task: NodeTask, seed: int) -> Search:
    shown = np.full(task.num_nodes, -1)
    shown[task.train] = task.labels[task.train]
    problems, notes = Problems(), list[str]()
    with problems:
        data = take_apart(Given(task.features, shown, task.edges, None, False), problems)
        how = G3NNClassifier(random_state=seed, device="cpu").get_params()
        problem = read_problem(how, Classes, data, problems, notes)
    return _search(problem, Course(), notes)


def answers_of(task: NodeTask, labels: int, seed: int, device: str, evenness: Sequence[float]) -> dict[str, np.ndarray]:
    """Of each model the log-probabilities of labels that were left out, and of test nodes."""
    search, outcome = search_of(task, seed), task.outcome_model()
    folds = (*search.folds, *search.reserved) if labels > 1 else ()
    left = np.concatenate(folds).astype(int) if folds else np.zeros(0, int)
    asked = task.test[:ASKED]
    view = next(iter(search.views))
    base = replace(search.seen(view), train=task.train, val=task.val, test=task.test, labels=task.labels)
    parts = [(replace(base, train=np.setdiff1d(task.train, fold), val=fold), None) for fold in folds]
    parts += [(replace(base, val=task.val[:0]), None)] * WHOLE
    found = {"left": left, "left_labels": task.labels[left], "asked": asked, "asked_labels": task.labels[asked]}
    seeds = tuple(range(1000 * seed, 1000 * seed + len(parts)))
    for name, one in candidates(task, labels).items():
        weights = np.repeat(evenness, len(parts)).tolist()
        one = replace(one, options={**one.options, "evenness_weight": tuple(weights)})
        plan = one.plan({}, seeds * len(evenness), device).for_all_labels(EPOCHS)
        result = plan.fit_parts(parts * len(evenness), False)
        for place, weight in enumerate(evenness):
            answers = result.answers[place * len(parts) : (place + 1) * len(parts)]
            own = [answers[r, torch.from_numpy(fold)] for r, fold in enumerate(folds)]
            left_out = torch.cat(own) if own else answers[0, :0]
            whole = outcome.averaged(answers[len(folds) :])[asked]
            found[f"left/{name} @{weight:g}"] = left_out.numpy().astype(np.float16)
            found[f"asked/{name} @{weight:g}"] = whole.astype(np.float16)
    return found | simple_answers(task, search, folds, left, asked)


def simple_answers(
    task: NodeTask, search: Search, folds: tuple[np.ndarray, ...], left: np.ndarray, asked: np.ndarray
) -> dict[str, np.ndarray]:
    found = dict[str, np.ndarray]()
    for one in simple_models(task):
        seen = search.seen(next(iter(search.views)), around=one.neighbours)
        seen = replace(seen, labels=task.labels)
        own = []
        for nodes in [*folds, None]:
            known = task.train if nodes is None else np.setdiff1d(task.train, nodes)
            part = replace(seen, train=known, val=known if nodes is None else nodes, test=task.test)
            if one.estimator is None:
                plan = one.plan({}, (0,), "cpu")
                answer = np.asarray(plan.fit(part, False).answers[0])
            else:
                answer = search.learned(one, [(part, None)]).fitted_answers(part).answer
            own.append(answer[asked] if nodes is None else answer[nodes])
        name = f"simple {one.name} {one.options.get('penalty', '')}"
        found[f"left/{name}"] = np.concatenate([own[0][:0], *own[:-1]]).astype(np.float16)
        found[f"asked/{name}"] = own[-1].astype(np.float16)
    return found


def simple_models(task: NodeTask) -> tuple[Candidate, ...]:
    from g3nn.estimator.panel import simple_candidates

    return simple_candidates(Classes, len(task.train), task.num_classes, task.num_features, True)


def work(job: Job) -> str:
    graph, labels, seed, folder, device, until, evenness = job
    path = Path(folder) / f"{graph}-{labels}-{seed}.npz"
    if path.exists() or time.time() > until:
        return ""
    torch.set_num_threads(1)
    began = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        task = few_known(load(graph), labels, True, seed).task
        found = answers_of(task, labels, seed, device, evenness)
    np.savez_compressed(path.with_suffix(".part.npz"), **found)
    path.with_suffix(".part.npz").rename(path)
    return f"{path.stem} {time.monotonic() - began:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=GRAPHS, metavar="GRAPH")
    parser.add_argument("--labels", nargs="+", type=int, default=(3, 1, 5, 10))
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1))
    parser.add_argument("--evenness", nargs="+", type=float, default=(0.0,), help="weights, each tried")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="no graph is begun afterwards")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    until = time.time() + options.seconds
    jobs: list[Job] = [
        (graph, labels, seed, str(options.out), options.device, until, tuple(options.evenness))
        for seed in options.seeds
        for labels in options.labels
        for graph in options.graphs
    ]
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for line in pool.imap_unordered(work, jobs):
            if line:
                print(line, flush=True)


if __name__ == "__main__":
    main()
