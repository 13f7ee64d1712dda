"""What a release wrote is read by every later one: models, stores of results, labelling projects.

The folders in tests/released hold what the release of that name wrote, made by tests/support/released_files.py, and
0.2.1.dev the models that were written on the way from 0.2.0 to 0.3.0. If a test here fails after a change of what is
saved: raise the version of that format, add a migration, and add a folder.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from released_files import ANSWER, RECORD, answers, dump, project, store

import g3nn
from g3nn.base.errors import DataError
from g3nn.estimator import saving
from g3nn.labelling import project as project_file
from g3nn.labelling.project import FILE, REMOVE, Project
from g3nn.studies import store_file
from g3nn.studies.store import Store

RELEASES = sorted((Path(__file__).parents[1] / "released").iterdir())
LAST = RELEASES[-1]
WITH_SQL = [release for release in RELEASES if not release.name.endswith(".dev")]
MODELS = sorted(folder for release in RELEASES for folder in release.iterdir() if folder.is_dir())
NEWEST = [folder for folder in MODELS if folder.parent == LAST]


def shape(value: Any) -> Any:
    """What a record is made of, without its numbers and texts: names of fields, kinds of objects."""
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and value[1:] and value[0] != "array":
        return [value[0], shape(value[1])]
    if isinstance(value, list):
        return [shape(part) for part in value]
    return type(value).__name__


def restored(release: Path, name: str, path: Path) -> Path:
    """A file of SQLite from its SQL."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((release / name).read_text())
    return path


def schema(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return sorted(connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall(), key=str)


@pytest.mark.parametrize("folder", MODELS, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_a_model_is_read_and_answers_as_it_did(folder, tmp_path):
    model = g3nn.load_model(folder)
    expected = json.loads((folder.parent / "answers.json").read_text())[folder.name]
    np.testing.assert_allclose(answers(model), expected, rtol=1e-4, atol=1e-6)
    assert model.history_.shape[1] == len(model.history_names_)
    model.save(tmp_path / "again")
    np.testing.assert_array_equal(answers(g3nn.load_model(tmp_path / "again")), answers(model))


@pytest.mark.parametrize("folder", NEWEST, ids=lambda folder: folder.name)
def test_what_is_saved_has_the_form_that_was_released(folder, tmp_path):
    """Any other form needs another version of the format, or the last release would fail to read it."""
    g3nn.load_model(folder).save(tmp_path / "again")
    before, now = (json.loads((place / saving.RECORD).read_text()) for place in (folder, tmp_path / "again"))
    assert before["version"] == saving.VERSION
    assert shape(now) == shape(before)
    for name in before["files"]:
        kinds = [
            {key: (array.dtype, array.shape) for key, array in saving._read_tensors(place / name).items()}
            for place in (folder, tmp_path / "again")
        ]
        assert kinds[0] == kinds[1]


def test_every_released_format_has_a_migration():
    assert set(saving.MIGRATIONS) == set(range(saving.FIRST, saving.VERSION))
    assert set(store_file.MIGRATIONS) == set(range(1, store_file.VERSION))
    assert set(project_file.MIGRATIONS) == set(range(1, project_file.VERSION))
    versions = {json.loads((folder / saving.RECORD).read_text())["version"] for folder in MODELS}
    assert versions == set(range(saving.FIRST, saving.VERSION + 1))


def test_migrations_of_models_follow_one_another(monkeypatch):
    """As it will be two formats from now: a field is renamed, then an array is."""
    folder = NEWEST[0]
    plain, arrays = saving.read_archive(folder)

    def first(record, tensors):
        kept = {name: value for name, value in record.items() if name != "notes"}
        return {**kept, "remarks": record["notes"]}, tensors

    def second(record, tensors):
        return record, {**tensors, saving.PARAMETERS: {f"new.{k}": v for k, v in tensors[saving.PARAMETERS].items()}}

    monkeypatch.setattr(saving, "VERSION", saving.VERSION + 2)
    monkeypatch.setattr(saving, "MIGRATIONS", {plain["version"]: first, plain["version"] + 1: second})
    record, tensors = saving.read_archive(folder)
    assert (record["remarks"], "notes" in record) == (plain["notes"], False)
    assert list(tensors[saving.PARAMETERS]) == [f"new.{name}" for name in arrays[saving.PARAMETERS]]


@pytest.mark.parametrize("release", WITH_SQL, ids=lambda folder: folder.name)
def test_a_store_is_read_and_written_to(release, tmp_path):
    path = restored(release, "store.sql", tmp_path / "store.sqlite")
    with Store.read(path) as opened:
        assert opened.records(evidence=True) == [RECORD]
    with Store.open(path) as opened:
        assert opened.records() == [RECORD]
    assert f"PRAGMA user_version = {store_file.VERSION};" in dump(path)


@pytest.mark.parametrize("release", WITH_SQL, ids=lambda folder: folder.name)
def test_a_labelling_project_goes_on(release, tmp_path):
    (tmp_path / "labels").mkdir()
    restored(release, "project.sql", tmp_path / "labels" / FILE)
    with Project.open(tmp_path / "labels") as opened:
        assert opened.facts() == {"title": "people"}
        assert opened.classes() == ["art", "law", "tea"]
        (answer,) = opened.current()
        assert (answer.node, answer.label, answer.note, answer.sure) == ("p7", "tea", ANSWER.note, ANSWER.sure)
        assert opened.verdicts() == {("p1", "p2"): REMOVE}


def test_new_files_of_sqlite_have_the_released_schema(tmp_path):
    for name, make in (("store.sql", store), ("project.sql", project)):
        released = restored(LAST, name, tmp_path / name)
        made = make(tmp_path)
        assert schema(made) == schema(released)
        assert dump(made).splitlines()[:2] == dump(released).splitlines()[:2]


def test_a_migration_of_a_project_is_applied_once_and_a_newer_one_refused(tmp_path, monkeypatch):
    path = project(tmp_path)
    with monkeypatch.context() as later:
        later.setattr(project_file, "VERSION", 2)
        later.setattr(
            project_file, "MIGRATIONS", {1: "ALTER TABLE facts ADD COLUMN origin TEXT; UPDATE facts SET origin = 'old'"}
        )
        for _ in range(2):
            with Project.open(path.parent) as opened:
                assert opened._run("SELECT origin FROM facts") == [("old",)]
    with pytest.raises(DataError, match=r"newer g3nn \(version 2, this one reads 1\)\. Upgrade g3nn, or name another"):
        Project.open(path.parent)
