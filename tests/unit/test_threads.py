"""How many threads work gets: as many as are worth it, of those that the user, the cores and the container allow."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from g3nn import NodeTask
from g3nn.base import threads


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


GIB = 2**30
V1, V2 = "memory/{}/memory.limit_in_bytes", "{}/memory.max"
USED = {V1: "memory/{}/memory.usage_in_bytes", V2: "{}/memory.current"}
CACHED = {V1: ("memory/{}/memory.stat", "total_inactive_file"), V2: ("{}/memory.stat", "inactive_file")}


@pytest.mark.parametrize(
    ("groups", "own", "expected"),
    [
        ({}, None, (6, 8)),
        ({(V2, "."): ("max", 1, 0)}, "0::/", (6, 8)),
        ({(V2, "."): (4, 1, 0)}, "0::/", (3, 4)),
        ({(V2, "."): (4, 1, 0)}, None, (3, 4)),
        ({(V2, "."): (4, 3, 2)}, "0::/", (3, 4)),
        ({(V2, "."): (1, 2, 0)}, "0::/", (0, 1)),
        ({(V2, "."): (100, 1, 0)}, "0::/", (6, 8)),
        ({(V2, "."): (5, 1, 0), (V2, "a"): (2, 1, 0), (V2, "a/b"): ("max", 1, 0)}, "0::/a/b", (1, 2)),
        ({(V2, "."): (4, 1, 0), (V2, "other"): (1, 1, 0)}, "0::/of/the/host", (3, 4)),
        ({(V1, "."): (2**33, 1, 0)}, "4:memory:/", (6, 8)),
        ({(V1, "."): (3, 1, 0)}, "4:memory:/", (2, 3)),
        ({(V1, "."): (2**33, 1, 0), (V1, "a"): (3, 2, 1)}, "2:cpu,memory:/a", (2, 3)),
        ({(V1, "a"): (3, 2, 0), (V1, "."): (2**33, 1, 0)}, "3:memory:/a\n0::/b", (1, 3)),
    ],
)
def test_a_container_leaves_less_than_the_machine(tmp_path, monkeypatch, groups, own, expected):
    """All in GiB. groups: limit, use and what of it is only a copy of files, by version and group."""
    proc, cgroup = tmp_path / "proc", tmp_path / "cgroup"
    texts = {proc / "meminfo": f"MemTotal: {8 * GIB // 1024} kB\nMemAvailable: {6 * GIB // 1024} kB\nHugePages: 0\n"}
    if own is not None:
        texts[proc / "self" / "cgroup"] = f"1:name=systemd:/x\n{own}\n"
    for (version, group), (limit, used, cached) in groups.items():
        stat, field = CACHED[version]
        texts[cgroup / version.format(group)] = limit if limit == "max" else f"{limit * GIB}\n"
        texts[cgroup / USED[version].format(group)] = f"{used * GIB}\n"
        texts[cgroup / stat.format(group)] = f"anon 5\n{field} {cached * GIB}\n"
    for file, text in texts.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 8 * GIB // 4096}[name])
    assert threads.host_memory(proc, cgroup) == (expected[0] * GIB, expected[1] * GIB)


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
    from g3nn.base import threads

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


@pytest.mark.slow
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
