"""Damaged inputs for every reader: each is read or refused with one clear error, soon, in little memory.

python tests/fuzz/fuzz.py --minutes 10 [--only csv store] [--seed 0]
python tests/fuzz/fuzz.py --count 100000 --jobs 2 --out fuzz.json     # inputs of each reader; run again to go on

A finding is any other exception, a process that dies, and an input that takes over 10 s or 2 GiB, starts a program or
makes a reader print.
It is written to the folder `found`, by reader; put into `corpus`, it is tried by the tests from then on.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

from g3nn.base.errors import G3NNError  # noqa: E402

CORPUS, FOUND = HERE / "corpus", Path("found")
SECONDS, BYTES = 10, 2 << 30
_AT_ONCE = 5000
"""Inputs that one process reads."""
_FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork")


Record = dict[str, Any]


class ForbiddenError(Exception):
    """What an input must not do."""


def tried(reader: Any, content: bytes) -> str | None:
    """What is wrong with how an input is read, None if nothing is."""
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), _in_time():
        warnings.simplefilter("ignore")
        try:
            with contextlib.redirect_stdout(printed):
                reader.read(content, Path(folder))
        except G3NNError:
            pass
        except Exception:
            return traceback.format_exc()
    return f"printed {printed.getvalue()!r}" if printed.getvalue() else None


@contextlib.contextmanager
def _in_time() -> Any:
    def late(*_: Any) -> None:
        raise ForbiddenError(f"took more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def limit_memory_and_programs() -> None:
    """No program may be started and no more memory taken than allowed."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + BYTES, size + BYTES))

    def watch(event: str, _: Any) -> None:
        if event in _FORBIDDEN:
            raise ForbiddenError(f"started a program: {event}")

    sys.addaudithook(watch)


def work(name: str, seed: int, start: int, many: int) -> None:
    """Print a line for every finding, and before each input its number, in case the process dies of it."""
    from readers import READERS, inputs

    reader = READERS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        list(inputs(reader, seed, start, 1))
    for content in reader.seeds():
        reader.read(content, Path(tempfile.mkdtemp()))
    limit_memory_and_programs()
    for number, content in enumerate(inputs(reader, seed, start, many), start):
        print(json.dumps({"number": number}), flush=True)
        words = tried(reader, content)
        if words is not None:
            print(json.dumps({"number": number, "words": words}), flush=True)


def run(name: str, seed: int, start: int, many: int) -> tuple[list[tuple[int, str]], int]:
    """Findings, and the number of inputs that were read."""
    command = [sys.executable, __file__, "--work", name, str(seed), str(start), str(many)]
    ended = subprocess.run(command, capture_output=True, text=True)
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    found = [(line["number"], line["words"]) for line in lines if "words" in line]
    last = max((line["number"] for line in lines), default=start)
    if ended.returncode:
        found.append((last, f"the process ended with {ended.returncode}: {ended.stderr[-2000:]}"))
    return found, last + 1 - start


def keep(name: str, seed: int, number: int, words: str) -> str:
    """Write the input of a finding; one that ends at the same line as another is not written again."""
    from readers import READERS, inputs

    place = [line.strip() for line in words.splitlines() if "g3nn" in line and line.strip().startswith("File")][-1:]
    kind = hashlib.sha256(" ".join([name, *place, words.splitlines()[-1][:40]]).encode()).hexdigest()[:12]
    folder = FOUND / name
    if not (folder / kind).exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / kind).write_bytes(next(inputs(READERS[name], seed, number, 1)))
        (folder / f"{kind}.txt").write_text(words)
        print(f"{name} {number}: {' '.join(place)} {words.splitlines()[-1][:200]}", flush=True)
    return kind


def fuzzed(name: str, before: Record, given: argparse.Namespace) -> Iterator[Record]:
    """What is known of a reader, after every part of its inputs. seconds: of all processes together."""
    first, limit = before["inputs"], time.monotonic() + 60 * given.minutes / len(given.only)
    size, record = (_AT_ONCE if given.count else _AT_ONCE // 10), before
    parts = iter(range(first, given.count, size)) if given.count else count(first, size)

    def part(start: int) -> tuple[list[tuple[int, str]], int, float] | None:
        if given.count is None and time.monotonic() > limit:
            return None
        begun = time.monotonic()
        found, read = run(name, given.seed, start, min(size, (given.count or start + size) - start))
        return found, read, time.monotonic() - begun

    with ThreadPoolExecutor(given.jobs) as pool:
        waiting = deque(pool.submit(part, start) for start in islice(parts, given.jobs))
        while waiting and (done := waiting.popleft().result()) is not None:
            found, read, seconds = done
            waiting.extend(pool.submit(part, start) for start in islice(parts, 1))
            kinds = {*record["findings"], *(keep(name, given.seed, *one) for one in found)}
            read, seconds = record["inputs"] + read, record["seconds"] + seconds
            record = {**record, "inputs": read, "findings": sorted(kinds), "seconds": round(seconds, 1)}
            yield record


def main() -> None:
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], *map(int, sys.argv[3:6]))
        return
    from readers import READERS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all readers together")
    parser.add_argument("--count", type=int, help="inputs of each reader, instead of minutes")
    parser.add_argument("--only", nargs="+", choices=READERS, default=list(READERS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="how many processes read at once")
    parser.add_argument("--out", type=Path, help="write counts and times to this file")
    given = parser.parse_args()
    known = json.loads(given.out.read_text()) if given.out is not None and given.out.exists() else []
    records = {record["reader"]: record for record in known}
    for name in given.only:
        before = records.get(name, {"reader": name, "inputs": 0, "findings": [], "seconds": 0.0})
        for record in fuzzed(name, before, given):
            records[name] = record
            if given.out is not None:
                given.out.write_text("[\n" + ",\n".join(map(json.dumps, records.values())) + "\n]\n")
        print(json.dumps(records.get(name, before)), flush=True)
    sys.exit(1 if any(record["findings"] for record in records.values()) else 0)


if __name__ == "__main__":
    main()
