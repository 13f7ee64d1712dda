"""The simulated person, the records and the tables of `benchmarks/labelling.py`. Only a tiny graph is trained on."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import g3nn
from g3nn.queries import Situation, choose

pytestmark = pytest.mark.usefixtures("labels_judged_quickly", "edges_judged_quickly", "few_models")

FOLDER = Path(__file__).parents[3] / "benchmarks"
MODULES = (
    "updating",
    "labelling",
    "labelling_peers",
    "labelling_report",
    "any_graph",
    "any_graph_report",
    "classifier",
    "svg",
)


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """Scripts import each other from their own folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield {name: importlib.import_module(name) for name in MODULES}
        for name in MODULES:
            sys.modules.pop(name, None)


@pytest.fixture
def labelling(scripts: dict[str, ModuleType]) -> Any:
    return scripts["labelling"]


@pytest.mark.parametrize("strategy", ["age", "featprop"])
def test_published_strategies_keep_to_the_candidates(labelling, strategy):
    peer = labelling.PEERS[strategy]
    group = np.repeat([0, 1, 2], 4)
    edges = np.array([(i, j) for i in range(12) for j in range(i + 1, 12) if group[i] == group[j]]).T
    beliefs = np.full((12, 3), 1 / 3)
    beliefs[0] = [1, 0, 0]
    situation = Situation(edges, np.eye(3)[group], np.array([0]), np.array([2, 3, 5, 6, 9]), 12, beliefs=beliefs)
    assert sorted(one.number for one in choose(situation, 10, peer)) == [2, 3, 5, 6, 9]
    first = [one.number for one in choose(situation, 2, peer)]
    assert first == [one.number for one in choose(situation, 2, peer)]
    if strategy == "featprop":
        assert sorted(group[first]) == [1, 2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph of 200 nodes with three classes."""
    task = g3nn.synthetic(nodes=200, classes=3, degree=4, features=6, labels_per_class=5, val=10, seed=0)
    x = sp.csr_array(task.features)
    parts = {"x_data": x.data, "x_indices": x.indices, "x_indptr": x.indptr, "x_shape": x.shape}
    np.savez(tmp_path / "small.npz", edge_index=task.edges, y=task.labels, **parts)
    return tmp_path


def test_nobody_may_ask_about_validation_or_test_nodes(labelling, folder):
    task, pool = labelling.split_task("small", 3, 2, folder)
    assert (len(task.train), len(task.val), len(task.test)) == (6, 40, 66)
    assert not np.isin(pool, np.concatenate([task.val, task.test])).any()
    assert np.isin(task.train, pool).all()
    assert np.bincount(task.labels[task.train]).tolist() == [2, 2, 2]


def test_a_person_errs_as_often_as_asked_and_always_in_the_same_way(labelling, folder):
    task, _ = labelling.split_task("small", 0, 2, folder)
    person = labelling.Person.of(task, 0.3, 5)
    share = (person.labels != task.labels).mean()
    assert 0.2 < share < 0.4
    np.testing.assert_array_equal(person.labels, labelling.Person.of(task, 0.3, 5).labels)
    y = person.given(task.train, task.labels, np.arange(50))
    np.testing.assert_array_equal(y[task.train], task.labels[task.train])
    assert (y[50:][~np.isin(np.arange(50, 200), task.train)] == -1).all()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["random", "coverage"])
def test_a_run_asks_about_every_node_once(labelling, folder, strategy):
    job = labelling.Choice("small", 1, strategy, 0.0, first=1, last=3)
    (record,) = labelling.measured([job], {}, folder, "cpu")
    assert len(set(record["nodes"])) == 9
    assert labelling.key_of(record) == job
    lesson = labelling.Lesson(job, "small")
    (again,) = labelling.measured([lesson], record, folder, "cpu")
    assert labelling.key_of(again) == lesson
    assert list(again["accuracy"]) == ["1", "2", "3"]
    assert again["accuracy"]["3"] > 0.5


@pytest.mark.slow
def test_strategies_begin_with_the_same_model_and_do_not_touch_each_other(labelling, folder):
    jobs = [labelling.Choice("small", 1, strategy, 0.0, first=1, last=2) for strategy in ("entropy", "default")]
    both = labelling.measured(jobs, {}, folder, "cpu")
    assert [labelling.key_of(record) for record in both] == jobs
    assert both[0]["first_fit_seconds"] == both[1]["first_fit_seconds"]
    labelling.first_fit.cache_clear()
    (alone,) = labelling.measured(jobs[1:], {}, folder, "cpu")
    assert both[1]["nodes"] == alone["nodes"] != both[0]["nodes"]


@pytest.mark.slow
def test_a_person_who_errs_looks_again(labelling, folder):
    job = labelling.Choice("small", 1, "default", 0.3, first=2, last=7)
    (record,) = labelling.measured([job], {}, folder, "cpu")
    assert record["looked"]
    assert all(node in record["nodes"][6:] and labels == 21 for node, labels in record["looked"])
    task, _ = labelling.split_task("small", 1, 2, folder)
    person, twice = labelling.Person.of(task, 0.3, 1), [node for node, _ in record["looked"]]
    y = person.given(task.train, task.labels, np.array(record["nodes"]), twice)
    np.testing.assert_array_equal(y[twice], person.again[twice])
    assert (y >= 0).sum() == 21


@pytest.mark.slow
def test_updates_and_suggestions_are_timed_beside_fits_from_scratch(scripts, folder, tmp_path):
    updating, out = scripts["updating"], tmp_path / "updating.jsonl"
    found = list(updating.records("small", 0, folder, "cpu", 3))
    assert [one["labels"] for one in found] == [16, 26, 36, 46, 56]
    assert [("scratch" in one) for one in found] == [False, False, True, False, False]
    out.write_text("".join(json.dumps(one) + "\n" for one in found))
    assert f"| {found[2]['updated']:.3f} | {found[2]['scratch']:.3f} | {found[2]['ece']:.3f} |" in updating.table(out)


def test_a_record_without_a_mark_is_refused(labelling):
    base = {"graph": "g", "seed": 0, "strategy": "random", "wrong": 0.0, "first": 2, "last": 3}
    assert labelling.key_of({**base, "learner": "gcn", "accuracy": {"2": 0.5, "3": 0.6}}).learner == "gcn"
    with pytest.raises(KeyError, match="3"):
        labelling.key_of({**base, "learner": "gcn", "accuracy": {"2": 0.5}})
    with pytest.raises(KeyError, match="nodes"):
        labelling.key_of(base)


@pytest.fixture
def records() -> list[dict[str, Any]]:
    heights = {
        "random": {"2": (0.3, 0.4, 0.5), "5": (0.6, 0.6, 0.6), "20": (0.8, 0.8, 0.8)},
        "default": {"2": (0.3, 0.4, 0.5), "5": (0.6, 0.7, 0.8), "20": (1.0, 1.0, 1.0)},
    }
    base = {"graph": "g<", "wrong": 0.0, "learner": "gcn"}
    return [
        {**base, "strategy": name, "seed": seed, "accuracy": {mark: each[seed] for mark, each in curve.items()}}
        for name, curve in heights.items()
        for seed in range(3)
    ]


def test_the_slowest_learner_learns_from_all_labels_only(labelling):
    choice = labelling.Choice("small", 0, "default", 0.0, first=2, last=5)
    assert labelling.Lesson(choice, "small").marks == (2, 3, 4, 5)
    assert labelling.Lesson(choice, "default").marks == (5,)


def test_the_table_has_areas_and_when_random_is_reached(scripts, records):
    lines = scripts["labelling_report"].table(records).splitlines()
    assert "## g<, gcn, 2 to 20 per class, 3 seeds" in lines
    assert "| default | 0.400 | 0.700 | 1.000 | 0.550 | 0.800 |  | 10.0 |" in lines
    # Differences of the areas to 5 are 0, 0.05 and 0.1: t = sqrt(3), one-sided.
    assert "| random | 0.400 | 0.600 | 0.800 | 0.500 | 0.667 | 0.11 | 20.0 |" in lines


def test_the_picture_has_a_line_for_every_strategy(scripts, records):
    picture = scripts["labelling_report"].drawing(records)
    assert picture.count("<polyline") == 2
    assert "g&lt;, gcn, 2 to 20 per class, 3 seeds" in picture
