"""Damaged inputs for one reader, guided by the code that they reach: an input that reaches new code is damaged further.

pip install atheris
python tests/fuzz/guided.py csv --minutes 10

It goes on from the inputs in `corpus` and from whole ones, and keeps what reached new code in the folder `reached`. A
finding, as in `fuzz.py`, ends it and is written to `found`. atheris has wheels for some platforms; for others pip
builds it, which takes clang and its libFuzzer.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

READ_BY = ["g3nn.graph.datasets", "g3nn.estimator", "g3nn.studies", "g3nn.labelling"]
"""Where it is watched which code is reached. Not in the kernels: numba compiles them, and cannot follow the marks."""
LARGEST = 1 << 20
"""Bytes of an input."""


def guided(atheris: Any, name: str, minutes: float) -> None:
    with atheris.instrument_imports(include=READ_BY):
        from fuzz import CORPUS, FOUND, SECONDS, limit_memory_and_programs, tried
        from readers import READERS
    reader, found, reached = READERS[name], FOUND / name, Path("reached") / name
    for folder in (found, reached):
        folder.mkdir(parents=True, exist_ok=True)
    seeds = reader.seeds()
    for content in seeds:
        reader.read(content, Path(tempfile.mkdtemp()))
        (reached / hashlib.sha256(content).hexdigest()).write_bytes(content)

    def read(content: bytes) -> None:
        # libFuzzer begins with nothing at all.
        if content and (words := tried(reader, content)):
            raise RuntimeError(words)

    def mutate(content: bytes, most: int, seed: int) -> bytes:
        chance = random.Random(seed)
        damaged = reader.damage(content or chance.choice(seeds), seeds, chance)
        return damaged if len(damaged) <= most else content

    places = [str(place) for place in (reached, CORPUS / name) if place.is_dir()]
    limits = [f"-max_total_time={60 * minutes:.0f}", f"-timeout={2 * SECONDS}", f"-max_len={LARGEST}"]
    limit_memory_and_programs()
    atheris.Setup([sys.argv[0], *places, *limits, f"-artifact_prefix={found}/"], read, custom_mutator=mutate)
    atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reader", help="csv, parquet, xlsx, pickle, model, suite, store or requests")
    parser.add_argument("--minutes", type=float, default=10.0)
    given = parser.parse_args()
    try:
        import atheris
    except ImportError:
        raise SystemExit("atheris is not installed: pip install atheris") from None
    guided(atheris, given.reader, given.minutes)


if __name__ == "__main__":
    main()
