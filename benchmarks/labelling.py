"""Which node to label next: strategies side by side, with a person who is simulated.

    python benchmarks/labelling.py --graphs DIR --out labelling.json --jobs 4      # run again to go on
    python benchmarks/labelling.py --table labelling.json
    python benchmarks/labelling.py --plot labelling.json --svg labelling.svg

Each run begins with `--first` random labels of every class and asks for as many labels as there are classes at a time,
until there are `--last` per class. The person answers with the true label, or in a share `--wrong` of all cases with
another one. Strategies that look at a model look at `G3NNClassifier(effort="quick")`, which is updated after every
batch. A person who errs looks again, at 5, 7, 10, 15 and 20 labels per class, at labels that `suggest_labels` doubts:
at most 15 % of all and none twice, and errs as often as before. Where there is no model, nobody looks again.

What was chosen is one record. Then learners get the labels that there were at some marks, a record for each learner:

- gcn, gcn-128: a plain network of two layers with 16 or 128 units, the mean accuracy of three; it stops by the
  validation nodes;
- small: sbm-appnp on every label, two replicas together;
- quick, default: `G3NNClassifier` with these efforts, the second only with all labels. Neither sees a validation node,
  nor does any strategy.

Cora, Citeseer and Pubmed have their 500 validation and 1,000 test nodes, which nobody may ask about; other graphs draw
as many, at most a fifth and a third of all. A record that is in the file is not measured again. Graphs: as in
`any_graph.py`.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from any_graph import checked_graphs, load
from labelling_peers import PEERS
from labelling_report import drawing, table
from records import Record, records_to_extend, stored, write_records
from workers import carried_out

import g3nn
from g3nn.base.errors import G3NNError, G3NNWarning, Problems
from g3nn.base.folders import replacing
from g3nn.graph.datasets import DATASETS
from g3nn.graph.task import NodeTask
from g3nn.queries import STRATEGIES, Situation, choose
from g3nn.training.checks import checked_device
from g3nn.training.plan import Plan

FIRST, LAST = 2, 20
MARKS = (1, 2, 3, 4, 5, 7, 10, 15, 20)
"""Labels per class."""
LEARNERS = ("gcn", "gcn-128", "small", "quick", "default")
LOOKS, DOUBTED = MARKS[4:], 0.15
"""At how many labels per class a person looks again, and at which share of the labels at most."""
WITHOUT_MODEL = ("random", "coverage", "featprop")
"""Strategies that need no model, so that none is trained."""
VALIDATION, TEST = 500, 1000


@dataclass(frozen=True)
class Choice:
    """Whose choices are wanted, and the key of their record. first, last: labels per class."""

    graph: str
    seed: int
    strategy: str
    wrong: float
    first: int = FIRST
    last: int = LAST

    def __str__(self) -> str:
        return f"{self.graph}, seed {self.seed}, {self.strategy}, {self.first} to {self.last}, {self.wrong:.0%} wrong"

    @property
    def marks(self) -> tuple[int, ...]:
        return tuple(mark for mark in MARKS if self.first <= mark <= self.last)


@dataclass(frozen=True)
class Lesson:
    """A learner with what was chosen, and the key of its record."""

    choice: Choice
    learner: str

    def __str__(self) -> str:
        return f"{self.choice}: {self.learner}"

    @property
    def marks(self) -> tuple[int, ...]:
        """Of the slowest learner only the last."""
        return self.choice.marks[-1:] if self.learner == "default" else self.choice.marks


def key_of(record: Record) -> Choice | Lesson:
    """Raises if the record lacks something."""
    choice = Choice(**{name: record[name] for name in Choice.__dataclass_fields__})
    if "learner" not in record:
        len(record["nodes"])
        return choice
    lesson = Lesson(choice, record["learner"])
    for mark in lesson.marks:
        float(record["accuracy"][str(mark)])
    return lesson


def split_task(graph: str, seed: int, first: int, folder: Path | None) -> tuple[NodeTask, np.ndarray]:
    """A graph with the first labels as training nodes; and the nodes that may be asked about."""
    task = load(graph, "public" if graph in DATASETS else str(first), seed, folder)
    rng = np.random.default_rng(seed)
    known = np.flatnonzero(task.labels >= 0)
    val, test = task.val, task.test
    if graph not in DATASETS:
        order = rng.permutation(known)
        few, many = min(VALIDATION, len(known) // 5), min(TEST, len(known) // 3)
        val, test = np.sort(order[:few]), np.sort(order[few : few + many])
    pool = np.setdiff1d(known, np.concatenate([val, test]))
    classes = [np.flatnonzero(task.labels[pool] == label) for label in range(task.num_classes)]
    train = np.concatenate([pool[rng.choice(nodes, first, replace=False)] for nodes in classes])
    return replace(task, train=np.sort(train), val=val, test=test), pool


@dataclass(frozen=True, eq=False)
class Person:
    """Gives the labels (n,) of the graph, some of them wrong; about a node always the same, until they look again."""

    labels: np.ndarray
    again: np.ndarray

    @classmethod
    def of(cls, task: NodeTask, wrong: float, seed: int) -> Person:
        rng = np.random.default_rng([seed, 7])

        def look() -> np.ndarray:
            others = (task.labels + rng.integers(1, task.num_classes, task.num_nodes)) % task.num_classes
            return np.where(rng.random(task.num_nodes) < wrong, others, task.labels)

        return cls(look(), look())

    def given(self, first: np.ndarray, truth: np.ndarray, nodes: np.ndarray, twice: Iterable[int] = ()) -> np.ndarray:
        """(n,): what is known of `nodes`, -1 elsewhere; the first labels are right. twice: who was looked at again."""
        y = np.full(len(truth), -1)
        y[nodes] = self.labels[nodes]
        twice = list(twice)
        y[twice] = self.again[twice]
        y[first] = truth[first]
        return y

    def looks_again(self, model: g3nn.G3NNClassifier, labels: int, before: dict[int, int]) -> dict[int, int]:
        """Tells the model what a second look at doubtful labels shows. By node, how many labels there were at that
        time: `before` and now."""
        found = [one.number for one in model.suggest_labels(max(1, int(DOUBTED * labels))) if one.number not in before]
        if found:
            model.update(found, self.again[found])
        return {**before, **dict.fromkeys(found, labels)}


def begun(*start: Any) -> tuple[g3nn.G3NNClassifier, float]:
    """A model of the first labels, and the seconds it took: the same for all strategies, each with a copy of its own.
    start: see `first_fit`."""
    return copy.deepcopy(first_fit(*start))


@lru_cache(maxsize=1)
def first_fit(graph: str, seed: int, first: int, folder: Path | None, device: str) -> tuple[g3nn.G3NNClassifier, float]:
    task, _ = split_task(graph, seed, first, folder)
    y, started = np.full(task.num_nodes, -1), time.perf_counter()
    y[task.train] = task.labels[task.train]
    model = g3nn.G3NNClassifier(effort="quick", device=device, random_state=seed).fit(task.features, y, task.edges)
    return model, time.perf_counter() - started


def chosen(job: Choice, folder: Path | None, device: str) -> Record:
    """The nodes in the order in which they were asked about, and how long a question and an update took."""
    task, pool = split_task(job.graph, job.seed, job.first, folder)
    person, K = Person.of(task, job.wrong, job.seed), task.num_classes
    most = min(job.last * K, len(pool))
    nodes, asking, learning = task.train, 0.0, 0.0
    # The first labels are right.
    looked = dict.fromkeys(task.train.tolist(), 0)
    model, first_seconds, questions = None, 0.0, 0
    if job.strategy not in WITHOUT_MODEL:
        model, first_seconds = begun(job.graph, job.seed, job.first, folder, device)
    situation = Situation(task.edges, task.features, nodes, pool, task.num_nodes, task.weights, seed=job.seed)
    while len(nodes) < most:
        count, start = min(K, most - len(nodes)), time.perf_counter()
        if model is None:
            situation = replace(
                situation, labelled=nodes, candidates=np.setdiff1d(pool, nodes), known_likeness=situation.likeness
            )
            found = choose(situation, count, PEERS.get(job.strategy, job.strategy))
        else:
            found = model.suggest(count, PEERS.get(job.strategy, job.strategy), candidates=pool)
        asked = np.array([one.number for one in found])
        middle = time.perf_counter()
        if model is not None:
            model.update(asked, person.given(task.train, task.labels, asked)[asked])
        nodes = np.concatenate([nodes, asked])
        if model is not None and job.wrong and len(nodes) in [K * mark for mark in LOOKS]:
            looked = person.looks_again(model, len(nodes), looked)
        asking, learning = asking + middle - start, learning + time.perf_counter() - middle
        questions += 1
    return {
        **asdict(job),
        "nodes": nodes.tolist(),
        "looked": [[node, labels] for node, labels in looked.items() if labels],
        "first_fit_seconds": first_seconds,
        "question_seconds": asking / max(questions, 1),
        "update_seconds": learning / max(questions, 1),
    }


def learned(job: Lesson, chosen: Record, folder: Path | None, device: str) -> Record:
    """How good a learner is with the labels that there were at every mark."""
    choice = job.choice
    task, _ = split_task(choice.graph, choice.seed, choice.first, folder)
    person, truth = Person.of(task, choice.wrong, choice.seed), task.labels[task.test]
    start, found = time.perf_counter(), {}
    for mark in job.marks:
        many = mark * task.num_classes
        train = np.sort(np.array(chosen["nodes"][:many], dtype=np.int64))
        twice = [node for node, labels in chosen.get("looked", []) if labels <= many]
        y = person.given(task.train, task.labels, train, twice)
        if job.learner in ("quick", "default"):
            model = g3nn.G3NNClassifier(effort=job.learner, device=device, random_state=choice.seed)
            answers = [model.fit(task.features, y, task.edges).predict()]
        else:
            answers = networks(job, replace(task, labels=np.where(y >= 0, y, task.labels), train=train), device)
        found[str(mark)] = float(np.mean([answer[task.test] == truth for answer in answers]))
    return {**asdict(choice), "learner": job.learner, "accuracy": found, "seconds": time.perf_counter() - start}


def networks(job: Lesson, task: NodeTask, device: str) -> list[np.ndarray]:
    """(n,) classes, by every network or by all together."""
    seed, K = job.choice.seed, task.num_classes
    if job.learner.startswith("gcn"):
        options: dict[str, Any] = {"epochs": 300, "patience": 100, "hidden": 128 if job.learner == "gcn-128" else 16}
        plan = Plan.check("gcn", "elbo", 3, 100 * seed, "mlp", device, options)
        return list(plan.fit(task, progress=False).probabilities.argmax(2))
    options = {"graph_weight": 1 / K, "kl_weight": 1 / K, "hidden": 64}
    plan = Plan.check("sbm-appnp", "elbo", 2, 100 * seed, "mlp", device, options).for_all_labels(150)
    return [plan.fit(task, progress=False).probabilities.mean(0).argmax(1)]


def measured(jobs: Sequence[Choice | Lesson], made: Record, folder: Path | None, device: str) -> list[Record]:
    """What a worker does: choices that begin alike, or a lesson. made: the choice that a lesson is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        found = [
            chosen(job, folder, device) if isinstance(job, Choice) else learned(job, made, folder, device)
            for job in jobs
        ]
    return [{**record, "device": device} for record in found]


def choices(graphs: Sequence[str], given: argparse.Namespace) -> Iterator[Choice]:
    keys = product(range(given.first_seed, given.first_seed + given.seeds), graphs, given.wrong, given.strategies)
    return (Choice(graph, seed, strategy, wrong, given.first, given.last) for seed, graph, wrong, strategy in keys)


def run(given: argparse.Namespace) -> int:
    """First what is chosen, then what is learned from it. Returns how many jobs failed."""
    problems = Problems()
    for name in ("seeds", "jobs", "first"):
        if getattr(given, name) < 1:
            problems.add(f"--{name}", getattr(given, name), "a whole number of at least 1")
    if given.last < given.first:
        problems.add("--last", given.last, f"at least --first, {given.first}")
    device = str(checked_device(given.device, problems))
    records = records_to_extend(given.out, key_of, problems)
    graphs = checked_graphs(given, problems)
    problems.raise_if_any()

    def keep(found: list[Record]) -> str:
        records.extend(found)
        write_records(given.out, records)
        last = found[-1]
        return f"accuracy {list(last['accuracy'].values())[-1]:.4f}" if "learner" in last else "chosen"

    def measure(groups: Iterable[tuple[Sequence[Choice | Lesson], Record]]) -> int:
        jobs = {"; ".join(map(str, group)): (group, made, given.graphs, device) for group, made in groups}
        print(f"{len(jobs)} to do, {len(records)} records in {given.out}", file=sys.stderr, flush=True)
        return carried_out(jobs, measured, keep, given.jobs)

    wanted, done = list(choices(graphs, given)), {key_of(record) for record in records}
    alike: dict[tuple[Any, ...], list[Choice]] = defaultdict(list)
    for choice in wanted:
        if choice not in done:
            alike[choice.graph, choice.seed, choice.strategy in WITHOUT_MODEL].append(choice)
    failed = measure((group, {}) for group in alike.values())
    made = {key_of(record): record for record in records}
    lessons = (Lesson(*parts) for parts in product(wanted, given.learners))
    return failed + measure(([one], made[one.choice]) for one in lessons if one not in made and one.choice in made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=Path, metavar="DIR", help="a folder of .npz files")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file of records, written after every one")
    parser.add_argument("--only", nargs="+", metavar="GRAPH", help="these graphs")
    parser.add_argument(
        "--strategies", nargs="+", choices=[*STRATEGIES, *PEERS], default=["default", "random", "entropy", *PEERS]
    )
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=["gcn", "small"])
    parser.add_argument("--first", type=int, default=FIRST, help="labels per class in the beginning")
    parser.add_argument("--last", type=int, default=LAST, help="labels per class in the end")
    parser.add_argument("--wrong", nargs="+", type=float, default=[0.0], help="shares of answers that are wrong")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="how many processes measure at once")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print stored records instead of measuring")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw stored records; with --svg")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="where to draw them")
    given = parser.parse_args()
    if (given.plot is None) != (given.svg is None):
        parser.error("--plot and --svg go together")
    try:
        if given.table:
            print(table(stored(given.table, "--table", key_of)))
        if given.plot:
            with replacing(given.svg) as draft:
                draft.write_text(drawing(stored(given.plot, "--plot", key_of)))
        if not (given.table or given.plot) and run(given):
            raise SystemExit(1)
    except G3NNError as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit("Interrupted. The same command goes on from here.") from None


if __name__ == "__main__":
    main()
