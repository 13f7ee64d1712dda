"""Many fits of several benchmarks side by side in worker processes, as long as there is time.

    python benchmarks/together.py --jobs jobs.txt --workers 14 --seconds 540 --out FOLDER

A line of the file of jobs is a benchmark and what it measures: `floor NAME SPLIT EFFORT`, `rare POSITIVES SEED EFFORT`
or `confidence CASE GRAPH COUNT SEED EFFORT`. Records of each benchmark go to FOLDER/BENCHMARK.jsonl, as it writes
them itself; a job that fails or does not end in time leaves none.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Job = tuple[str, ...]


def records(job: Job) -> Iterator[dict[str, Any]]:
    import confidence
    import floor
    import rare

    benchmark, *words = job
    if benchmark == "floor":
        name, split, effort = words
        yield from floor.measure(name, [effort], int(split), "auto")
    elif benchmark == "rare":
        positives, seed, effort = words
        yield from rare.measure(int(positives), int(seed), effort)
    else:
        kind, graph, count, seed, effort = words
        yield from confidence.measured({"case": kind, "graph": graph, "count": int(count), "seed": int(seed)}, effort)


def run(job: Job) -> tuple[Job, float, list[dict[str, Any]], str]:
    began = time.monotonic()
    try:
        return job, time.monotonic() - began, list(records(job)), ""
    except Exception:
        return job, time.monotonic() - began, [], traceback.format_exc()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    jobs = [tuple(line.split()) for line in options.jobs.read_text().splitlines() if line.strip()]
    options.out.mkdir(parents=True, exist_ok=True)
    began, done = time.monotonic(), 0
    pool = multiprocessing.get_context("spawn").Pool(options.workers)
    found = pool.imap_unordered(run, jobs)
    while done < len(jobs):
        try:
            job, _, rows, failed = found.next(timeout=max(options.seconds - (time.monotonic() - began), 0.01))
        except multiprocessing.TimeoutError:
            break
        done += 1
        print(f"{time.monotonic() - began:.0f} s", *job, failed, flush=True)
        with (options.out / f"{job[0]}.jsonl").open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    print(f"{done} of {len(jobs)} jobs", flush=True)
    pool.terminate()


if __name__ == "__main__":
    main()
