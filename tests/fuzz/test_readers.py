"""A few damaged inputs for every reader, and all that ever made trouble. `make fuzz` tries more."""

from __future__ import annotations

import os
import tempfile
import warnings
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("starlette")
from fuzz import CORPUS, tried
from readers import READERS, Reader, inputs

FEW = 20


@cache
def ready(name: str) -> Reader:
    """A reader that has read whole inputs, or all damaged ones might be refused for the same reason. What it needs is
    loaded and compiled by then, which may take longer than an input may."""
    reader = READERS[name]
    for content in reader.seeds():
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert reader.read(content, Path(folder)) is None
    return reader


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_whole_inputs_are_read_and_damaged_ones_too_or_refused(name):
    for number, content in enumerate(inputs(ready(name), 0, 0, FEW)):
        assert tried(ready(name), content) is None, f"input {number} of {name}"


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_made_trouble_makes_none_any_more(path: Path, monkeypatch):
    started = []
    monkeypatch.setattr(os, "system", started.append)
    assert tried(ready(path.parent.name), path.read_bytes()) is None
    assert started == []
