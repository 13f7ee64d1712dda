"""The package in examples/extension: installed beside g3nn, its tests pass and g3nn knows what it adds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from markdown_it import MarkdownIt

import g3nn
from g3nn.base.errors import DataError

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "examples" / "extension"
PAGE = ROOT / "docs" / "extending.md"
COMMAND = "g3nn train karate --model asbm-gcn --p0 0.3 --p1 0.05"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


class Used(NamedTuple):
    ended: subprocess.CompletedProcess[str]
    model: Path


RUNS = f"""
import sys
from g3nn import cli

given, sys.argv = sys.argv, {[*COMMAND.split(), "--trials", "2", "--epochs", "2", "--json"]!r}
try:
    cli.main()
except SystemExit as end:
    assert not end.code
sys.argv = given
"""

SAVES = """
import sys
import numpy as np
import g3nn
from g3nn.studies.suite_file import load_suite

task = g3nn.load("karate")
known = np.isin(np.arange(task.num_nodes), np.append(task.train, task.val))
clf = g3nn.G3NNClassifier("asbm-gcn", ensemble=1, epochs=2, device="cpu")
clf.fit(task.features, np.where(known, task.labels, -1), task.edges, val=task.val).save(sys.argv[1])
assert (g3nn.load_model(sys.argv[1]).predict_proba() == clf.predict_proba()).all()
assert load_suite(sys.argv[2], to_run=True).cells[0].model == "asbm-gcn"
"""

SUITE = """
title = "A club"
objectives = ["elbo"]
[axes]
p0 = [0.2, 0.9]
[[grids]]
models = ["asbm-gcn"]
axes = ["p0"]
[[tables]]
name = "A"
setting = "missing-edge"
cells = [{ model = "asbm-gcn", dataset = "karate" }]
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """A copy of the package with, in `site`, what pip installs of it; the environment of this process stays."""
    folder = tmp_path_factory.mktemp("extension")
    shutil.copytree(EXTENSION, folder / "package", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    how = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
    words = [sys.executable, "-m", "pip", "install", *how, "--target", str(folder / "site"), str(folder / "package")]
    ended = subprocess.run(words, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.fixture(scope="module")
def run(package) -> Run:
    """Runs Python in the folder of the package, with the package and this g3nn on its path."""

    def runs(*words: str) -> subprocess.CompletedProcess[str]:
        path = [str(package / "site"), str(Path(g3nn.__file__).parents[1])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"}
        where = package / "package"
        return subprocess.run([sys.executable, *words], cwd=where, env=environment, capture_output=True, text=True)

    return runs


@pytest.mark.slow
def test_its_own_tests_pass(run):
    ended = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert ended.returncode == 0, ended.stdout
    assert "failed" not in ended.stdout


@pytest.fixture(scope="module")
def used(run, tmp_path_factory) -> Used:
    """One process runs the first command of the page, with a limit, and then fits, saves and reads a suite."""
    folder = tmp_path_factory.mktemp("used")
    (folder / "club.toml").write_text(SUITE)
    return Used(run("-c", RUNS + SAVES, str(folder / "model"), str(folder / "club.toml")), folder / "model")


@pytest.mark.slow
def test_the_command_line_knows_what_it_adds(used):
    assert COMMAND in PAGE.read_text(encoding="utf-8")
    assert used.ended.returncode == 0, used.ended.stderr
    told = json.loads(used.ended.stdout)
    assert (told["model"], told["dataset"], len(told["seeds"])) == ("asbm-gcn", "karate", 2)


def test_without_it_the_command_line_says_what_is_wrong(run_command):
    """It is not installed where these tests run."""
    absent = run_command(*COMMAND.split()[1:])
    assert absent.code == 2
    assert "model: got 'asbm-gcn'" in absent.err
    assert "name: got 'karate'" in absent.err
    assert "Traceback" not in absent.err


@pytest.mark.slow
def test_suites_and_saved_models_know_it_and_say_what_to_install(used):
    assert used.ended.returncode == 0, used.ended.stderr
    with pytest.raises(DataError, match=r"likelihood 'asbm' of g3nn-assortative 0\.1\.0, not found here\. Install it"):
        g3nn.load_model(used.model)


@pytest.mark.parametrize("file", ["pyproject.toml", "src/g3nn_assortative/block.py", "src/g3nn_assortative/karate.py"])
def test_the_page_shows_the_files(file):
    parsed = MarkdownIt("commonmark").parse(PAGE.read_text(encoding="utf-8"))
    shown = [token.content for token in parsed if token.type == "fence"]
    assert (EXTENSION / file).read_text(encoding="utf-8") in shown, f"docs/extending.md does not show {file} as it is"


def test_the_likelihood_is_short():
    assert len((EXTENSION / "src" / "g3nn_assortative" / "block.py").read_text().splitlines()) < 60
