"""What a release writes, kept for all later ones to read. Made once, by each release that changes a format:

PYTHONPATH=src:tests/support python tests/support/released_files.py tests/released/0.2.0
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from small_tables import edge_columns, node_columns, write

import g3nn
from g3nn.labelling.project import FILE, LABEL, REMOVE, Answer, Project
from g3nn.studies.records import Environment, Point, Record
from g3nn.studies.store import Store

RECORD = Record(
    Point("cora", "standard", "gcn", "elbo", {"eta": 1.0}), "trial", 3, "ab" * 8, "stopped", 0.3, 0.75, 2 / 3, 9, 7, 0.5
)
ANSWER = Answer("r1", "ann", "s1", "p7", LABEL, "tea", "a note", guess="art", sure=0.5)


def models(folder: Path) -> dict[str, Any]:
    """Of tables, with doubted edges; of several networks, with a prior of scikit-learn; of numbers, with an audit."""
    people = range(30)
    files = write(folder / "nodes.csv", node_columns(people, 24)), write(folder / "edges.csv", edge_columns(people))
    graph = g3nn.read_tables(*files, id="id", label="group", text=["notes"])
    small: dict[str, Any] = {"hidden": 2, "device": "cpu", "epochs": 5, "ensemble": 1}
    tables = g3nn.G3NNClassifier("sbm-gcn", denoise=True, class_weight="balanced", **small).fit(graph)
    tables.notes_["command"] = "g3nn fit"
    rng = np.random.default_rng(0)
    X, y, edges = rng.normal(size=(30, 2)), np.where(np.arange(30) < 24, np.arange(30) % 3, -1), tables.task_.edges
    X[:, 0] += y
    trees = g3nn.G3NNClassifier("sbm-gcn", prior=HistGradientBoostingClassifier(max_iter=1), **{**small, "ensemble": 2})
    numbers = g3nn.G3NNRegressor("near-gcn", options={"refine": True}, **small)
    few = edges[:, (edges < 12).all(0)]
    numbers.fit(X[:12], np.where(np.arange(12) < 10, y[:12] + rng.normal(0, 0.1, 12), np.nan), few).audit()
    return {"tables": tables, "trees": trees.fit(X, y, edges), "numbers": numbers}


def answers(model: Any) -> list[Any]:
    found: list[Any] = np.asarray(
        model.predict_proba() if hasattr(model, "predict_proba") else model.predict()
    ).tolist()
    return found


def dump(path: Path) -> str:
    """A file of SQLite as SQL."""
    with closing(sqlite3.connect(path)) as connection:
        (application,), (version,) = (
            connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        text = "\n".join(connection.iterdump())
    return f"PRAGMA application_id = {application};\nPRAGMA user_version = {version};\n{text}\n"


def store(folder: Path) -> Path:
    with Store.open(folder / "store.sqlite", environment=Environment({"g3nn": "0.2.0"}, {"device": "cpu"})) as opened:
        opened.append([RECORD])
    return folder / "store.sqlite"


def project(folder: Path) -> Path:
    with Project.open(folder / "project") as opened:
        opened.remember({"title": "people"})
        opened.add_classes(["art", "law", "tea"])
        opened.add(ANSWER)
        opened.judge("r2", "ann", "p1", "p2", REMOVE)
    return folder / "project" / FILE


def main(out: Path) -> None:
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = models(folder)
        for kind, model in made.items():
            model.save(out / kind)
        expected = {kind: answers(model) for kind, model in made.items()}
        (out / "answers.json").write_text(json.dumps(expected) + "\n")
        (out / "store.sql").write_text(dump(store(folder)))
        (out / "project.sql").write_text(dump(project(folder)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
