from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import g3nn
from g3nn.training.workers import Workers

PROMISED = {
    "dataset",
    "setting",
    "model",
    "objective",
    "hyperparameters",
    "test_accuracy",
    "val_accuracy",
    "val_loss",
    "epochs",
    "seconds",
}
"""The keys that outside scripts depend on."""

EXTRA = {"seeds", "status"}

SHORT = ("train", "cora", "--epochs", "2", "--device", "cpu")


def train(run_command: Any, *words: str) -> dict[str, Any]:
    ran = run_command(*SHORT, *words, "--json")
    assert (ran.code, ran.err) == (0, "")
    answer: dict[str, Any] = json.loads(ran.out)
    return answer


def test_json(run_command):
    answer = train(
        run_command, "--trials", "2", "--setting", "missing-edge", "--model", "lsm-gcn", "--objective", "released"
    )
    assert set(answer) == PROMISED | EXTRA
    named = [answer[key] for key in ("dataset", "setting", "model", "objective")]
    assert named == ["cora", "missing-edge", "lsm-gcn", "released"]
    for key in ("test_accuracy", "val_accuracy", "val_loss"):
        assert len(answer[key]) == 2
        assert all(isinstance(value, float) for value in answer[key])
    assert answer["epochs"] == [2, 2]
    assert isinstance(answer["seconds"], float)
    assert answer["hyperparameters"]["encoder"] == "relu"


def test_json_is_what_the_library_gives(run_command):
    answer = train(run_command, "--trials", "2", "--seed", "3", "--hidden", "8", "--eta", "2", "--prior", "linear")
    options = {"trials": 2, "seed": 3, "hidden": 8, "eta": 2.0, "prior": "linear", "epochs": 2, "device": "cpu"}
    expected = g3nn.fit(g3nn.load("cora"), "sbm-gcn", **options).to_json()
    assert {**answer, "seconds": 0} == {**json.loads(json.dumps(expected)), "seconds": 0}


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_result_that_cannot_be_printed_is_kept(run_command, tmp_path, monkeypatch, words):
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        ran = run_command(*SHORT, "--trials", "1", *words)
    (kept,) = tmp_path.iterdir()
    said = f"error: standard output: No space left on device. The results are in {kept} instead.\n"
    assert (ran.code, ran.err) == (2, said)
    assert json.loads((kept / "result.json").read_text())["epochs"] == [2]


NUMBERS = {
    "hidden": 8,
    "dropout": 0.3,
    "lr": 0.02,
    "weight-decay": 0.001,
    "eta": 3.0,
    "p0": 0.8,
    "p1": 0.2,
    "graph-weight": 0.5,
    "kl-weight": 0.25,
    "entropy-weight": -1.0,
    "prior-weight": 2.0,
    "laplacian-weight": 0.125,
    "epochs": 3,
    "patience": 7,
}


def test_every_option_reaches_the_training(run_command):
    words = [word for name, value in NUMBERS.items() for word in (f"--{name}", str(value))]
    chosen = train(run_command, "--trials", "1", *words)["hyperparameters"]
    assert {name: chosen[name.replace("-", "_")] for name in NUMBERS} == NUMBERS


def test_channels_and_their_options(run_command):
    words = ("--channels", "flips+edges", "--set", "wrong=0.2", "--set", "false=0.05")
    chosen = train(run_command, "--trials", "1", *words)["hyperparameters"]
    assert (chosen["channels"], chosen["wrong"], chosen["false"], chosen["miss"]) == ("flips+edges", 0.2, 0.05, 0.0)


def test_set_reads_a_value_as_its_option_declares(run_command):
    words = ("input_dropout=false", "learn-p=True", "pairs=sampled", "hidden=4", "lr=1e-3", "reduction=mean")
    chosen = train(run_command, "--trials", "1", *(part for word in words for part in ("--set", word)))[
        "hyperparameters"
    ]
    expected = {
        "input_dropout": False,
        "learn_p": True,
        "pairs": "sampled",
        "hidden": 4,
        "lr": 0.001,
        "reduction": "mean",
    }
    assert {name: chosen[name] for name in expected} == expected


def test_a_table_for_people(run_command):
    ran = run_command(*SHORT, "--trials", "2", "--model", "gcn")
    assert ran.code == 0
    for text in ("gcn [elbo] on cora", "test accuracy", "val loss", "epochs", "limit", "±"):
        assert text in ran.out


def test_a_diverging_trial_is_noted_and_its_numbers_are_null(run_command):
    ran = run_command(*SHORT, "--trials", "1", "--lr", "1e30", "--json")
    assert ran.code == 0
    (line,) = ran.err.splitlines()
    assert line.startswith("note: the loss of 1 of 1 trials")
    answer = json.loads(ran.out)
    assert (answer["status"], answer["val_loss"], answer["test_accuracy"]) == (["diverged"], [None], [None])


BAD = {
    "dataset": (("train", "coraa"), ["name", "'cora'"]),
    "setting": (("train", "cora", "--setting", "missing_edges"), ["setting", "'missing-edge'"]),
    "model": (("train", "cora", "--model", "sbm-gnc"), ["model", "'sbm-gcn'"]),
    "objective": (("train", "cora", "--objective", "elbow"), ["objective", "'elbo'"]),
    "prior": (("train", "cora", "--prior", "mpl"), ["prior", "'mlp'"]),
    "channels": (("train", "cora", "--channels", "flip"), ["channels", "'flips'"]),
    "device": (("train", "cora", "--device", "cup"), ["device", "'cpu'"]),
    "trials": (("train", "cora", "--trials", "0"), ["trials", "at least 1"]),
    "seed": (("train", "cora", "--seed", str(2**63)), ["seed"]),
    "eta": (("train", "cora", "--eta", "-1"), ["eta", "at least 0"]),
    "p0": (("train", "cora", "--p0", "1"), ["p0", "strictly between 0 and 1"]),
    "option of another model": (("train", "cora", "--model", "gcn", "--p0", "0.5"), ["p0", "one of the options"]),
    "assignment": (("train", "cora", "--set", "hidden"), ["--set", "NAME=VALUE"]),
    "assigned name": (("train", "cora", "--set", "hiden=3"), ["--set", "'hidden'"]),
    "assigned value": (("train", "cora", "--set", "epochs=many"), ["epochs", "whole number"]),
    "assigned flag": (("train", "cora", "--set", "learn_p=maybe"), ["learn_p", "true or false"]),
}


def test_bad_input_is_one_clear_line_and_code_2(run_command):
    for words, texts in BAD.values():
        ran = run_command(*words, "--json")
        assert (ran.code, ran.out) == (2, "")
        (line,) = ran.err.splitlines()
        assert line.startswith("error: ")
        for text in texts:
            assert text in line


def test_several_problems_are_listed_together(run_command):
    words = ("--setting", "standart", "--objective", "elbow", "--device", "cup", "--eta", "-1", "--set", "hiden=3")
    ran = run_command("train", "coraa", *words, "--json")
    assert (ran.code, ran.out) == (2, "")
    first, *rest = ran.err.splitlines()
    assert first.startswith("error: ")
    assert len(rest) == 6
    for name in ("name", "setting", "objective", "device", "eta", "hiden"):
        assert sum(name in line.split(";")[0] for line in rest) == 1, name


def test_bad_usage_ends_with_code_2(run_command):
    for words in [("train",), ("train", "cora", "--hidden", "many"), ("train", "cora", "--modle", "gcn")]:
        ran = run_command(*words)
        assert (ran.code, ran.out) == (2, "")
        assert "Traceback" not in ran.err


def test_trials_count_on_from_the_seed(run_command):
    many = train(run_command, "--trials", "3", "--seed", "1", "--model", "gcn")
    one = train(run_command, "--trials", "1", "--seed", "2", "--model", "gcn")
    assert many["seeds"] == [1, 2, 3]
    np.testing.assert_allclose(many["val_loss"][1], one["val_loss"][0], atol=1e-6)


def test_processes_that_torchrun_started_share_nothing_but_a_training_in_batches(run_command, monkeypatch):
    for name, value in {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    other = run_command("datasets")
    assert other.code == 2
    assert "torchrun: got 2 processes for `g3nn datasets`; expected one" in other.err
    monkeypatch.setenv("LOCAL_RANK", "1")
    silent = run_command("datasets")
    assert (silent.code, silent.err) == (2, ""), "one process of a machine says it"
    monkeypatch.undo()
    monkeypatch.setattr(Workers, "current", classmethod(lambda cls: cls(0, 2)))
    whole = run_command(*SHORT, "--trials", "1")
    assert whole.code == 2
    assert "batch: got 0 in 2 processes; expected a number of labelled nodes. Only a training in batches" in whole.err


def test_a_checkpoint_is_kept(run_command, tmp_path):
    words = ("--trials", "1", "--checkpoint", str(tmp_path / "kept"), "--checkpoint-every", "0", "--batch", "70")
    first = train(run_command, *words, "--fan-out", "3/3")
    assert (tmp_path / "kept" / "replica-0.safetensors").is_file()
    again = train(run_command, *words, "--fan-out", "3/3")
    assert first["val_loss"] == again["val_loss"]
    other = run_command(*SHORT, *words, "--fan-out", "2/2")
    assert other.code == 2
    assert "fan_out 3/3 (now 2/2)" in other.err


def test_tracking(run_command, tmp_path):
    """The numbers are those of a training that nobody tracks, and a run for each trial is there to be looked at."""
    words = ("--trials", "2", "--model", "gcn")
    told, plain = train(run_command, *words, "--track", f"tensorboard:{tmp_path}"), train(run_command, *words)
    assert {**told, "seconds": 0} == {**plain, "seconds": 0}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gcn-seed-0", "gcn-seed-1"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--track", "paper:runs"), "track: got 'paper:runs'; expected tensorboard:FOLDER, mlflow:URI"),
        (("--track", "tensorboard:runs", "--executor", "ray"), "track: got 'tensorboard:runs' for executor 'ray'"),
    ],
)
def test_tracking_that_cannot_be(run_command, words, message):
    ran = run_command(*SHORT, *words)
    assert ran.code == 2
    assert message in ran.err
