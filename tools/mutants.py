"""Mutation testing: put one small bug at a time into a copy of the code and see which test notices.

    python tools/mutants.py [--only SUBSTRING] [--source DIR] [--json FILE]

The bugs are listed in mutants.toml beside this file. Each names a file below src/g3nn, the text to replace, what
replaces it, and the tests to run. The text must occur once in the file or, where it has moved, once in all of g3nn. A
bug whose text was rewritten has further places under `or`, of which the first that fits is used. Where none fits, the
mutant is "stale" and the list needs an update.

The checkout is never changed: everything happens in a temporary copy. The exit code is 0 if every mutant is killed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

LIST = Path(__file__).with_suffix(".toml")
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", "results", "*.egg-info", "node_modules")
TIME_LIMIT = 600
"""Seconds for the tests of one mutant. A mutant that never ends has been noticed."""
THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")

KILLED, SURVIVED, STALE, BROKEN = "killed", "survived", "stale", "broken test"
"""How a mutant ends. A broken test is one that fails without the mutant as well, and so says nothing about it."""


@dataclass(frozen=True)
class Place:
    """One replacement in one file below src/g3nn."""

    file: str
    before: str
    after: str

    def path(self, package: Path) -> Path | None:
        """The file to change, None if the text does not say which."""
        named = package / self.file
        if named.is_file() and named.read_text(encoding="utf-8").count(self.before) == 1:
            return named
        counts = {path: path.read_text(encoding="utf-8").count(self.before) for path in package.rglob("*.py")}
        return next(path for path, count in counts.items() if count) if sum(counts.values()) == 1 else None


@dataclass(frozen=True)
class Mutant:
    name: str
    places: tuple[Place, ...]
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    mutant: str
    status: str
    noticed_by: str
    seconds: float


def listed() -> list[Mutant]:
    """The mutants of mutants.toml."""
    with LIST.open("rb") as file:
        rows = tomllib.load(file)["mutant"]
    return [
        Mutant(
            row["name"],
            tuple(Place(one["file"], one["before"], one["after"]) for one in (row, *row.get("or", ()))),
            tuple(row["tests"].split()),
        )
        for row in rows
    ]


class Copy:
    """A copy of a checkout in which one mutant at a time is tried."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.source, self.root = source, folder / "checkout"
        shutil.copytree(source, self.root, ignore=LEFT_OUT)

    def tried(self, mutant: Mutant) -> Result:
        start = time.perf_counter()
        package = self.root / "src" / "g3nn"
        fitting = ((place, path) for place in mutant.places if (path := place.path(package)) is not None)
        place, path = next(fitting, (None, None))
        files = [word for word in mutant.tests if (self.root / word.partition("::")[0]).exists()]
        tests = [word for word in mutant.tests if word in files or not word.startswith("tests/")]
        if place is None or path is None or not files:
            return Result(mutant.name, STALE, "", 0.0)
        path.write_text(path.read_text(encoding="utf-8").replace(place.before, place.after), encoding="utf-8")
        try:
            failures = self.failures(tests, "-x")
        finally:
            shutil.copy2(self.source / path.relative_to(self.root), path)
        seconds = round(time.perf_counter() - start, 1)
        return Result(mutant.name, KILLED if failures else SURVIVED, failures[0] if failures else "", seconds)

    def failures(self, tests: Sequence[str], *options: str) -> list[str]:
        """The tests that fail."""
        paths = {"PYTHONPATH": str(self.root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        environment = {**os.environ, **dict.fromkeys(THREADS, "1"), **paths}
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
        how = {"cwd": self.root, "env": environment, "capture_output": True, "text": True, "timeout": TIME_LIMIT}
        try:
            done = subprocess.run([*command, *options, *tests], **how)
        except subprocess.TimeoutExpired:
            return [f"no end within {TIME_LIMIT} seconds"]
        failures = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
        if done.returncode != 0 and not failures:
            raise SystemExit(f"pytest could not run {' '.join(tests)}:\n{done.stdout}\n{done.stderr}")
        return failures


def tried(source: Path, mutants: Sequence[Mutant]) -> Iterator[Result]:
    """The result of each mutant, then those again whose test fails without the mutant too."""
    with tempfile.TemporaryDirectory(prefix="g3nn-mutants-") as folder:
        copy, results = Copy(source.resolve(), Path(folder)), []
        for mutant in mutants:
            results.append(copy.tried(mutant))
            yield results[-1]
        noticing = sorted({result.noticed_by for result in results if result.noticed_by.startswith("tests/")})
        broken = copy.failures(noticing) if noticing else []
        for result in results:
            # A whole file notices a mutant that it cannot import.
            if any(test == result.noticed_by or test.startswith(f"{result.noticed_by}::") for test in broken):
                yield replace(result, status=BROKEN)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="only mutants whose name contains this")
    parser.add_argument("--source", type=Path, default=LIST.parent.parent, metavar="DIR", help="another checkout")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file as well")
    given = parser.parse_args()
    mutants = [mutant for mutant in listed() if given.only in mutant.name]
    if not mutants:
        parser.error(f"--only: no mutant has {given.only!r} in its name")
    results: dict[str, Result] = {}
    for result in tried(given.source, mutants):
        results[result.mutant] = result
        print(f"{result.mutant:54} {result.status:12} {result.seconds:6.1f} s  {result.noticed_by}", flush=True)
        if given.json:
            given.json.write_text(json.dumps([asdict(one) for one in results.values()], indent=1), encoding="utf-8")
    killed = sum(result.status == KILLED for result in results.values())
    print(f"{killed} of {len(results)} mutants killed")
    sys.exit(killed < len(results))


if __name__ == "__main__":
    main()
