"""A few damaged inputs for every reader, and all that ever made trouble. `make fuzz` tries more."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("starlette")
from fuzz import CORPUS, tried
from readers import READERS, inputs

FEW = 60


@pytest.mark.parametrize("name", READERS)
@pytest.mark.filterwarnings("ignore::g3nn.errors.G3NNWarning")
def test_whole_inputs_are_read_and_damaged_ones_too_or_refused(name, tmp_path):
    reader = READERS[name]
    # Otherwise all damaged ones would be refused for the same reason. What has to be loaded for it is, by then.
    for number, content in enumerate(reader.seeds()):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert reader.read(content, folder) is None
    for number, content in enumerate(inputs(reader, 0, 0, FEW)):
        assert tried(reader, content) is None, f"input {number} of {name}"


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_made_trouble_makes_none_any_more(path: Path):
    assert tried(READERS[path.parent.name], path.read_bytes()) is None
