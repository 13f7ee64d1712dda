"""The default on graphs that nobody tuned it for, beside what a careful person would try by hand.

    python benchmarks/any_graph.py --graphs DIR --out any_graph.json --jobs 4     # run again to go on
    python benchmarks/any_graph.py --table any_graph.json
    python benchmarks/any_graph.py --plot any_graph.json --svg any_graph.svg

Graphs: Cora, Citeseer and Pubmed, and every .npz in DIR, which holds `edge_index` (2, arcs), `y` (-1 where unknown)
and the features as a CSR matrix: `x_data`, `x_indices`, `x_indptr` and `x_shape`.

- default: `G3NNClassifier()`, which sees the labels of training and validation nodes;
- portfolio: the best of twelve trainings in PyTorch Geometric, by validation loss (`portfolio.py`);
- trees: scikit-learn's HistGradientBoostingClassifier on the features;
- believing: the default with `denoise=False`, if asked for.

Splits: 5 or 20 labels of each class, or 10 % of each class for training and for validation; and the public split of the
three citation graphs, where only the random state changes. `--forms` also gives the default, at 20 labels, the same
features row-normalised and divided by the standard deviations of their columns. (Cora, Citeseer and Pubmed always come
row-normalised.) A record that is in the file is not measured again.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import scipy.sparse as sp
import torch
from any_graph_report import drawing, table
from classifier import known_labels
from records import Record, records_to_extend, stored, write_records
from workers import carried_out

import g3nn
from g3nn.base.errors import G3NNError, G3NNWarning, Problems
from g3nn.base.folders import replacing
from g3nn.graph.datasets import DATASETS
from g3nn.graph.datasets.graphs import ARRAYS, few_labels, read_graph
from g3nn.graph.datasets.planetoid import row_normalised
from g3nn.graph.task import NodeTask
from g3nn.training.checks import checked_device

SPLITS = ("5", "20", "10/10/80", "public")
METHODS = ("default", "portfolio", "trees", "believing")
FORMS = ("raw", "rows", "scaled")
FORMS_SPLIT = "20"
SHARE = 0.1
ALPHA = 0.1
FIGURES, OWN_FIGURES = ("accuracy", "val_loss", "seconds", "test_nodes"), ("ece", "coverage", "set_size")
"""Of every record, and of those of the default."""


@dataclass(frozen=True)
class Job:
    """One training, and the key of its record."""

    graph: str
    split: str
    seed: int
    form: str
    method: str

    def __str__(self) -> str:
        return f"{self.graph}, {self.split}, seed {self.seed}, {self.form} features, {self.method}"

    @classmethod
    def of(cls, record: Record) -> Job:
        return cls(**{name: record[name] for name in cls.__dataclass_fields__})


def parts(y: np.ndarray, split: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training, validation and test nodes among those with a label; every class has a training node."""
    if split != "10/10/80":
        return few_labels(y, int(split), seed)
    rng = np.random.default_rng(seed)
    known = np.flatnonzero(y >= 0)
    classes = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y[known])]
    sizes = [max(1, round(SHARE * len(nodes))) for nodes in classes]
    train = np.concatenate([nodes[:size] for nodes, size in zip(classes, sizes, strict=True)])
    val = np.concatenate([nodes[size : 2 * size] for nodes, size in zip(classes, sizes, strict=True)])
    return np.sort(train), np.sort(val), np.setdiff1d(known, np.concatenate([train, val]))


def formed(features: sp.csr_array, form: str) -> sp.csr_array:
    """The features as another caller may have them. A column without spread stays as it is."""
    if form == "rows":
        return row_normalised(features)
    if form == "scaled":
        x = features.astype(np.float64)
        spread = np.sqrt(np.maximum((x * x).mean(axis=0) - x.mean(axis=0) ** 2, 0))
        return sp.csr_array((x @ sp.diags_array(1 / np.where(spread > 0, spread, 1))).astype(np.float32))
    return features


def load(graph: str, split: str, seed: int, folder: Path | None) -> NodeTask:
    """A citation graph or one of the folder, with this split."""
    if graph in DATASETS:
        task = g3nn.load(graph)
        return task if split == "public" else task.with_split(*parts(task.labels, split, seed))
    assert folder is not None
    features, edges, labels = read_graph(folder / f"{graph}.npz")
    return NodeTask.build(features, edges, labels, *parts(labels, split, seed), name=graph)


def default(task: NodeTask, seed: int, device: str, **parameters: Any) -> Record:
    """Fit, then score the test nodes; what the classifier says about itself comes along. parameters: of the classifier,
    if it is not the default."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", G3NNWarning)
        classifier = g3nn.G3NNClassifier(device=device, random_state=seed, **parameters)
        classifier.fit(task.features, known_labels(task), task.edges, val=task.val)
    seconds = time.perf_counter() - start
    truth = task.labels[task.test]
    found, sets = classifier.evaluate(task.test, truth), classifier.predict_set(ALPHA)[task.test]
    notes = [str(warning.message) for warning in caught if issubclass(warning.category, G3NNWarning)]
    return {
        "accuracy": found["accuracy"],
        "val_loss": classifier.evaluate(task.val, task.labels[task.val])["nll"],
        "ece": found["ece"],
        "coverage": float(sets[np.arange(truth.size), np.searchsorted(classifier.classes_, truth)].mean()),
        "set_size": float(sets.sum(1).mean()),
        "model": classifier.model_,
        "tried": len(classifier.panel_),
        "panel": [asdict(entry) for entry in classifier.panel_ if entry.chosen],
        "notes": notes + [f"{key}: {value}" for key, value in classifier.notes_.items()],
        "seconds": seconds,
    }


def measured(job: Job, folder: Path | None, device: str) -> Record:
    """What a worker does."""
    # Here, so that a table can be printed without PyTorch Geometric.
    from portfolio import boosted_trees, portfolio

    task = load(job.graph, job.split, job.seed, folder)
    task = replace(task, features=formed(sp.csr_array(task.features), job.form))
    found = {
        "default": lambda: default(task, job.seed, device),
        "believing": lambda: default(task, job.seed, device, denoise=False),
        "portfolio": lambda: portfolio(task, job.seed, device),
        "trees": lambda: boosted_trees(task, job.seed),
    }[job.method]()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
    machine = torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu"
    return {**asdict(job), "test_nodes": len(task.test), "device": machine, **found}


def planned(graphs: Sequence[str], given: argparse.Namespace) -> Iterator[Job]:
    """Every job that was asked for, graph by graph."""
    for graph, split, seed in product(graphs, given.splits, range(given.seeds)):
        if split == "public" and graph not in DATASETS:
            continue
        yield from (Job(graph, split, seed, "raw", method) for method in given.methods)
        if given.forms and split == FORMS_SPLIT and "default" in given.methods:
            yield from (Job(graph, split, seed, form, "default") for form in FORMS if form != "raw")


def check_record(record: Record) -> None:
    """Raises if it lacks a figure."""
    own = OWN_FIGURES if Job.of(record).method in ("default", "believing") else ()
    for name in (*FIGURES, *own):
        float(record[name])


def checked_graphs(given: argparse.Namespace, problems: Problems) -> list[str]:
    """The names of the graphs to measure. Each is looked at now: a missing file should not turn up after hours."""
    files: dict[str, Path] = {}
    if given.graphs is not None:
        files = {file.stem: file for file in sorted(given.graphs.glob("*.npz"))}
        if not files:
            problems.add("--graphs", given.graphs, "a folder with at least one .npz file")
    names = [*files, *DATASETS]
    for name in given.only or ():
        problems.name("--only", name, names)
    wanted = [name for name in names if given.only is None or name in given.only]
    for name in wanted:
        if name in DATASETS:
            g3nn.load(name)
            continue
        try:
            with np.load(files[name]) as arrays:
                missing = [array for array in ARRAYS if array not in arrays]
        except (OSError, ValueError, BadZipFile) as error:
            problems.add("--graphs", f"{files[name]} ({error})", "a file of numpy arrays")
        else:
            if missing:
                problems.add("--graphs", f"{files[name].name} without {', '.join(missing)}", f"{', '.join(ARRAYS)}")
    return wanted


def checked(given: argparse.Namespace) -> tuple[list[Job], list[Record], str]:
    """Jobs that are left to do, the records that are there, and the device. Raises with everything that is wrong."""
    problems = Problems()
    for name in ("seeds", "jobs"):
        if getattr(given, name) < 1:
            problems.add(f"--{name}", getattr(given, name), "a whole number of at least 1")
    device = str(checked_device(given.device, problems))
    records = records_to_extend(given.out, check_record, problems)
    graphs = checked_graphs(given, problems)
    problems.raise_if_any()
    done = {Job.of(record) for record in records}
    return [job for job in planned(graphs, given) if job not in done], records, device


def run(given: argparse.Namespace) -> int:
    """Measure what is left, and write after every record. Returns how many jobs failed."""
    jobs, records, device = checked(given)
    print(f"{len(jobs)} to do, {len(records)} records in {given.out}", file=sys.stderr, flush=True)

    def keep(record: Record) -> str:
        records.append(record)
        write_records(given.out, records)
        return f"accuracy {record['accuracy']:.4f}, {record['seconds']:.0f} s"

    return carried_out({job: (job, given.graphs, device) for job in jobs}, measured, keep, given.jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=Path, metavar="DIR", help="a folder of .npz files")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file of records, written after every one")
    parser.add_argument("--only", nargs="+", metavar="GRAPH", help="these graphs")
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=SPLITS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS[:3])
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--forms", action="store_true", help="also other forms of the features, for the default")
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
            print(table(stored(given.table, "--table", check_record)))
        if given.plot:
            with replacing(given.svg) as draft:
                draft.write_text(drawing(stored(given.plot, "--plot", check_record)))
        if not (given.table or given.plot) and run(given):
            raise SystemExit(1)
    except G3NNError as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit("Interrupted. The same command goes on from here.") from None


if __name__ == "__main__":
    main()
