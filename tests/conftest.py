"""Small tasks and switches that several test files share."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import quick_judging
import scipy.sparse as sp
import torch

import g3nn
from g3nn.estimator.effort import EFFORTS
from g3nn.graph.task import NodeTask
from g3nn.kernels import backend

HERE = Path(__file__).parent

# The workers of a test run share the cores; more threads than cores slow these small computations down tenfold.
os.environ.setdefault("NUMBA_NUM_THREADS", "1")
torch.set_num_threads(1)

# A shell ignores interrupts in what it runs in the background, and children inherit that: tests that interrupt a child
# would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONGEST = (
    "browser/test_site.py",
    "fuzz/test_kills.py",
    "integration/test_many_processes.py",
    "integration/test_bench_resumes.py",
    "integration/test_example_tables.py",
    "integration/test_docs.py",
)
"""Files that would keep one worker busy while all others are done, if they did not begin first."""

ONE_BY_ONE = ("integration/test_example_tables.py", "integration/test_docs.py")
"""Long files whose tests have nothing in common that takes time to make: any worker takes the next of them."""


def _place(path: Path) -> str:
    return path.relative_to(HERE).as_posix() if path.is_relative_to(HERE) else path.name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first, then all others with slow tests: what is left in the end takes no worker long."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}

    def rank(item: pytest.Item) -> int:
        place = _place(item.path)
        return LONGEST.index(place) if place in LONGEST else len(LONGEST) + (item.path not in slow)

    items.sort(key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With --dist loadfile, each file goes to one worker as a whole, apart from those whose tests go one by one."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return nodeid if file.endswith(ONE_BY_ONE) else file

    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def _random_task(
    nodes: int = 14,
    classes: int = 3,
    features: int = 5,
    edges: int = 24,
    directed: bool = False,
    sparse: bool = True,
    seed: int = 0,
) -> NodeTask:
    """Random features (half of them zero) and edges; the first nodes are labelled, one of each class."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((nodes, features)) * (rng.random((nodes, features)) < 0.5)
    pairs = [(i, j) for i in range(nodes) for j in range(nodes) if (i != j if directed else i < j)]
    chosen = rng.permutation(len(pairs))[:edges]
    return NodeTask.build(
        sp.csr_array(x) if sparse else x,
        np.array(pairs)[chosen].T,
        np.arange(nodes) % classes,
        train=np.arange(classes),
        val=np.arange(classes, 2 * classes),
        test=np.arange(2 * classes, nodes),
        directed=directed,
    )


@pytest.fixture(scope="session")
def make_task() -> Callable[..., NodeTask]:
    return _random_task


@pytest.fixture(scope="session")
def learnable() -> NodeTask:
    """Sixty nodes in three classes that a few epochs can tell apart."""
    return g3nn.synthetic(nodes=60, classes=3, degree=4, features=8, labels_per_class=4, val=15, seed=1)


@pytest.fixture(scope="session")
def edgeless(learnable: NodeTask) -> NodeTask:
    return replace(learnable, edges=np.zeros((2, 0), dtype=np.int64))


@pytest.fixture
def without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where numba is not installed."""
    monkeypatch.setattr(backend, "_installed", lambda device: None)


@pytest.fixture(params=["numba", "torch"])
def implementation(request: pytest.FixtureRequest) -> str:
    """Runs a test with the compiled kernels and again with plain torch."""
    if request.param == "torch":
        request.getfixturevalue("without_numba")
    return request.param


@pytest.fixture(scope="session")
def assert_same_task() -> Callable[[NodeTask, NodeTask], None]:
    """Asserts that two tasks hold the same numbers."""

    def dense(features: Any) -> np.ndarray:
        return features.toarray() if sp.issparse(features) else features

    def check(one: NodeTask, other: NodeTask) -> None:
        np.testing.assert_array_equal(dense(one.features), dense(other.features))
        for name in ("edges", "labels", "train", "val", "test"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
        assert (one.num_classes, one.directed) == (other.num_classes, other.directed)
        assert (one.weights is None) == (other.weights is None)
        if one.weights is not None:
            np.testing.assert_allclose(one.weights, other.weights, rtol=1e-6, err_msg="weights")

    return check


class Ended(NamedTuple):
    """How a command ended: its exit code and what it printed."""

    code: int
    out: str
    err: str


@pytest.fixture
def run_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs `g3nn` with the given words, in this process."""
    from g3nn import cli

    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["g3nn", *words])
        try:
            cli.main()
            code: object = 0
        except SystemExit as end:
            code = end.code or 0
        assert isinstance(code, int)
        return Ended(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def labels_judged_quickly() -> Iterator[None]:
    """Labels are judged by small models: small graphs are learned in a moment."""
    with pytest.MonkeyPatch.context() as patch:
        for limit in quick_judging.LABELS:
            patch.setattr(*limit)
        yield


@pytest.fixture(scope="module")
def edges_judged_quickly() -> Iterator[None]:
    """So are edges: where a test is about what becomes of the judgement."""
    with pytest.MonkeyPatch.context() as patch:
        for limit in quick_judging.EDGES:
            patch.setattr(*limit)
        yield


@pytest.fixture(scope="module")
def few_models() -> Iterator[None]:
    """A search that ends soon, where it is not the search that is tested."""
    with pytest.MonkeyPatch.context() as patch:
        for name, effort in quick_judging.FEW_MODELS.items():
            patch.setitem(EFFORTS, name, effort)
        patch.setattr(*quick_judging.TREES)
        yield
