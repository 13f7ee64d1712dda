"""A kill of every kind of process that writes. `python tests/fuzz/kills.py` sends more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("starlette")
import kills
from kills import killed

CASES = ("fit", "save", "bench", "merge", "label", "checkpoint")


@pytest.mark.slow
def test_nothing_is_lost_and_nothing_is_there_by_half(tmp_path):
    # With this seed all but one are killed at a step of theirs, which does not depend on how busy the machine is.
    command = [sys.executable, kills.__file__, "--count", "1", "--seed", "5", "--out", str(tmp_path / "kills.json")]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    records = json.loads((tmp_path / "kills.json").read_text())
    assert [(record["case"], record["kills"], record["faults"]) for record in records] == [
        (case, 1, []) for case in CASES
    ]


class Careless:
    """Writes ten files one after the other, and looks whether all are there or none."""

    name, places = "careless", 1

    def __init__(self, folder: Path) -> None:
        self.folder, self.log, self.out = folder, folder / "log.txt", folder / "out"

    def prepare(self) -> None:
        self.out.mkdir()

    def begin(self, number: int) -> None:
        for path in self.out.iterdir():
            path.unlink()

    def live(self, begun) -> None:
        begun()
        for number in range(10):
            (self.out / str(number)).write_text("")

    def drive(self, *_) -> None:
        pass

    def writing(self) -> bool:
        return any(self.out.iterdir())

    def look(self, ended: bool) -> tuple[str, list[str]]:
        found = len(list(self.out.iterdir()))
        return "while", [] if found in (0, 10) else [f"{found} of 10"]


def test_what_is_written_by_halves_is_found(tmp_path):
    record = killed(Careless(tmp_path), 0, 6)
    assert record.kills == 6
    assert any("of 10" in fault for fault in record.faults)
    assert record.aimed["step"] > 0
