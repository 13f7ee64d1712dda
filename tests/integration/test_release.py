"""The wheel and the sdist: what they hold, and that a wheel alone is enough to fit and to predict."""

from __future__ import annotations

import json
import os
import re
import shutil
import site
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from small_tables import edge_columns, node_columns, write

from g3nn.base.version import __version__

ROOT = Path(__file__).parents[2]
NOT_COPIED = (
    ".git",
    ".venv",
    "results",
    "released",
    "__pycache__",
    "*.egg-info",
    "build",
    "dist",
    "*_cache",
    "*.nb[ic]",
)
OTHER_FILES = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "README.md", "SECURITY.md", "constraints.txt"}
"""What an sdist holds besides the package, pyproject.toml and what setuptools writes."""
COMMANDS = """
import json, sys
import g3nn
from g3nn.cli import main
print(g3nn.__file__)
for words in json.loads(sys.argv[1]):
    sys.argv = ["g3nn", *words]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, words
"""
"""Several commands in one process, since most of their time goes into imports."""


def run(*words: object, cwd: Path, **variables: str) -> str:
    """What a program prints. It sees neither this checkout nor what points there."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    ended = subprocess.run([str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def build(kind: str, tree: Path, out: Path) -> Path:
    run(sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", out, tree, cwd=tree)
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, with data and results beside the package as a user may have them."""
    folder = tmp_path_factory.mktemp("checkout") / "g3nn"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
    for stray in (
        "results/paper.sqlite",
        "data/nodes.csv",
        "src/g3nn/graph/datasets/ind.cora.x",
        "src/g3nn/pages/notes.sqlite",
    ):
        (folder / stray).parent.mkdir(exist_ok=True)
        (folder / stray).write_text("not for release")
    return folder


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tree, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", tree, tmp_path_factory.mktemp("sdist"))


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def tracked(*places: str) -> set[str]:
    """Files of the package that are meant to be there: no products of Python or numba."""
    found = {path for place in places for path in (ROOT / place).rglob("*") if path.is_file()}
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in found
        if "__pycache__" not in path.parts and path.suffix not in (".nbi", ".nbc")
    }


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    assert wheel.name == f"g3nn-{__version__}-py3-none-any.whl"
    held = {name for name in contents(wheel) if not name.startswith(f"g3nn-{__version__}.dist-info/")}
    assert held == tracked("src/g3nn")
    assert {Path(name).suffix for name in held} >= {".py", ".typed", ".txt", ".toml", ".j2", ".css", ".js"}
    metadata = contents(wheel)[f"g3nn-{__version__}.dist-info/METADATA"].decode()
    assert f"\nVersion: {__version__}\n" in metadata
    assert set(re.findall(r"^Provides-Extra: (.*)$", metadata, re.M)) >= {"label", "track"}


@pytest.mark.slow
def test_the_sdist_holds_what_builds_the_same_wheel(sdist, wheel, tmp_path):
    with tarfile.open(sdist) as opened:
        opened.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    held = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    made = {"PKG-INFO", "pyproject.toml", "setup.cfg"}
    others = {name for name in held if not name.startswith("src/g3nn.egg-info/")} - made
    assert others == OTHER_FILES | {f"src/{name}" for name in tracked("src/g3nn")}
    again = contents(build("wheel", folder, tmp_path / "again"))
    assert again == contents(wheel)


@pytest.mark.slow
def test_a_wheel_in_an_empty_environment_fits_and_predicts(wheel, tmp_path):
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env", cwd=tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=tmp_path,
    )
    (place,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    # A folder that is named here brings its packages, but not those that are installed as links to a checkout.
    (place / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    write(tmp_path / "nodes.csv", node_columns())
    write(tmp_path / "edges.csv", edge_columns())

    tables = ["--nodes", "nodes.csv", "--edges", "edges.csv"]
    fit = [
        "fit",
        *tables,
        "--id",
        "id",
        "--label",
        "group",
        "--model",
        "label-propagation",
        "--no-audit",
        "--out",
        "made",
    ]
    predict = ["predict", "made", *tables, "--out", "answers.csv"]
    where, *_ = run(python, "-c", COMMANDS, json.dumps([fit, predict]), cwd=tmp_path, OMP_NUM_THREADS="1").splitlines()
    assert Path(where) == place / "g3nn" / "__init__.py"
    assert run(python.parent / "g3nn", "--version", cwd=tmp_path).startswith(f"g3nn {__version__}\n")
    made = {path.name for path in (tmp_path / "made").iterdir()}
    assert made == {"edges.parquet", "labels.parquet", "model", "predictions.parquet", "report.html"}
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 61
