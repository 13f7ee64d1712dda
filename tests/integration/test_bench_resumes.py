"""A run that is killed again and again ends with the rows of a run that was left alone."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from small_suite import SUITE

from g3nn.studies.records import Record
from g3nn.studies.store import Store

pytestmark = pytest.mark.slow

LIVES = [("to do:", 0.05), ("[1/", 0.05)] * 2
"""What each of four runs has written and for how many seconds at most it goes on before it is killed.

Each of the twenty jobs takes a few hundredths.
"""

LAUNCHER = """
import contextlib, json, os, sys
from g3nn.base import threads
from g3nn.cli import bench, main
from g3nn.studies import run, suite_check

def ended(log, *words):
    sys.argv = ["g3nn", *words]
    with open(log, "w") as output, contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            return main() or 0
        except SystemExit as end:
            return end.code or 0

# Forked processes have kernels of their own. So has this one now: what it compiles, those it forks need not.
threads._forked = True
print(ended(*json.loads(sys.stdin.readline())), flush=True)
for line in sys.stdin:
    log, *words = json.loads(line)
    child = os.fork()
    if child == 0:
        with open(log, "w") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        sys.argv = ["g3nn", *words]
        raise SystemExit(main())
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Runs the first command itself, and starts all others in processes of their own.

What `g3nn bench run` loads and compiles is then there once for all of them: it would take most of the time of each.
"""


class Launcher:
    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
        self._process = subprocess.Popen([sys.executable, "-c", LAUNCHER], **pipes)

    def run(self, log: Path, *words: str) -> int:
        """In the process that starts the others. Only the first command may be run so."""
        print(json.dumps([str(log), *words]), file=self._process.stdin, flush=True)
        return self.exit_code()

    def start(self, log: Path, *words: str) -> int:
        """The id of the new process."""
        log.write_text("", encoding="utf-8")
        print(json.dumps([str(log), *words]), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def exit_code(self) -> int:
        """Of the last command, when it has ended."""
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def bench_run(folder: Path, suite: str = SUITE) -> tuple[str, ...]:
    file = folder / "small.toml"
    file.write_text(suite, encoding="utf-8")
    return ("bench", "run", str(file), "--device", "cpu", "--store")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the store of a run that is left alone will be."""
    return tmp_path_factory.mktemp("alone") / "alone.sqlite"


@pytest.fixture(scope="module")
def launcher(alone: Path) -> Iterator[Launcher]:
    log = alone.with_name("log.txt")
    with closing(Launcher()) as opened:
        assert opened.run(log, *bench_run(alone.parent), str(alone)) == 0, log.read_text(encoding="utf-8")
        yield opened


def wait_for(log: Path, text: str) -> None:
    while text not in log.read_text(encoding="utf-8"):
        time.sleep(0.01)


def rows(store: Path) -> list[Record]:
    """Everything but the time it took."""
    with Store.read(store) as held:
        return [replace(record, seconds=0) for record in held.records(evidence=True)]


@pytest.mark.slow
def test_killed_four_times_it_ends_with_the_same_rows(launcher, alone, tmp_path):
    rng = random.Random(20)
    killed, log, words = tmp_path / "killed.sqlite", tmp_path / "log.txt", bench_run(tmp_path)
    counts = []
    for sign, longest in LIVES:
        process = launcher.start(log, *words, str(killed))
        wait_for(log, sign)
        time.sleep(rng.uniform(0, longest))
        os.kill(process, signal.SIGKILL)
        assert launcher.exit_code() == -signal.SIGKILL, log.read_text(encoding="utf-8")
        counts.append(len(rows(killed)))
    launcher.start(log, *words, str(killed))
    assert launcher.exit_code() == 0, log.read_text(encoding="utf-8")
    assert counts == sorted(counts)
    assert 0 < counts[1] < counts[-1] < len(rows(alone)), "every second run gets on a little"
    assert rows(killed) == rows(alone)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(("killed.sqlite-", "."))]


@pytest.mark.slow
def test_an_interrupt_is_a_clean_end(launcher, tmp_path):
    # Long enough that a busy machine cannot finish it before the signal comes.
    longer = SUITE.replace("epochs = 3", "epochs = 100").replace("patience = 3", "patience = 100")
    store, log = tmp_path / "runs.sqlite", tmp_path / "log.txt"
    process = launcher.start(log, *bench_run(tmp_path, longer), str(store))
    wait_for(log, "[1/")
    os.kill(process, signal.SIGINT)
    assert launcher.exit_code() == 130
    *_, how, last = log.read_text(encoding="utf-8").splitlines()
    assert (how, last) == ("Finished trainings are stored: the same command goes on from there.", "interrupted")
    assert len(rows(store)) > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.txt", "runs.sqlite", "small.toml"]
