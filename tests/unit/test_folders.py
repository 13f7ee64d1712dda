"""What is written appears whole or not at all, wherever it can be written, and what cannot be is said beforehand."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from g3nn.base.errors import DataError, Problems
from g3nn.base.folders import (
    check_new_file,
    check_new_folder,
    creating,
    mend,
    new_folder,
    replacing,
    swapped,
    try_writing,
)

LONG = "x" * 255
"""As long as a name can be."""


def problems_of(check, path: Path) -> list[str]:
    problems = Problems()
    check(path, problems)
    return [str(problem) for problem in problems.found]


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def write_two(path: Path) -> None:
    with new_folder(path) as draft:
        (draft / "a").write_text("1")
        (draft / "b").mkdir()
        (draft / "b" / "c").write_text("2")


@pytest.fixture
def mount_point(tmp_path, monkeypatch) -> Path:
    """A folder that cannot be renamed or replaced, as one where a disk is mounted."""
    point, replace = tmp_path / "point", os.replace
    point.mkdir()

    def refuse(source, target):
        if Path(target) == point:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        # Nor can anything be moved there from another disk.
        if point in Path(target).parents and point not in Path(source).parents:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    return point


@pytest.fixture
def link(tmp_path) -> Path:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere")
    return tmp_path / "link"


class TestPlaces:
    @pytest.fixture(params=["new", "empty", "long", "link", "mount_point"])
    def place(self, request, tmp_path) -> Path:
        if request.param in ("link", "mount_point"):
            return request.getfixturevalue(request.param)
        if request.param == "empty":
            (tmp_path / "empty").mkdir()
        return tmp_path / (LONG if request.param == "long" else request.param)

    def test_a_folder_is_written_there(self, place, tmp_path):
        before = names(tmp_path)
        assert problems_of(check_new_folder, place) == []
        assert names(tmp_path) == before, "nothing is left of the trial"
        write_two(place)
        assert names(place) == ["a", "b"]
        assert (place / "b" / "c").read_text() == "2"
        assert names(tmp_path) == sorted({*before, place.name})
        assert "which is not empty" in problems_of(check_new_folder, place)[0]

    def test_a_folder_that_is_there_keeps_its_rights(self, tmp_path):
        (tmp_path / "ours").mkdir(mode=0o750)
        before = (tmp_path / "ours").stat()
        assert problems_of(check_new_folder, tmp_path / "ours") == []
        write_two(tmp_path / "ours")
        after = (tmp_path / "ours").stat()
        assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)

    def test_a_file_with_a_long_name(self, tmp_path):
        assert problems_of(check_new_file, tmp_path / LONG) == []
        with replacing(tmp_path / LONG) as draft:
            draft.write_text("1")
        assert names(tmp_path) == [LONG]

    @pytest.mark.parametrize("check", [check_new_file, check_new_folder])
    @pytest.mark.parametrize(
        ("name", "said"), [(f"{LONG}x", "File name too long"), ("no/where", "that exists"), ("file/new", "that exists")]
    )
    def test_where_nothing_can_be(self, tmp_path, check, name, said):
        (tmp_path / "file").write_text("")
        (found,) = problems_of(check, tmp_path / name)
        assert found.startswith(f"out: got {tmp_path / name}")
        assert said in found
        assert names(tmp_path) == ["file"]

    @pytest.mark.parametrize("check", [check_new_file, check_new_folder])
    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
    def test_where_nothing_may_be_written(self, tmp_path, monkeypatch, check, code):
        def refuse(*_, **__):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(Path, "mkdir", refuse)
        (found,) = problems_of(check, tmp_path / "new")
        assert f"{os.strerror(code)}; expected a f" in found
        assert "that can be written" in found

    def test_what_is_there_stays_as_it_is(self, tmp_path):
        (tmp_path / "old").write_text("old")
        (tmp_path / "dangling").symlink_to("nothing")
        assert problems_of(check_new_file, tmp_path / "old") == []
        assert (tmp_path / "old").read_text() == "old"
        for name in ("old", "dangling"):
            assert "which is a file" in problems_of(check_new_folder, tmp_path / name)[0]
        assert "not a folder" in problems_of(check_new_file, tmp_path)[0]
        assert names(tmp_path) == ["dangling", "old"]

    def test_everything_follows_the_umask(self, tmp_path):
        mask = os.umask(0o027)
        try:
            write_two(tmp_path / "new")
        finally:
            os.umask(mask)
        rights = {name: stat.S_IMODE((tmp_path / "new" / name).stat().st_mode) for name in (".", "a", "b", "b/c")}
        assert rights == {".": 0o750, "a": 0o640, "b": 0o750, "b/c": 0o640}


MOUNTED = """
import sys
from pathlib import Path
from g3nn.base.errors import DataError, Problems
from g3nn.base.folders import check_new_folder, new_folder

point, problems = Path(sys.argv[1]), Problems()
check_new_folder(point, problems)
assert problems.found == [], problems.found
try:
    with new_folder(point) as draft:
        (draft / "large").write_bytes(bytes(10**6))
except DataError as error:
    print(error)
assert list(point.iterdir()) == []
with new_folder(point) as draft:
    (draft / "small").write_bytes(bytes(10**4))
print(*(entry.name for entry in point.iterdir()))
"""


def test_a_small_disk_that_is_mounted(tmp_path):
    mount = 'mount -t tmpfs -o size=100k tmpfs "$1" || exit 77; exec "$2" -c "$3" "$1"'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(tmp_path), sys.executable, MOUNTED]
    if shutil.which("unshare") is None or subprocess.run([*command[:3], "true"], capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode == 77:
        pytest.skip("no disk can be mounted here")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == f"{tmp_path}: cannot be written: No space left on device.\nsmall\n"


class TestFailures:
    @pytest.mark.parametrize("there", [False, True])
    def test_an_error_leaves_nothing(self, tmp_path, there):
        if there:
            (tmp_path / "out").mkdir()

        def fill(path: Path) -> None:
            with new_folder(path) as draft:
                (draft / "a").write_text("1")
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(draft / "a"))

        with pytest.raises(DataError, match=r"out: cannot be written: No space left on device\."):
            fill(tmp_path / "out")
        assert [path.name for path in tmp_path.rglob("*")] == (["out"] if there else [])

    def test_content_that_cannot_all_be_moved_is_taken_back(self, tmp_path, monkeypatch):
        replace = os.replace

        def refuse(source, target):
            if Path(target) == tmp_path / "b":
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            replace(source, target)

        monkeypatch.setattr(os, "replace", refuse)
        with pytest.raises(DataError, match="Input/output error"):
            write_two(tmp_path)
        assert names(tmp_path) == []

    def test_a_folder_that_is_filled_meanwhile_stays(self, tmp_path):
        def write_late(path: Path) -> None:
            with new_folder(path) as draft:
                (draft / "a").write_text("mine")
                (path / "a").write_text("theirs")

        with pytest.raises(DataError, match="not empty"):
            write_late(tmp_path)
        assert (tmp_path / "a").read_text() == "theirs"
        assert names(tmp_path) == ["a"]

    def test_a_file_of_somebody_faster_stays(self, tmp_path):
        with creating(tmp_path / "file") as draft:
            draft.write_text("mine")
            (tmp_path / "file").write_text("theirs")
        assert (tmp_path / "file").read_text() == "theirs"
        assert names(tmp_path) == ["file"]

    @pytest.mark.parametrize("write", [replacing, creating, swapped, new_folder])
    def test_content_is_on_the_disk_before_its_name(self, tmp_path, monkeypatch, write):
        """A machine may stop at any time: a new name must not stand for content that was never written."""
        done: list[str] = []

        def noted(call, what):
            def run(first, *rest, **options):
                done.append(what(first))
                return call(first, *rest, **options)

            return run

        def place(handle: int) -> str:
            return f"fsync {Path(os.readlink(f'/proc/self/fd/{handle}')).name}"

        if not Path("/proc/self/fd").is_dir():
            pytest.skip("only Linux says which file it is")
        monkeypatch.setattr(os, "fsync", noted(os.fsync, place))
        for name in ("replace", "link"):
            monkeypatch.setattr(os, name, noted(getattr(os, name), lambda source: f"move {Path(source).name}"))
        with write(tmp_path / "out") as draft:
            if write in (swapped, new_folder):
                draft.mkdir(exist_ok=True)
                (draft / "a").write_text("1")
            else:
                draft.write_text("1")
        inside = ["fsync a"] if write in (swapped, new_folder) else []
        assert done == [*inside, "fsync out", "move out", f"fsync {tmp_path.name}"]


KILLED = """
import sys, time
from pathlib import Path
from g3nn.base.folders import {write}
with {write}(Path(sys.argv[1])) as draft:
    draft.mkdir(exist_ok=True)
    (draft / "half").write_text("1")
    print("writing", flush=True)
    time.sleep(60)
"""


KILLED_BETWEEN = """
import os, signal, sys
from pathlib import Path
from g3nn.base.folders import new_folder

replace = os.replace

def replace_or_die(source, target):
    if Path(target).name == "b":
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)

os.replace = replace_or_die
with new_folder(Path(sys.argv[1])) as draft:
    for name in "abc":
        (draft / name).write_text(name)
"""
"""Between two of the entries that move into a folder."""


def writer(path: Path, write: str) -> subprocess.Popen[str]:
    """A process that is in the middle of writing to a path."""
    command = [sys.executable, "-c", KILLED.format(write=write), str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


def rooms(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.part"))


def age(rooms: list[Path], seconds: float) -> None:
    for room in rooms:
        os.utime(room, (time.time() - seconds,) * 2)


class TestLeftBehind:
    @pytest.mark.parametrize("there", [False, True])
    @pytest.mark.parametrize("write", ["replacing", "new_folder", "swapped"])
    def test_what_a_killed_process_left_is_deleted_and_nothing_else(self, tmp_path, write, there):
        out = tmp_path / "out"
        if there:
            out.mkdir()
        where = out if there and write == "new_folder" else tmp_path
        with writer(out, write) as process:
            try:
                (left,) = rooms(where)
                assert problems_of(check_new_folder, out) == []
                age([left], 3600)
                write_two(tmp_path / "other")
                assert problems_of(check_new_folder, out) == []
                assert (left / "half").exists() or (left / "out" / "half").exists(), "its process lives"
            finally:
                process.send_signal(signal.SIGKILL)
        age([left], 3600)
        own = [where / name for name in (".out.part", ".out.0123.part", f".outer.{'0' * 32}.part")]
        if where == tmp_path:
            for room in own:
                room.mkdir()
            age(own, 10 * 86_400)
        if write == "new_folder":
            write_two(out)
        else:
            with swapped(out) as draft:
                draft.mkdir()
        assert rooms(where) == (sorted(own) if where == tmp_path else [])

    @pytest.mark.parametrize("check", [check_new_file, check_new_folder])
    @pytest.mark.parametrize("there", [False, True])
    def test_a_trial_that_is_killed_leaves_nothing_in_the_place_itself(self, tmp_path, monkeypatch, check, there):
        place = tmp_path / "here" / "out"
        place.parent.mkdir()
        if there:
            place.write_text("old") if check is check_new_file else place.mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # as if killed before
            assert problems_of(check, place) == []
            left = rooms(place.parent) + rooms(place)
            assert len(left) == 1
        assert [path for path in place.parent.rglob("*") if not {path, *path.parents} & set(left)] == [place] * there
        age(left, 3600)
        assert problems_of(check, place) == []
        assert rooms(place.parent) + rooms(place) == []

    def test_a_trial_in_a_folder_is_deleted_by_the_next(self, tmp_path, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "rmtree", lambda *_, **__: None)
            try_writing(tmp_path)
        age(rooms(tmp_path), 3600)
        try_writing(tmp_path)
        assert names(tmp_path) == []

    @pytest.mark.parametrize("own", [False, True])
    def test_content_that_was_moving_into_a_folder_moves_on(self, tmp_path, own):
        ran = subprocess.run([sys.executable, "-c", KILLED_BETWEEN, str(tmp_path)])
        assert ran.returncode == -signal.SIGKILL
        room, *moved = names(tmp_path)
        assert (Path(room).suffix, moved) == (".whole", ["a"])
        if own:
            (tmp_path / "c").write_text("mine")
        mend(tmp_path)
        if own:
            assert names(tmp_path) == [room, "a", "c"], "nobody else's file is replaced"
            assert (tmp_path / "c").read_text() == "mine"
        else:
            assert names(tmp_path) == ["a", "b", "c"]
        assert "which is not empty" in problems_of(check_new_folder, tmp_path)[0]

    def test_a_former_folder_comes_back_only_when_nobody_writes(self, tmp_path):
        out, former = tmp_path / "out", tmp_path / ".out.former"
        with writer(out, "swapped") as process:
            try:
                former.mkdir()  # as between the two renames
                mend(out)
                assert former.exists()
                assert not out.exists()
            finally:
                process.send_signal(signal.SIGKILL)
        mend(out)
        assert out.exists()
        assert not former.exists()

    def test_without_locks_a_day_must_pass(self, tmp_path, monkeypatch):
        left = tmp_path / f".out.{'a' * 32}.part"
        left.mkdir()
        monkeypatch.setitem(sys.modules, "fcntl", None)
        age([left], 3600)
        write_two(tmp_path / "out")
        assert left.exists()
        age([left], 2 * 86_400)
        with swapped(tmp_path / "out") as draft:
            draft.mkdir()
        assert not left.exists()
