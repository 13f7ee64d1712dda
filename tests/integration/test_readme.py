"""The README's Python example runs and prints what the README says it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
NUMBER = re.compile(r"\d+\.\d+")


@pytest.mark.slow
def test_example_prints_what_the_readme_shows(capsys):
    code, shown = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", README.read_text(), re.S).groups()
    exec(compile(code, str(README), "exec"), {})
    printed = capsys.readouterr().out
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    for said, found in zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True):
        # Rounding differs between processors and grows over hundreds of epochs; a trial then moves by a few nodes.
        assert float(found) == pytest.approx(float(said), abs=0.015)
