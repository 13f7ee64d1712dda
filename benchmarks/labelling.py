"""Which node to label next: strategies side by side, with a person who is simulated.

    python benchmarks/labelling.py --graphs DIR --out labelling.jsonl --jobs 4      # run again to go on
    python benchmarks/labelling.py --table labelling.jsonl

Each run begins with 2 random labels of every class and asks for as many labels as there are classes at a time, until
there are 20 per class. The person answers with the true label, or in a share `--wrong` of all cases with another one.
Strategies that look at a model look at `G3NNClassifier(effort="quick")`, which is then updated after every batch.

What was chosen is one record. Then learners get the labels that there were at some marks, each a record of its own:

- gcn: a plain network of two layers, the mean accuracy of three; it stops by the validation nodes;
- small: sbm-appnp on every label, two replicas together;
- quick, default: `G3NNClassifier` with these efforts. Neither sees a validation node, nor does any strategy.

Cora, Citeseer and Pubmed have their 500 validation and 1,000 test nodes, which nobody may ask about; other graphs draw
as many, at most a fifth and a third of all. A record that is in the file is not measured again. Graphs: as in
`any_graph.py`.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from any_graph import checked_graphs, load
from labelling_report import table
from workers import carried_out

import g3nn
from g3nn.data import DATASETS
from g3nn.errors import G3NNError, G3NNWarning, Problems
from g3nn.suggest import STRATEGIES, Situation, choose
from g3nn.suggest.strategies import PEERS
from g3nn.task import NodeTask
from g3nn.training.checks import checked_device
from g3nn.training.plan import Plan

Record = dict[str, Any]

FIRST, LAST = 2, 20
"""Labels per class."""
MARKS = (2, 3, 4, 5, 7, 10, 15, 20)
LEARNERS = ("gcn", "small", "quick", "default")
WITHOUT_MODEL = ("random", "coverage", "featprop")
"""Strategies that need no model, so that none is trained."""
VALIDATION, TEST = 500, 1000


@dataclass(frozen=True)
class Choice:
    """Whose choices are wanted, and the key of their record."""

    graph: str
    seed: int
    strategy: str
    wrong: float

    def __str__(self) -> str:
        return f"{self.graph}, seed {self.seed}, {self.strategy}, {self.wrong:.0%} wrong"


@dataclass(frozen=True)
class Lesson:
    """A learner at one mark of a choice, and the key of its record."""

    choice: Choice
    learner: str
    mark: int

    def __str__(self) -> str:
        return f"{self.choice}: {self.learner} with {self.mark} per class"


def key_of(record: Record) -> Choice | Lesson:
    choice = Choice(**{name: record[name] for name in Choice.__dataclass_fields__})
    return Lesson(choice, record["learner"], record["mark"]) if "learner" in record else choice


def split_task(graph: str, seed: int, folder: Path | None) -> tuple[NodeTask, np.ndarray]:
    """A graph with the first labels as training nodes; and the nodes that may be asked about."""
    task = load(graph, "public" if graph in DATASETS else str(FIRST), seed, folder)
    rng = np.random.default_rng(seed)
    known = np.flatnonzero(task.labels >= 0)
    val, test = task.val, task.test
    if graph not in DATASETS:
        order = rng.permutation(known)
        few, many = min(VALIDATION, len(known) // 5), min(TEST, len(known) // 3)
        val, test = np.sort(order[:few]), np.sort(order[few : few + many])
    pool = np.setdiff1d(known, np.concatenate([val, test]))
    classes = [np.flatnonzero(task.labels[pool] == label) for label in range(task.num_classes)]
    train = np.concatenate([pool[rng.choice(nodes, FIRST, replace=False)] for nodes in classes])
    return replace(task, train=np.sort(train), val=val, test=test), pool


@dataclass(frozen=True, eq=False)
class Person:
    """Gives the labels (n,) of the graph, some of them wrong; about a node always the same."""

    labels: np.ndarray

    @classmethod
    def of(cls, task: NodeTask, wrong: float, seed: int) -> Person:
        rng = np.random.default_rng([seed, 7])
        others = (task.labels + rng.integers(1, task.num_classes, task.num_nodes)) % task.num_classes
        return cls(np.where(rng.random(task.num_nodes) < wrong, others, task.labels))

    def given(self, first: np.ndarray, truth: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """(n,): what is known of `nodes`, -1 elsewhere; the first labels are right."""
        y = np.full(len(truth), -1)
        y[nodes] = self.labels[nodes]
        y[first] = truth[first]
        return y


def chosen(job: Choice, folder: Path | None, device: str) -> Record:
    """The nodes in the order in which they were asked about, and how long a question and an update took."""
    task, pool = split_task(job.graph, job.seed, folder)
    person, K = Person.of(task, job.wrong, job.seed), task.num_classes
    most = min(LAST * K, len(pool))
    nodes, asking, learning = task.train, 0.0, 0.0
    started = time.perf_counter()
    model = (
        None
        if job.strategy in WITHOUT_MODEL
        else g3nn.G3NNClassifier(effort="quick", device=device, random_state=job.seed).fit(
            task.features, person.given(task.train, task.labels, nodes), task.edges
        )
    )
    first_fit, questions = time.perf_counter() - started, 0
    situation = Situation(task.edges, task.features, nodes, pool, task.num_nodes, task.weights, seed=job.seed)
    while len(nodes) < most:
        count, start = min(K, most - len(nodes)), time.perf_counter()
        if model is None:
            situation = replace(
                situation, labelled=nodes, candidates=np.setdiff1d(pool, nodes), known_likeness=situation.likeness
            )
            found = choose(situation, count, job.strategy)
        else:
            found = model.suggest(count, job.strategy, candidates=pool)
        asked = np.array([one.number for one in found])
        middle = time.perf_counter()
        if model is not None:
            model.update(asked, person.given(task.train, task.labels, asked)[asked])
        nodes = np.concatenate([nodes, asked])
        asking, learning = asking + middle - start, learning + time.perf_counter() - middle
        questions += 1
    return {
        **asdict(job),
        "nodes": nodes.tolist(),
        "first_fit_seconds": first_fit,
        "question_seconds": asking / max(questions, 1),
        "update_seconds": learning / max(questions, 1),
    }


def learned(job: Lesson, nodes: Sequence[int], folder: Path | None, device: str) -> Record:
    """How good a learner is with the labels that there were at a mark."""
    choice = job.choice
    task, _ = split_task(choice.graph, choice.seed, folder)
    person, first = Person.of(task, choice.wrong, choice.seed), task.train
    train = np.sort(np.array(nodes[: job.mark * task.num_classes], dtype=np.int64))
    y = person.given(first, task.labels, train)
    start = time.perf_counter()
    if job.learner in ("quick", "default"):
        model = g3nn.G3NNClassifier(effort=job.learner, device=device, random_state=choice.seed)
        right = [model.fit(task.features, y, task.edges).predict()[task.test] == task.labels[task.test]]
    else:
        seen = replace(task, labels=np.where(y >= 0, y, task.labels), train=train)
        right = [answer[task.test] == task.labels[task.test] for answer in networks(job, seen, device)]
    seconds = time.perf_counter() - start
    key = {**asdict(choice), "learner": job.learner, "mark": job.mark}
    return {**key, "labels": len(train), "accuracy": float(np.mean(right)), "seconds": seconds}


def networks(job: Lesson, task: NodeTask, device: str) -> list[np.ndarray]:
    """(n,) classes, by every network or by all together."""
    seed, K = job.choice.seed, task.num_classes
    if job.learner == "gcn":
        options: dict[str, Any] = {"epochs": 300, "patience": 100}
        plan = Plan.check("gcn", "elbo", 3, 100 * seed, "mlp", device, options)
        return list(plan.fit(task, progress=False).probabilities.argmax(2))
    options = {"graph_weight": 1 / K, "kl_weight": 1 / K, "hidden": 64}
    plan = Plan.check("sbm-appnp", "elbo", 2, 100 * seed, "mlp", device, options).for_all_labels(150)
    return [plan.fit(task, progress=False).probabilities.mean(0).argmax(1)]


def measured(job: Choice | Lesson, nodes: Sequence[int], folder: Path | None, device: str) -> Record:
    """What a worker does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        found = chosen(job, folder, device) if isinstance(job, Choice) else learned(job, nodes, folder, device)
    return {**found, "device": device}


def choices(graphs: Sequence[str], given: argparse.Namespace) -> Iterator[Choice]:
    keys = product(range(given.first_seed, given.first_seed + given.seeds), graphs, given.wrong, given.strategies)
    return (Choice(graph, seed, strategy, wrong) for seed, graph, wrong, strategy in keys)


def read_records(path: Path, argument: str) -> list[Record]:
    """One from each line; a last line that was cut short is left out."""
    lines, records = path.read_text().splitlines(), []
    for place, line in enumerate(lines):
        try:
            record = json.loads(line)
            key_of(record)
        except (ValueError, KeyError, TypeError) as error:
            if place == len(lines) - 1:
                break
            raise G3NNError(f"{argument}: line {place + 1} of {path} is no record ({error})") from None
        records.append(record)
    return records


def appended(jobs: Sequence[Choice | Lesson], nodes: dict[Choice, list[int]], given: argparse.Namespace) -> int:
    """Measure, and append every record to the file as it comes. Returns how many jobs failed."""
    asked = {
        job: (job, nodes[job.choice] if isinstance(job, Lesson) else (), given.graphs, given.device) for job in jobs
    }
    with given.out.open("a") as out:

        def keep(record: Record) -> str:
            out.write(json.dumps(record) + "\n")
            out.flush()
            return f"accuracy {record['accuracy']:.4f}" if "accuracy" in record else f"{len(record['nodes'])} nodes"

        return carried_out(asked, measured, keep, given.jobs)


def run(given: argparse.Namespace) -> int:
    """First what is chosen, then what is learned from it. Returns how many jobs failed."""
    problems = Problems()
    for name in ("seeds", "jobs"):
        if getattr(given, name) < 1:
            problems.add(f"--{name}", getattr(given, name), "a whole number of at least 1")
    given.device = str(checked_device(given.device, problems))
    if given.out is None:
        problems.add("--out", "nothing", "a file for the records")
    graphs = checked_graphs(given, problems)
    problems.raise_if_any()
    records = read_records(given.out, "--out") if given.out.exists() else []
    if records and not given.out.read_text().endswith("\n"):
        given.out.write_text("".join(json.dumps(record) + "\n" for record in records))
    done = {key_of(record) for record in records}
    wanted = list(choices(graphs, given))
    failed = appended([job for job in wanted if job not in done], {}, given)
    records = read_records(given.out, "--out")
    done = {key_of(record) for record in records}
    nodes = {key: record["nodes"] for record in records if isinstance(key := key_of(record), Choice)}
    lessons = [
        Lesson(*parts) for parts in product([job for job in wanted if job in nodes], given.learners, given.marks)
    ]
    return failed + appended([job for job in lessons if job not in done], nodes, given)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=Path, metavar="DIR", help="a folder of .npz files")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file of records, one on each line")
    parser.add_argument("--only", nargs="+", metavar="GRAPH", help="these graphs")
    names = [*STRATEGIES, *PEERS]
    parser.add_argument("--strategies", nargs="+", choices=names, default=["default", "random", "entropy", *PEERS])
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=["gcn", "small"])
    parser.add_argument("--marks", nargs="+", type=int, choices=range(FIRST, LAST + 1), default=MARKS, metavar="MARK")
    parser.add_argument("--wrong", nargs="+", type=float, default=[0.0], help="shares of answers that are wrong")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="how many processes measure at once")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print stored records instead of measuring")
    given = parser.parse_args()
    try:
        if given.table:
            print(table(read_records(given.table, "--table")))
        elif run(given):
            raise SystemExit(1)
    except G3NNError as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit("Interrupted. The same command goes on from here.") from None


if __name__ == "__main__":
    main()
