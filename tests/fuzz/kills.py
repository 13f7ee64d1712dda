"""Processes killed at random: nothing that was finished is lost, nothing is there by half.

python tests/fuzz/kills.py --count 100 [--only fit save] [--seed 0] [--out kills.json]

Every process is killed at one of three kinds of moments: any moment of its life, one after it began to write, or right
before one of its operations on files and in SQLite. What it leaves is looked at as the next process would, and that one
goes on from there. In the end one is left alone: its result is as if nobody had ever been killed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

# What loads compiled code is loaded once, here; children are forked from a process without threads of these.
os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "NUMBA_THREADING_LAYER": "workqueue"}
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

MOMENT, WRITING, STEP = "moment", "writing", "step"
_STEPS_OF_SQLITE = 50
_WAIT = 0.0005
_FILE_EVENTS = ("open", "os.", "shutil.")


class Steps:
    """Counts what a process does with files below a folder and in SQLite, and may kill it before one of these."""

    def __init__(self, folder: Path, last: int | None) -> None:
        self.count, self._last, self._below = 0, last, str(folder)
        sys.addaudithook(self._watch)
        sqlite3.connect = self._connected(sqlite3.connect)

    def _watch(self, event: str, given: tuple[Any, ...]) -> None:
        if event.startswith(_FILE_EVENTS) and any(self._below in str(one) for one in given):
            self._step()

    def _connected(self, connect: Any) -> Any:
        def connected(*given: Any, **options: Any) -> Any:
            connection = connect(*given, **options)
            connection.set_progress_handler(self._step, _STEPS_OF_SQLITE)
            return connection

        return connected

    def _step(self) -> None:
        self.count += 1
        if self.count == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Life:
    """A process that does what a case says. It tells when it begins and, if it gets there, how many steps it took."""

    case: Any
    last_step: int | None = None
    pid: int = 0
    code: int | None = None
    _told: int = 0
    _steps: int = 0

    def __post_init__(self) -> None:
        self._told, telling = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(telling)
            os.read(self._told, 1)
            return
        code = 1
        try:
            with self.case.log.open("w") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
            steps = Steps(self.case.folder, self.last_step)

            def begun() -> None:
                steps.count = 0
                os.write(telling, b".")

            code = self.case.live(begun) or 0
            os.write(telling, str(steps.count).encode())
        except SystemExit as end:
            code = int(end.code or 0)
            os.write(telling, str(steps.count).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)

    def over(self, wait: bool = False) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, 0 if wait else os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None

    def until(self, sign: Callable[[], bool], seconds: float = 300.0) -> bool:
        """Whether the sign came, before the process was over."""
        limit = time.monotonic() + seconds
        while not sign():
            if self.over() or time.monotonic() > limit:
                return False
            time.sleep(_WAIT)
        return True

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.end()

    def end(self) -> int:
        """The number of steps, of a process that was not killed."""
        self.over(wait=True)
        if self._told:
            self._steps = int(os.read(self._told, 100).decode().lstrip(".") or 0)
            os.close(self._told)
            self._told = 0
        return self._steps


@dataclass
class Record:
    """kills: how many processes were killed; `hit` says where, `aimed` how the moment was chosen. ended: processes that
    were done before."""

    case: str
    seed: int
    kills: int = 0
    ended: int = 0
    hit: Counter[str] = field(default_factory=lambda: Counter({"before": 0, "while": 0, "after": 0}))
    aimed: Counter[str] = field(default_factory=lambda: Counter({MOMENT: 0, WRITING: 0, STEP: 0}))
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Measured:
    """Of a life that was left alone: seconds in all, seconds from the first writing on, steps."""

    seconds: float
    writing: float
    steps: int

    def corrected(self, factor: float) -> Measured:
        return replace(self, seconds=self.seconds * factor, writing=self.writing * factor)


def measured(case: Any) -> Measured:
    life = Life(case)
    begun = time.monotonic()
    case.drive(life, None, 0.0, begun)
    life.until(case.writing)
    wrote = time.monotonic()
    steps = life.end()
    ended = time.monotonic()
    if life.code:
        raise RuntimeError(f"{case.name}: left alone, it ended with {life.code}: {case.log.read_text()[-2000:]}")
    return Measured(ended - begun, ended - wrote, steps)


def kill_once(case: Any, known: Measured, chance: random.Random) -> tuple[str, Life]:
    """How the moment was chosen, and the life until then."""
    kind = chance.choice((MOMENT, WRITING, STEP))
    share = chance.random()
    life = Life(case, 1 + int(share * known.steps) if kind == STEP else None)
    begun = time.monotonic()
    case.drive(life, kind, share, begun + share * known.seconds)
    if kind == MOMENT:
        life.until(lambda: time.monotonic() - begun > share * known.seconds)
    elif kind == WRITING and life.until(case.writing):
        wrote = time.monotonic()
        life.until(lambda: time.monotonic() - wrote > share * known.writing)
    elif kind == STEP:
        life.end()
    if not life.over():
        life.kill()
    life.end()
    return kind, life


def killed(case: Any, seed: int, count: int) -> Record:
    """The first faults are kept in words."""
    begun, record = time.monotonic(), Record(case.name, seed)
    case.prepare()
    case.begin(0)
    known = measured(case)
    record.faults += case.look(ended=True)[1]
    number, factor = 0, 1.0
    while record.kills < count:
        number += 1
        chance = random.Random(f"{case.name} {seed} {number}")
        case.begin(number)
        kind, life = kill_once(case, known.corrected(factor), chance)
        ended = life.code == 0
        if life.code not in (0, -signal.SIGKILL):
            record.faults.append(f"{number}: ended with {life.code}: {case.log.read_text()[-1500:]}")
        if kind != STEP:
            # The machine is not always equally busy, and who goes on from where another was killed has less to do.
            factor = min(factor * (0.85 if ended else 1.1), 1.0)
        phase, faults = case.look(ended)
        record.faults += [f"{number} ({kind}): {fault}" for fault in faults]
        if ended:
            record.ended += 1
        else:
            record.kills += 1
            record.hit[phase] += 1
            record.aimed[kind] += 1
    for place in range(min(case.places, count)):
        case.begin(place)
        measured(case)
        record.faults += [f"in the end: {fault}" for fault in case.look(ended=True)[1]]
    record.seconds = round(time.monotonic() - begun, 1)
    return record


def main() -> None:
    from killed import CASES

    from g3nn.base import threads

    # Forked processes have kernels of their own. So has this one now: what it compiles, those it forks need not.
    threads._forked = True
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="kills of each case")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write what was found to this file")
    given = parser.parse_args()
    known = json.loads(given.out.read_text()) if given.out is not None and given.out.exists() else []
    records = {record["case"]: record for record in known}
    for name in given.only:
        with tempfile.TemporaryDirectory() as folder:
            record = killed(CASES[name](Path(folder)), given.seed, given.count)
        records[name] = vars(record)
        print(json.dumps(records[name], indent=1 if record.faults else None), flush=True)
        if given.out is not None:
            given.out.write_text("[\n" + ",\n".join(map(json.dumps, records.values())) + "\n]\n")
    sys.exit(1 if any(records[name]["faults"] for name in given.only) else 0)


if __name__ == "__main__":
    main()
