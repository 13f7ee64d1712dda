"""Jobs of a benchmark in processes of their own, several at once."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context, parent_process
from threading import Thread
from typing import Any, TypeVar

from g3nn.base.errors import G3NNError
from g3nn.base.threads import cores
from g3nn.training.memory import take_share

Found = TypeVar("Found")


def begin(share: float) -> None:
    """In a worker: interrupts are for the process that started it, and when that is killed, it ends too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    starter = parent_process()
    assert starter is not None

    def follow() -> None:
        starter.join()
        os._exit(1)

    Thread(target=follow, daemon=True).start()
    take_share(share)


def carried_out(
    jobs: Mapping[Hashable, tuple[Any, ...]],
    measured: Callable[..., Found],
    keep: Callable[[Found], str],
    workers: int,
) -> int:
    """Measure every job with its arguments. keep: stores what was found as soon as it is there, and says it in a few
    words.
    Returns how many jobs failed."""
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, str(max(1, cores() // workers)))
    failed = 0
    with ProcessPoolExecutor(workers, get_context("spawn"), begin, (1 / workers,)) as pool:
        running: dict[Future[Found], Hashable] = {pool.submit(measured, *given): job for job, given in jobs.items()}
        try:
            for number, future in enumerate(as_completed(running), 1):
                job, error = running[future], future.exception()
                if isinstance(error, BrokenProcessPool):
                    raise G3NNError("a worker died, perhaps for lack of memory: run again, with fewer --jobs.")
                if error is not None:
                    failed += 1
                    print(f"{job}: failed", *traceback.format_exception(error), sep="\n", file=sys.stderr, flush=True)
                    continue
                print(f"[{number}/{len(jobs)}] {job}: {keep(future.result())}", file=sys.stderr, flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in active_children():
                child.terminate()
            raise
    return failed
