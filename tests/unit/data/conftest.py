from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from g3nn.base.errors import DataError
from g3nn.graph.datasets import sources
from g3nn.graph.task import NodeTask


@dataclass
class FakeWorld:
    """Made-up files, two empty folders, and downloads that fail until a test says otherwise."""

    folder: Path
    cache: Path
    contents: dict[str, bytes]
    calls: list[str]
    patch: pytest.MonkeyPatch

    def files(self, name: str) -> dict[str, bytes]:
        return {f"ind.{name}.{part}": self.contents[f"ind.{name}.{part}"] for part in sources.PLANETOID_PARTS}

    def put(self, folder: Path, files: dict[str, bytes]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (folder / file).write_bytes(content)

    def fetches(self, fetcher: str, files: dict[str, bytes] | str) -> None:
        """Let a download return `files`, or fail with a reason."""

        def fetch(_wanted: object) -> dict[str, bytes]:
            self.calls.append(fetcher)
            if isinstance(files, str):
                raise DataError(files)
            return files

        self.patch.setattr(sources, fetcher, fetch)


@pytest.fixture
def contents(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Made-up files, whose hashes take the place of the true ones."""
    names = [f"ind.{name}.{part}" for name in ("cora", "citeseer") for part in sources.PLANETOID_PARTS]
    made = {file: f"content of {file}".encode() for file in [*names, *sources.LINQS_CORA, *sources.BLOGCATALOG]}
    digests = {file: hashlib.sha256(content).hexdigest() for file, content in made.items()}
    monkeypatch.setattr(sources, "_sha256_table", lambda: digests)
    return made


@pytest.fixture
def world(contents: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWorld:
    monkeypatch.setenv("G3NN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("G3NN_CACHE", str(tmp_path / "cache"))
    made = FakeWorld(tmp_path / "data", tmp_path / "cache" / "planetoid", contents, [], monkeypatch)
    made.fetches("from_github", "host not found")
    made.fetches("from_pypi", "pip said no")
    return made


@pytest.fixture
def path_task() -> NodeTask:
    """A path 0-1-2-3-4-5 and the isolated nodes 6 and 7; the label of node 6 is unknown."""
    edges = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    labels = np.array([0, 1, 0, 1, 0, 1, -1, 0])
    return NodeTask.build(np.eye(8), edges, labels, train=[0, 1, 2, 3], val=[4], test=[5], name="path")
