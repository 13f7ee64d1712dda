"""Commands that need no training do not load torch: they would take seconds longer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from g3nn import cli

RESULTS = Path(__file__).parents[3] / "results"
HEAVY = ("torch", "numba", "sklearn", "torch_geometric")

CODE = f"""
import sys
from g3nn.cli import main

sys.argv[0] = "g3nn"
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""


def test_without_torch(tmp_path):
    for words in [
        ("--help",),
        ("bench", "--help"),
        ("bench", "suites"),
        ("bench", "table", "paper", "--store", f"{RESULTS}/paper.sqlite", "--format", "json"),
        ("bench", "table", "beyond", "--store", f"{RESULTS}/beyond.sqlite"),
        ("bench", "report", "paper", "--store", f"{RESULTS}/paper.sqlite", "--out", "page.html"),
    ]:
        ran = subprocess.run([sys.executable, "-c", CODE, *words], capture_output=True, text=True, cwd=tmp_path)
        assert (ran.returncode, ran.stderr) == (0, "[]\n")
        assert ran.stdout


def test_the_overview_says_what_the_command_says():
    for name in cli.COMMANDS:
        words = cli.command(name).help.split("\n\n")[0].split()
        assert " ".join(words) == cli.COMMANDS[name]


def test_an_unknown_command(run_command):
    ran = run_command("trian")
    assert (ran.code, ran.out) == (2, "")
    assert "train" in ran.err
