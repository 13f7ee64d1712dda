"""Edges flipped by an attacker that knows how edges are doubted, and by one that knows only a plain GCN.

    python benchmarks/adaptive_attack.py --graph cora --out adaptive_attack.json --device cuda     # run again to go on
    python benchmarks/adaptive_attack.py --table adaptive_attack.json

The attacker imagines a victim: `gcn`, or `g3nn`, the networks of `G3NNClassifier` that doubt edges, with everything
that decides how far each edge is believed. It follows the gradient of the victim's answer through all of that, and
flips at most a share of the edges (`--rates`, in percent). It knows features, edges and training labels, and takes its
own answers on the sound graph for the labels of the other nodes, or knows all labels (`--all-labels`).

- evasion: the networks that were trained on the sound graph answer on the attacked one, which is judged anew;
- poisoning: victims are trained on the attacked graph. `g3nn` is `G3NNClassifier()`, `g3nn-plain` the same with
  `denoise=False`, and the others are chosen and trained as in the suite `noise`.

The graph is the sound one of the Pro-GNN study if `G3NN_ATTACKED` names a folder that has it, otherwise that of
Planetoid with its public split. A record of an attack holds its flips. A record that is in the file is not made again.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import torch
from adaptive_attack_answers import ANSWERS, Answer
from adaptive_attack_report import table
from adaptive_attack_search import QUICK, Aims, Effort, Search, flipped
from any_graph import default
from records import Record, records_to_extend, stored, write_records

import g3nn
from g3nn.base.errors import G3NNError, G3NNWarning, Problems
from g3nn.graph.datasets.graphs import ATTACKED_FOLDER, attacked
from g3nn.graph.task import NodeTask
from g3nn.studies.suite_file import load_suite
from g3nn.training.checks import checked_device

GRAPHS, RATES = ("cora", "citeseer"), (5, 10, 15, 20, 25)
ESTIMATORS = {"g3nn": {}, "g3nn-plain": {"denoise": False}}
VICTIMS = ("gcn", "gcn-jaccard", "gnnguard", *ESTIMATORS)
ATTACKER, NOBODY = "attacker", "nobody"
"""In the place of a victim: the record is that of the attack. In the place of an attack: there was none."""


@dataclass(frozen=True)
class Job:
    """An attack, or a victim of one, and the key of its record. attack: the victim for which it is made. knows: which
    labels the attacker knows."""

    graph: str
    setting: str
    knows: str
    effort: str
    seed: int
    attack: str
    rate: int
    victim: str

    def __str__(self) -> str:
        return f"{self.graph}, seed {self.seed}, attack on {self.attack}, {self.rate} %, {self.victim}"

    @classmethod
    def of(cls, record: Record) -> Job:
        return cls(**{name: record[name] for name in cls.__dataclass_fields__})

    @property
    def by(self) -> Job:
        """The attack of which this is a victim."""
        return replace(self, victim=ATTACKER)


@cache
def load(graph: str) -> NodeTask:
    return g3nn.load(graph) if ATTACKED_FOLDER.file(graph) is None else attacked(graph, "metattack-0").task


@cache
def imagined(name: str, graph: str, seed: int, device: str) -> Answer:
    """A victim as the attacker imagines it, trained on the sound graph."""
    answer = ANSWERS[name](load(graph), seed, device)
    answer.learn(answer.task.edges)
    return answer


def attack(job: Job, effort: Effort, device: str) -> Record:
    """The flips of one attack, and what they do to those that were trained on the sound graph."""
    task, start = load(job.graph), time.perf_counter()
    answer = copy.deepcopy(imagined(job.attack, job.graph, job.seed, device))
    if job.knows == "all":
        aims = Aims.known(task.labels, task.unlabelled, device)
    else:
        aims = Aims.guessed(answer.on(task.edges), task.unlabelled)
    search = Search(answer, aims, effort, job.seed)
    found = search.run(round(job.rate / 100 * task.num_edges))
    after = flipped(task.edges, found.flips, task.num_nodes)
    added = int((~np.isin(found.flips, search.taken)).sum())
    seconds = time.perf_counter() - start
    every = {name: imagined(name, job.graph, job.seed, device) for name in ANSWERS}
    evasion, sound = (
        {name: accuracy(one.library_log_prob(edges), task) for name, one in every.items()}
        for edges in (after, task.edges)
    )
    return {
        "accuracy": evasion[job.attack],
        "evasion": evasion,
        "sound": sound,
        "wrong": [found.before, found.after],
        "added": added,
        "removed": len(found.flips) - added,
        "search": asdict(effort),
        "seconds": seconds,
        "flips": found.flips.tolist(),
    }


def accuracy(log_prob: np.ndarray, task: NodeTask) -> float:
    return float((log_prob.argmax(1) == task.labels)[task.test].mean())


def peer(model: str, task: NodeTask, device: str, quick: bool) -> Record:
    """Hyper-parameters by the validation loss of some seeds, then trials with others, as in the suite `noise`."""
    start, suite = time.perf_counter(), load_suite("noise")
    only = {"model": model, "dataset": task.name, "setting": "metattack-0"}
    points = [dict(point.options) for point in suite.points(suite.entries(only)[0])][: 1 if quick else None]
    protocol = suite.protocol

    def trained(options: dict, trials: int, seed: int) -> g3nn.FitResult:
        return g3nn.fit(task, model, trials=trials, seed=seed, device=device, progress=False, **options)

    def loss(options: dict) -> float:
        found = trained(options, protocol.selection_seeds, protocol.first_selection_seed).val_loss.mean()
        return float(found) if np.isfinite(found) else np.inf

    options = min(points, key=loss) if len(points) > 1 else points[0]
    result = trained(options, 1 if quick else protocol.trials, protocol.first_seed)
    return {
        "accuracy": float(result.test_accuracy.mean()),
        "deviation": float(result.test_accuracy.std()),
        "val_loss": float(result.val_loss.mean()),
        "options": options,
        "seconds": time.perf_counter() - start,
    }


def victim(job: Job, edges: np.ndarray, device: str) -> Record:
    """What becomes of a victim that is trained on these edges."""
    task, quick = load(job.graph).with_edges(edges), job.effort == "quick"
    if job.victim in ESTIMATORS:
        return default(task, job.seed, device, **ESTIMATORS[job.victim], **({"effort": "quick"} if quick else {}))
    return peer(job.victim, task, device, quick)


def planned(given: argparse.Namespace) -> Iterator[Job]:
    """Every job that was asked for: those without an attack, then each attack and its victims."""
    knows, effort = "all" if given.all_labels else "training", "quick" if given.quick else "full"
    for seed in range(given.seeds):
        first = Job(given.graph, load(given.graph).setting, knows, effort, seed, NOBODY, 0, "")
        yield from (replace(first, victim=name) for name in given.victims)
        for name in given.attacks:
            for rate in given.rates:
                one = replace(first, attack=name, rate=rate)
                yield from (replace(one, victim=victim) for victim in (ATTACKER, *given.victims))


def check_record(record: Record) -> None:
    """Raises if it lacks something."""
    float(record["accuracy"])
    if Job.of(record).victim == ATTACKER:
        for part in ("evasion", "sound"):
            float(sum(record[part].values()))
        np.array(record["flips"], dtype=np.int64)


def checked(given: argparse.Namespace) -> tuple[list[Record], str]:
    """The records that are there, and the device. Raises with everything that is wrong."""
    problems = Problems()
    for name in ("seeds", "steps", "block"):
        value = getattr(given, name)
        if value is not None and value < 1:
            problems.add(f"--{name}", value, "a whole number of at least 1")
    for rate in given.rates:
        if not 0 < rate <= 100:
            problems.add("--rates", rate, "percent of the edges, from 1 to 100")
    device = str(checked_device(given.device, problems))
    records = records_to_extend(given.out, check_record, problems)
    with problems.gathered():
        load(given.graph)
    problems.raise_if_any()
    return records, device


def run(given: argparse.Namespace) -> None:
    """Make what is left, and write after every record."""
    records, device = checked(given)
    effort = QUICK if given.quick else Effort()
    effort = replace(effort, **{key: getattr(given, key) for key in ("steps", "block") if getattr(given, key)})
    done = {Job.of(record): record for record in records}
    jobs = [job for job in planned(given) if job not in done]
    print(f"{len(jobs)} to do, {len(records)} records in {given.out}", file=sys.stderr, flush=True)
    machine = torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu"
    for number, job in enumerate(jobs, 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", G3NNWarning)
            if job.victim == ATTACKER:
                found = attack(job, effort, device)
            else:
                task = load(job.graph)
                flips = done[job.by]["flips"] if job.attack != NOBODY else []
                found = victim(job, flipped(task.edges, np.array(flips, dtype=np.int64), task.num_nodes), device)
        record = {**asdict(job), "device": machine, **found}
        done[job] = record
        records.append(record)
        write_records(given.out, records)
        figures = f"accuracy {record['accuracy']:.4f}, {record['seconds']:.0f} s"
        print(f"[{number}/{len(jobs)}] {job}: {figures}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", choices=GRAPHS, default="cora")
    parser.add_argument("--rates", nargs="+", type=int, default=RATES, metavar="PERCENT", help="of the edges")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--attacks", nargs="+", choices=list(ANSWERS), default=list(ANSWERS), help="made for whom")
    parser.add_argument("--victims", nargs="*", choices=VICTIMS, default=["gcn", "g3nn"])
    parser.add_argument("--all-labels", action="store_true", help="the attacker knows the labels of all nodes")
    parser.add_argument("--quick", action="store_true", help="a weak attack and short trainings, to try it out")
    parser.add_argument("--steps", type=int, help="of the gradient")
    parser.add_argument("--block", type=int, help="pairs without an edge that are looked at together")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file of records, written after every one")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print stored records instead")
    given = parser.parse_args()
    try:
        if given.table:
            print(table(stored(given.table, "--table", check_record)))
        else:
            run(given)
    except G3NNError as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit("Interrupted. The same command goes on from here.") from None


if __name__ == "__main__":
    main()
