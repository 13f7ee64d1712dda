"""`g3nn fit` on tables as people have them: what is odd is noted, what is wrong ends it with nothing half written."""

from __future__ import annotations

import json
import re
import signal
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_tables import Columns, edge_columns, node_columns, write

from g3nn import cli
from g3nn.estimator import fitting
from g3nn.estimator.effort import EFFORTS, Effort
from g3nn.estimator.problem import FitProblem
from g3nn.estimator.search import Search
from g3nn.training.stack import Stack

SHORT = ("--model", "gcn", "--ensemble", "1", "--device", "cpu")


@pytest.fixture
def tables() -> dict[str, Columns]:
    return {"nodes": node_columns(), "edges": edge_columns()}


@pytest.fixture
def fit(run_command: Any, tables: dict[str, Columns], tmp_path: Path) -> Any:
    """Writes the tables as they are by then, unless there is such a file, and runs the command on them."""

    def run(*words: str, label: str = "group") -> Any:
        files = {name: tmp_path / f"{name}.csv" for name in tables}
        for name, file in files.items():
            if tables[name]:
                write(file, tables[name])
        given = ("--nodes", str(files["nodes"]), "--edges", str(files["edges"]), "--id", "id", "--label", label)
        return run_command("fit", *given, *SHORT, *words)

    return run


def bytes_instead(table: str, content: bytes) -> Any:
    """A change that puts a file of its own in the place of a table."""

    def change(tables: dict[str, Columns], folder: Path) -> None:
        tables[table] = {}
        (folder / f"{table}.csv").write_bytes(content)

    return change


def column(name: str, values: list[Any], table: str = "nodes") -> Any:
    """A change that puts these values into a column, over and over."""

    def change(tables: dict[str, Columns], _: Path) -> None:
        rows = len(next(iter(tables[table].values())))
        tables[table][name] = [values[row % len(values)] for row in range(rows)]

    return change


def cells(name: str, *values: Any) -> Any:
    """A change that replaces the first cells of a column of the nodes."""

    def change(tables: dict[str, Columns], _: Path) -> None:
        tables["nodes"][name][: len(values)] = values

    return change


ROWS = list(range(60))
ODD = [
    (column("same", [1]), "nodes.csv, column 'same': the same value in every row; left out"),
    (column("void", [None]), "nodes.csv, column 'void': no value at all; left out"),
    (column("name", [f"n{row}" for row in ROWS]), "nodes.csv, column 'name': almost as many values as rows; left out"),
    (column("row", ROWS), "nodes.csv, column 'row': the numbers of the rows; left out"),
    (cells("age", None), "nodes.csv, column 'age': missing numbers; filled in from the neighbours"),
    (cells("age", "old"), "nodes.csv, column 'age': 1 value that is no number ('old'); taken as missing"),
    (column("day", ["01/02/2020", "03/04/2021"]), "nodes.csv, column 'day': dates that can be read as %m/%d/%Y and"),
    (
        column("said", [f"a{row % 20} b{row % 19} c{row % 18} d{row % 17} e{row % 16}" for row in ROWS]),
        "nodes.csv, column 'said': sentences; their words become features",
    ),
    (cells("group", "?", "NA"), "nodes.csv, column 'group': 2 labels written as '?', 'NA'; taken as unknown"),
    (cells("group", "Art", "Art"), "nodes.csv, column 'group': classes that differ only in case or blanks"),
    (cells("group", "unknown", "unknown"), "nodes.csv, column 'group': 2 labels called 'unknown'; taken as a class"),
    (
        column("group", [7 * row for row in ROWS]),
        "nodes.csv, column 'group': 60 whole numbers from 0 to 413; taken as counts",
    ),
    (
        column("group", [3 + 7 * row for row in ROWS]),
        "nodes.csv, column 'group': 60 whole numbers from 3 to 416; taken as numbers",
    ),
    (
        column("split", ["train", "tst"]),
        "nodes.csv, column 'split': 30 other values ('tst'); taken to describe the nodes",
    ),
    (column("weight", [2, 3], "edges"), "edges.csv: a column 'weight'; its numbers are the weights"),
    (bytes_instead("edges", b"source,target\n"), "edges.csv: no rows; there are no edges"),
    (bytes_instead("edges", b"source,target,x\xe9\np1,p2,4\n"), "edges.csv: text that is not UTF-8; read as cp1252"),
    (
        bytes_instead("nodes", b"id,group\n" + b"".join(b"p%d,%s\n" % (row, b"ab"[row % 2 :][:1]) for row in ROWS)),
        "nodes.csv: no column that describes the nodes; degrees and positions",
    ),
]


def test_what_is_odd_is_a_note_or_for_the_strict_an_error(fit, tables, tmp_path):
    sound = deepcopy(tables)
    for change, said in ODD:
        tables |= deepcopy(sound)
        change(tables, tmp_path)
        ran = fit("--dry-run", "--json")
        notes = json.loads(ran.out)["notes"]
        assert [said in note for note in notes].count(True) == 1, notes
        assert (ran.code, ran.err) == (0, "".join(f"note: {note}\n" for note in notes))
        ran = fit("--dry-run", "--json", "--strict")
        assert (ran.code, ran.out) == (2, "")
        assert "error: " in ran.err
        found = said.partition("; ")[0]
        assert found.replace(": ", ": got ", 1) in ran.err


class TestDryRun:
    def test_a_table_of_columns_and_nothing_else(self, fit, tables, tmp_path):
        tables["nodes"] |= {
            "split": ["train"] * 30 + ["val"] * 10 + ["test"] * 20,
            "void": [None] * 60,
            "code": [1, 2, 3] * 20,
        }
        ran = fit("--dry-run", "--ignore", "city", "--categorical", "code", "--text", "notes")
        assert ran.code == 0
        rows = [line.split(maxsplit=2) for line in ran.out.splitlines() if line.strip()]
        assert [(row[0], row[1]) for row in rows if row[0] in tables["nodes"]] == [
            ("id", "id"),
            ("group", "label"),
            ("age", "numeric"),
            ("member", "boolean"),
            ("city", "ignored"),
            ("notes", "text"),
            ("split", "split"),
            ("void", "left"),
            ("code", "categorical"),
        ]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "nodes.csv"]

    def test_as_json(self, fit, tables):
        tables["nodes"]["age"][:2] = ["n/a", None]
        told = json.loads(fit("--dry-run", "--json").out)
        assert set(told) == {"schema", "notes", "seconds", "bytes"}
        assert told["seconds"] > 0
        assert told["bytes"] > 0
        by_name = {row["column"]: row for row in told["schema"]}
        assert by_name["age"] == {"column": "age", "kind": "numeric", "missing": 2, "became": "a number"}

    def test_many_columns_that_were_read_alike_share_a_line(self, fit, tables):
        tables["nodes"] |= {f"x{place}": [row % (place + 2) for row in ROWS] for place in range(50)}
        out = " ".join(fit("--dry-run").out.split())
        assert "x0 to x49 (50) numeric a number" in out
        assert "member boolean 0 or 1" in out

    def test_sizes_time_and_memory(self, fit, tables):
        for name, end in (("source", "p0"), ("target", "p0")):
            tables["edges"][name].append(end)
        ran = fit("--dry-run", "--budget", "0.5")
        assert "71 edges in 72 rows; the others are 1 self-loop" in ran.err
        words = r"60 nodes and 71 edges; to try models takes up to about 0 s here, and [\d,]+ MB beside the tables"
        assert re.search(words, ran.out)


def test_words_for_unknown(fit, tables):
    tables["nodes"]["group"] = [{"tea": "NA"}.get(name, name) for name in tables["nodes"]["group"]]

    def labels(*words: str) -> str:
        told = json.loads(fit("--dry-run", "--json", *words).out)
        return next(row["became"] for row in told["schema"] if row["column"] == "group")

    assert "of 2 classes" in labels()
    assert "of 3 classes" in labels("--keep-na")
    assert "of 2 classes" in labels("--keep-na", "--na", "art")


def change_of(name: str, place: int, value: Any) -> Any:
    return lambda nodes: nodes[name].__setitem__(place, value)


WRONG = [
    (lambda nodes: nodes.pop("id"), ["id column: got no 'id' among 'group', 'age'"]),
    (change_of("id", 59, "p8"), ["1 id in more than one row ('p8')"]),
    (change_of("id", 59, None), ["1 missing id (row 60)"]),
    (lambda nodes: nodes.update(id=[*range(59), "p59"]), ["whole numbers and 1 other value ('p59')", "of one type"]),
    (lambda nodes: nodes.update(group=["art"] * 45 + [None] * 15), ["45 labels of 1 class", "at least 2 classes"]),
    (lambda nodes: nodes.update(group=[None] * 60), ["column 'group': got 0 labels"]),
    (lambda nodes: nodes.update(split=["test"] * 60), ["nodes.csv, split: got test labels only"]),
    (
        lambda nodes: nodes.update(group=["art", "law"] * 20 + ["war"] * 20, split=["train"] * 40 + ["test"] * 20),
        ["nodes.csv, split: got every label of class 'war'"],
    ),
    (change_of("age", 7, float("inf")), ["column 'age': got infinite or huge numbers"]),
]
EDGES = [
    (b"", "is empty"),
    (b"source,target\np1,p2\nx1,p3\nx2,p3\n", "2 of 3 edges with ids that no node has ('x1', 'x2')"),
    (b"source\np1\n", "two columns"),
    (b"source,target\np1\n", "1 row with more or fewer values than the header"),
    (b'source,target\n"p1,p2\np3,p4\n', "a quote in line 2 is not closed"),
    (b"PAR1zzzzzzzz", "damaged or cut short"),
    (b"PK\x03\x04zzzz", "no Excel sheet that can be read"),
]


class TestErrors:
    def assert_refused(self, ran: Any, folder: Path, words: list[str]) -> None:
        assert (ran.code, ran.out) == (2, "")
        (line,) = [line for line in ran.err.splitlines() if not line.startswith("note: ")]
        assert line.startswith("error: ")
        for word in words:
            assert word in line
        assert sorted(path.name for path in folder.iterdir()) == ["edges.csv", "nodes.csv"]

    def test_nodes(self, fit, tables, tmp_path):
        sound = tables["nodes"]
        for change, words in WRONG:
            tables["nodes"] = deepcopy(sound)
            change(tables["nodes"])
            self.assert_refused(fit("--out", str(tmp_path / "out")), tmp_path, words)

    def test_edges(self, fit, tables, tmp_path):
        for content, words in EDGES:
            bytes_instead("edges", content)(tables, tmp_path)
            self.assert_refused(fit("--out", str(tmp_path / "out")), tmp_path, [words])

    def test_labels_under_another_name_are_not_judged_as_features(self, fit, tables, tmp_path):
        tables["nodes"]["grade"] = [k % 3 if k < 45 else None for k in range(60)]
        words = ["nodes.csv, label column: got no 'grad' among", "Did you mean 'grade'?"]
        self.assert_refused(fit("--out", str(tmp_path / "out"), label="grad"), tmp_path, words)

    def test_everything_at_once_and_nothing_written(self, fit, tables, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine.txt").write_text("mine")
        tables["nodes"]["same"] = [1] * 60
        tables["nodes"]["age"][3] = 1e200
        tables["nodes"]["id"][59] = "p8"
        words = ("--model", "gnc", "--objective", "elbow", "--ensemble", "0", "--device", "cup", "--alpha", "2")
        words += ("--prior", "tree")
        ran = fit(*words, "--outcome", "clases", "--ignore", "cty", "--weight", "w", "--out", str(tmp_path / "out"))
        assert (ran.code, ran.out) == (2, "")
        lines = [line for line in ran.err.splitlines() if not line.startswith("note: ")]
        expected = {
            "out": "which is not empty",
            "alpha": "between 0 and 1",
            "model": "Did you mean 'gcn'?",
            "objective": "Did you mean 'elbo'?",
            "ensemble": "at least 1",
            "device": "Did you mean 'cpu'?",
            "prior": "expected auto, trees or linear-model. Did you mean 'trees'?",
            "outcome": "Did you mean 'classes'?",
            "nodes.csv, ignored column": "Did you mean 'city'?",
            "nodes.csv, column 'id'": "'p8'",
            "nodes.csv, column 'age'": "huge numbers",
            "edges.csv, weight column": "got no 'w' among 'source'",
        }
        assert lines[0] == f"error: {len(expected)} problems:"
        for name, word in expected.items():
            (line,) = [line for line in lines if f"{name}: " in line]
            assert word in line
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "nodes.csv", "out"]

    def test_problems_of_columns_and_of_edges_together(self, fit, tables):
        tables["nodes"]["age"][3] = 1e200
        tables["nodes"]["same"] = [1] * 60
        tables["edges"]["source"][3] = "nobody"
        note, *lines = fit("--dry-run").err.splitlines()
        assert note.endswith("column 'same': the same value in every row; left out")
        assert lines[0] == "error: 2 problems:"
        assert "'age': got infinite or huge numbers" in lines[1]
        assert "1 of 71 edges" in lines[2]

    def test_no_files(self, run_command, tmp_path):
        words = ("--id", "id", "--label", "y", "--out", str(tmp_path / "deep" / "out"), *SHORT)
        ran = run_command("fit", "--nodes", str(tmp_path / "n.csv"), "--edges", str(tmp_path), *words)
        assert (ran.code, ran.out) == (2, "")
        assert "3 problems" in ran.err
        for text in ("n.csv: there is no such file", "is a folder", "a new folder inside one that exists"):
            assert text in ran.err
        assert list(tmp_path.iterdir()) == []

    def test_where_results_cannot_go(self, fit, tmp_path):
        for words, said in [
            ((), "out: got nothing; expected a folder or a file for the results. --dry-run needs none."),
            (("--out", str(tmp_path / "nodes.csv")), "another file than the tables that are read"),
            (("--out", str(tmp_path / "deep" / "a.csv")), "a file in a folder that exists"),
            (("--out", str(tmp_path / "a.txt")), "a file that ends in .csv, .parquet, .pq or .xlsx, or a folder"),
        ]:
            self.assert_refused(fit(*words), tmp_path, [said])

    def test_options_instead_of_arguments(self, fit, tables):
        """The library speaks of its arguments, a command of its options."""
        tables["nodes"]["group"][0] = "?"
        tables["edges"]["source"][3] = "nobody"
        ran = fit("--dry-run", "--ensemble", "0", "--device", "gpu")
        assert "taken as unknown. --keep-na takes them as they are." in ran.err
        for line in (
            "--ensemble: got 0;",
            "auto, cpu or cuda. Did you mean 'cuda'?",
            " --drop-unknown-edges leaves them",
        ):
            assert line in ran.err

    def test_nothing_is_said_of_columns_that_were_not_looked_at(self, fit):
        assert "no column that describes the nodes" not in fit("--dry-run", label="grp").err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('weight="none" ignores them.', "--weight none ignores them."),
        ("categorical=[...] or text=[...] keeps it.", "--categorical or --text keeps it."),
        ("ignore=['my age', 'b'] leaves", "--ignore 'my age' --ignore b leaves"),
        ("denoise=False uses every edge", "--denoise no uses every edge"),
        ("denoise=True, keep_na=True", "--denoise yes, --keep-na"),
        (
            "2 problems:\n  - label_noise: got 3\n  - out: got 4",
            "2 problems:\n  - --label-noise: got 3\n  - --out: got 4",
        ),
        ("refit=True, na=[oops]", "refit=True, na=[oops]"),
    ],
)
def test_arguments_become_options(monkeypatch, text, said):
    monkeypatch.setattr(cli, "TYPED", ["g3nn", "fit"])
    assert cli.with_options(text) == said


NOTE = "the fit was interrupted: the best of the models that were trained until then answers"


class TestInterrupted:
    """By a signal before the second of the models that are tried, or of those that are trained to their end."""

    @pytest.fixture
    def ended(self, request, run_command, tables, tmp_path, monkeypatch) -> Any:
        monkeypatch.setattr(FitProblem, "simple", ())
        monkeypatch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], views=1, models=3, leading=2, kept=2, work=99))
        done, train = list[Any](), getattr(Search, request.param)

        def signalled(search: Search, *given: Any) -> Any:
            done.append(given)
            if len(done) == 2:
                signal.raise_signal(signal.SIGTERM)
            return train(search, *given)

        monkeypatch.setattr(Search, request.param, signalled)
        return self.run(run_command, tables, tmp_path, "--effort", "quick", "--label-noise", "no")

    def run(self, run_command: Any, tables: dict[str, Columns], folder: Path, *words: str) -> Any:
        files = [str(write(folder / f"{name}.csv", columns)) for name, columns in tables.items()]
        given = ("--nodes", files[0], "--edges", files[1], "--id", "id", "--label", "group", "--device", "cpu")
        return run_command("fit", *given, "--denoise", "no", "--out", str(folder / "out"), *words)

    @pytest.mark.parametrize("ended", ["_long"], indirect=True)
    def test_the_best_so_far_is_written(self, ended, tmp_path):
        assert ended.code == 0
        assert f"note: {NOTE}" in ended.err
        assert (tmp_path / "out" / "predictions.parquet").is_file()
        assert "auditing" not in ended.err

    @pytest.mark.parametrize("ended", ["_short"], indirect=True)
    def test_nothing_is_written_before_there_is_a_model(self, ended, tmp_path):
        assert ended.code == 2
        assert "error: interrupted before a model was trained to its end: nothing is written" in ended.err
        assert not (tmp_path / "out").exists()

    def test_the_best_simple_model_answers_if_labels_were_being_judged(
        self, run_command, tables, tmp_path, monkeypatch
    ):
        judge = fitting.judged_labels

        def signalled(*given: Any, **options: Any) -> Any:
            signal.raise_signal(signal.SIGINT)
            return judge(*given, **options)

        monkeypatch.setattr(fitting, "judged_labels", signalled)
        ended = self.run(run_command, tables, tmp_path, "--label-noise", "yes", "--json")
        summary = json.loads(ended.out)
        assert (ended.code, summary["labels"]) == (0, None)
        assert {"base-rate", "linear", "label-propagation"} <= {entry["model"] for entry in summary["panel"]}
        assert all(entry["simple"] for entry in summary["panel"])
        assert NOTE in summary["notes"]
        assert (tmp_path / "out" / "predictions.parquet").is_file()

    @pytest.mark.parametrize("size", ["0", "8"], ids=["together", "one by one"])
    def test_a_model_that_was_named_answers_as_it_was_at_its_best(
        self, run_command, tables, tmp_path, monkeypatch, size
    ):
        """In batches replicas are trained one by one: those that have not begun do not answer."""
        step, stacks = Stack.step, list[Stack]()

        def signalled(stack: Stack) -> None:
            stacks.append(stack)
            step(stack)
            if len(stacks) == 3:
                signal.raise_signal(signal.SIGTERM)

        monkeypatch.setattr(Stack, "step", signalled)
        monkeypatch.setattr(Effort, "fitting", lambda *_: {"batch": int(size)})
        ended = self.run(run_command, tables, tmp_path, "--model", "gcn", "--ensemble", "2", "--json")
        summary = json.loads(ended.out)
        (entry,) = summary["panel"]
        assert (ended.code, len(stacks)) == (0, 3)
        assert (entry["epochs"], entry["replicas"]) == (3, 2 if size == "0" else 1)
        assert NOTE in summary["notes"]
        assert (tmp_path / "out" / "model").is_dir()
