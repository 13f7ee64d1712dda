"""How many threads work gets: as many as are worth it, of those that the user, the cores and the container allow."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from g3nn import NodeTask, threads


@pytest.fixture
def container(tmp_path):
    for name in ("cpu", "memory"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000"}, 8),
        ({"cpu.max": "250000 100000"}, 2),
        ({"cpu.max": "10000 100000"}, 1),
        ({"cpu.max": "nonsense"}, 8),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
    ],
)
def test_cores_are_those_of_the_process_within_the_quota_of_its_container(container, monkeypatch, files, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for name, text in files.items():
        (container / name).write_text(text)
    assert threads.cores(container) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"memory.max": "900", "memory.current": "700", "memory.stat": "anon 500\ninactive_file 100\n"}, 300),
        ({"memory.max": "700", "memory.current": "900", "memory.stat": "inactive_file 100\n"}, 0),
        (
            {
                "memory/memory.limit_in_bytes": "900",
                "memory/memory.usage_in_bytes": "700",
                "memory/memory.stat": "inactive_file 0",
            },
            200,
        ),
        ({"memory.max": "max", "memory.current": "700", "memory.stat": "inactive_file 100\n"}, None),
        ({}, None),
    ],
)
def test_memory_is_that_of_the_machine_within_the_limit_of_its_container(container, files, expected):
    for name, text in files.items():
        (container / name).write_text(text)
    found = threads.free_memory(container)
    assert found > 10**6 if expected is None else found == expected


@pytest.mark.parametrize("own", [{"GOMP_SPINCOUNT": "5"}, {"OMP_WAIT_POLICY": "ACTIVE"}, {}])
def test_how_threads_wait_is_said_only_where_the_user_said_nothing(monkeypatch, own):
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    threads.wait_passively()
    expected = own.get("OMP_WAIT_POLICY") if own else "PASSIVE"
    assert os.environ.get("OMP_WAIT_POLICY") == expected


def test_the_extent_of_a_task_counts_nodes_edges_and_features():
    labels, edges = [0, 1, 0, 1], np.array([[0, 1, 2], [1, 2, 3]])
    dense = NodeTask.build(np.ones((4, 8)), edges, labels, [0, 1], [2, 3], num_classes=2)
    assert dense.extent == 4 + 3 + 2


SCRIPT = """
    import sys, g3nn
    assert "torch" not in sys.modules
    import numba, torch
    from g3nn import threads

    def inside(extent, replicas=1):
        with threads.enough_for(extent, replicas):
            return torch.get_num_threads(), numba.get_num_threads()

    threads.cores = lambda: 3
    for own in map(int, sys.argv[1:]):
        torch.set_num_threads(own)
        found = [inside(100), inside(9000), inside(2000, 5), inside(10**9)]
        assert torch.get_num_threads() == own, "torch was not restored"
        assert numba.get_num_threads() == 4, "numba was not restored"
        try:
            with threads.enough_for(100):
                raise KeyError
        except KeyError:
            assert torch.get_num_threads() == own, "torch was not restored after an error"
        print(found)
"""


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, {4: [(1, 1), (2, 2), (1, 2), (3, 3)], 1: [(1, 1)] * 4}),
        ({"OMP_NUM_THREADS": "4"}, {4: [(1, 1), (2, 2), (1, 2), (4, 4)]}),
    ],
)
def test_threads_grow_with_the_work_up_to_what_is_allowed(own, expected):
    """expected: by the threads that torch was given."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), *map(str, expected)]
    environment |= {"NUMBA_NUM_THREADS": "4", **own}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()) == (0, [*map(str, expected.values())]), done.stderr
