"""The files that a newcomer reads exist, and each is short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

READING = Path(__file__).parents[2] / "docs" / "reading.md"
FILES = [READING.parents[1] / name for name in re.findall(r"`(src/[^`]+\.py)`", READING.read_text())]
MOST_LINES = 265


def test_they_are_six_steps():
    steps = re.findall(r"^\d\. ", READING.read_text(), re.MULTILINE)
    assert steps == [f"{number}. " for number in range(1, 7)]
    assert len(FILES) == 7, "the contract of likelihoods comes with an example"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_is_short(file):
    assert len(file.read_text().splitlines()) <= MOST_LINES
