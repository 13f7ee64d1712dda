from __future__ import annotations

import json
import pickle
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest
import torch

import g3nn
from g3nn.graph.calibrate import Bin
from g3nn.studies import records
from g3nn.studies.records import Environment, Evidence, Point, Record

POINT = Point("cora", "standard", "sbm-gcn", "elbo", {"lr": 0.01, "eta": 1.0, "learn_p": True, "reduction": "mean"})

EVIDENCE = Evidence(
    test_nodes=3,
    nll=0.5,
    ece=0.25,
    brier=0.125,
    epochs=[1, 2, 7],
    curves={"loss": [3.0, None, 1.5], "kl": [0.1, 0.2, 0.3]},
    reliability=[Bin(0.0, 0.5, 1, 1.0, 0.4), Bin(0.5, 1.0, 2, 0.5, 0.75)],
    degrees=[Bin(0, 1, 3, 0.5, 0.5)],
    confusion=[[1, 0], [1, 1]],
)


def record(**changes: Any) -> Record:
    fields: dict[str, Any] = {
        "stage": "trial",
        "seed": 0,
        "split": "0" * 16,
        "status": "stopped",
        "val_loss": 0.5,
        "val_accuracy": 0.75,
        "test_accuracy": 0.8,
        "epochs": 10,
        "best_epoch": 5,
        "seconds": 0.5,
    }
    return Record(POINT, **fields | changes)


def test_the_key_of_a_point_never_changes():
    """Stores that were written long ago are found by it."""
    assert POINT.canonical == (
        '["cora","standard","sbm-gcn","elbo",{"eta":1,"learn_p":true,"lr":0.01,"reduction":"mean"}]'
    )
    assert POINT.key == "22be3b23bc9d221fb1d7532e"


def test_the_same_specification_is_the_same_point():
    for options in [
        {"reduction": "mean", "learn_p": True, "eta": 1.0, "lr": 0.01},
        {"lr": 0.01, "eta": 1, "learn_p": True, "reduction": "mean"},
    ]:
        other = Point("cora", "standard", "sbm-gcn", "elbo", options)
        assert (other, hash(other), other.key) == (POINT, hash(POINT), POINT.key)


def test_points_differ_in_every_part():
    names = ("cora", "standard", "sbm-gcn", "elbo")
    points = {Point(*names, {"eta": eta}) for eta in (1.0, 1.5, True)}
    for place in range(4):
        points.add(Point(*("other" if k == place else name for k, name in enumerate(names)), {"eta": 1.0}))
    assert len(points) == len({point.key for point in points}) == 7
    assert POINT.canonical != POINT


def test_the_options_of_a_point_are_its_own():
    given = {"eta": 1.0}
    point = Point("cora", "standard", "gcn", "elbo", given)
    given["eta"] = 2.0
    assert point.options == {"eta": 1.0}


def test_records_travel_between_processes():
    sent = record(evidence=EVIDENCE)
    assert pickle.loads(pickle.dumps(sent)) == sent


def test_evidence_survives_json():
    assert Evidence.from_json(json.dumps(asdict(EVIDENCE))) == EVIDENCE


def test_a_record_that_cannot_be_is_refused():
    for changes, text in [
        ({"stage": "select"}, "test_accuracy: .*Selection may not see test labels"),
        ({"stage": "select", "test_accuracy": None, "evidence": EVIDENCE}, "evidence: .*none in stage"),
        ({"stage": "test"}, "stage: got 'test'"),
        ({"status": "done"}, "status: got 'done'"),
    ]:
        with pytest.raises(g3nn.InputError, match=text):
            record(**changes)


def test_environment_of_a_cpu():
    found = Environment.current()
    assert found.software["g3nn"] == g3nn.__version__
    assert found.software["torch"].startswith(torch.__version__.split("+")[0])
    assert found.hardware["device"] == "cpu"
    assert found.hardware["cpu"]
    assert int(found.hardware["cores"]) >= 1
    assert "gpu" not in found.hardware
    assert all(isinstance(text, str) for part in (found.software, found.hardware) for text in part.values())


def test_environment_of_a_package_that_is_only_on_the_path(monkeypatch):
    def not_installed(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(records, "version", not_installed)
    software = Environment.current().software
    assert set(software) == {"python", "g3nn"}
    assert software["g3nn"] == g3nn.__version__


def test_environment_of_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"the GPU of {device}")
    assert Environment.current("cuda:1").hardware["gpu"] == "the GPU of cuda:1"


def test_the_processor_has_a_name_wherever_we_run(tmp_path, monkeypatch):
    described = tmp_path / "cpuinfo"
    described.write_text("processor\t: 0\nmodel name\t: Fast One @ 3 GHz\nmodel name\t: Fast One @ 3 GHz\n")
    assert records._cpu_model(described) == "Fast One @ 3 GHz"
    monkeypatch.setattr(records.platform, "processor", lambda: "")
    monkeypatch.setattr(records.platform, "machine", lambda: "riscv64")
    assert records._cpu_model(tmp_path / "absent") == "riscv64"
