"""Kernels compile and run wherever numba may not keep its code, in threads, and after a fork."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pytest
from numba.core import caching

import g3nn
from g3nn.kernels import compiled


def twice(values: np.ndarray) -> int:
    total = 0
    for value in values:
        total += 2 * value
    return total


VALUES = np.arange(4)


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    """Where temporary files go. Of all other folders numba may write to none."""
    named = [one for one in caching.CacheImpl._locator_classes if one.__name__ == "UserProvidedCacheLocator"]
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", named)
    monkeypatch.setattr(caching.config, "CACHE_DIR", "")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nbc"))


def test_code_is_kept_among_temporary_files_where_there_is_no_better_place(temporary):
    assert compiled.kernel()(twice)(VALUES) == 12
    (folder,) = temporary.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(kept(folder)) == 1
    assert caching.config.CACHE_DIR == "", "other functions keep their places"
    again = compiled.kernel()(twice)
    assert again(VALUES) == 12
    assert sum(again.stats.cache_hits.values()) == 1


@pytest.mark.parametrize("kind", ["open to all", "a file", "of somebody else", "a link"])
def test_code_is_not_kept_where_others_could_have_put_it(temporary, monkeypatch, kind):
    folder = temporary / f"g3nn-numba-{os.getuid()}"
    if kind == "a file":
        folder.touch()
    elif kind == "a link":
        (temporary / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(temporary / "elsewhere")
    else:
        folder.mkdir()
        folder.chmod(0o777 if kind == "open to all" else 0o700)
    if kind == "of somebody else":
        another = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: another)
        folder.rename(temporary / f"g3nn-numba-{another}")
    assert compiled.kernel()(twice)(VALUES) == 12
    assert kept(temporary) == []


def test_a_full_disk_costs_no_result(temporary, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "_save_index", refuse)
    assert compiled.kernel()(twice)(VALUES) == 12


def run(script: str, source: Path | None = None, **environment: str) -> str:
    """What a script prints, in a process of its own with two threads."""
    threads = {"OMP_NUM_THREADS": "2", "NUMBA_NUM_THREADS": "2"}
    places = {"PYTHONPATH": str(source)} if source else {}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    whole = {**os.environ, **threads, **places, **environment}
    done = subprocess.run(command, env=whole, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_package_that_belongs_to_another_user_and_no_home(tmp_path):
    package = tmp_path / "src" / "g3nn"
    shutil.copytree(Path(g3nn.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("kernels", "model/tabular"):
        (package / part / "__pycache__").touch()  # keeps the superuser out too
    script = """
        import numpy as np, g3nn
        from g3nn.kernels import cpu, cpu_rows
        from g3nn.model.tabular import walk
        found = np.zeros(4, dtype=np.int64)
        cpu_rows.count(np.array([1, 3, 3]), 1, found)
        print(g3nn.__file__, found)
    """
    nowhere = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache", "NUMBA_CACHE_DIR": ""}
    said = run(script, tmp_path / "src", TMPDIR=str(tmp_path), **nowhere)
    assert said == f"{package / '__init__.py'} [0 1 0 2]\n"
    assert len(kept(tmp_path / f"g3nn-numba-{os.getuid()}")) == 1


COUNTING = """
    import os, signal, sys
    import numpy as np, torch, g3nn
    from g3nn.kernels import cpu_rows

    ends = np.arange(100_000) % 7
    def work():
        large = torch.ones(1_000_000).exp().sum()  # torch shares this among its threads
        found = np.zeros(7, dtype=np.int64)
        cpu_rows.count(ends, 2, found)
        return found.tolist(), round(float(large))

    expected = work()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("layer", ["default", "workqueue"])
def test_a_process_that_is_forked_after_work_can_work_and_threads_may_work_at_once(layer):
    said = run(
        COUNTING
        + """
    child = os.fork()
    if not child:
        signal.alarm(200)
        same = work() == expected
        os._exit(0 if same and torch.get_num_threads() == 1 else 1)
    print(os.waitpid(child, 0)[1], work() == expected, torch.get_num_threads())

    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: work(), range(400)))
    print(all(one == expected for one in found))
    """,
        NUMBA_THREADING_LAYER=layer,
    )
    assert said == "0 True 2\nTrue\n"
