"""The records and exponents of `benchmarks/scaling.py`. Only a tiny graph is trained on."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from g3nn.base.errors import InputError

FOLDER = Path(__file__).parents[3] / "benchmarks"
MODULES = ("records", "plain_pyg", "speed", "svg", "scaling_case", "scaling")
TINY = {"nodes": 300, "edges": 900, "features": 8, "classes": 3}


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """Scripts import each other from their own folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield {name: importlib.import_module(name) for name in MODULES}
        for name in MODULES:
            sys.modules.pop(name, None)


@pytest.fixture
def scaling(scripts) -> ModuleType:
    return scripts["scaling"]


def record(edges: int, seconds: float = 1.0, memory: float = 1.0) -> dict:
    sizes = {"what": "edges", "wanted": edges, "edges": edges, "nodes": edges // 10, "model": "sbm-gcn"}
    found = {"seconds_per_epoch": seconds, "peak_gib": memory, "seconds_to_make": 1.0, "status": "done"}
    return {**sizes, "device": "cpu", **found}


@pytest.mark.parametrize("model", ["sbm-gcn", "plain gcn"])
def test_a_case_is_measured(scripts, model):
    found = scripts["scaling_case"].measured(**TINY, model=model, device="cpu")
    assert found["status"] == "done"
    assert abs(found["edges"] - 900) < 5 * 30
    assert found["seconds_per_epoch"] > 0


@pytest.mark.slow
def test_a_case_runs_in_a_process_and_is_not_measured_again(scaling, tmp_path, capsys, monkeypatch):
    out = tmp_path / "scale.json"
    cases = [("tiny", TINY, "sbm-gcn")]
    (first,) = scaling.measure_all(out, cases, "cpu")
    assert first["status"] == "done"
    assert json.loads(out.read_text()) == [first]
    monkeypatch.setattr(scaling, "measure", None)
    assert scaling.measure_all(out, cases, "cpu") == [first]
    assert "ms per epoch" in capsys.readouterr().out


@pytest.mark.slow
def test_a_case_that_fails_is_recorded(scaling, tmp_path, capsys):
    (found,) = scaling.measure_all(tmp_path / "scale.json", [("tiny", TINY, "no-such-model")], "cpu")
    assert found["status"].startswith("failed: ")
    assert "failed" in capsys.readouterr().out


def test_exponents_are_those_of_a_power(scaling):
    rows = [record(edges, edges**1.2, edges**0.9) for edges in (10**5, 10**6, 10**7)]
    assert scaling.exponent(rows, "seconds_per_epoch") == pytest.approx(1.2)
    assert scaling.exponent(rows, "peak_gib") == pytest.approx(0.9)


def test_growth_is_told_from_a_hundred_thousand_edges_on(scaling, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        scaling, "measure", lambda what, sizes, model, device: record(sizes["edges"]) | {"model": model}
    )
    scaling.edges(tmp_path / "scale.json", 10**6, "cpu")
    told = capsys.readouterr().out
    assert told.count("ms per epoch") == 6
    assert "plain gcn, exponents from 10^5 edges on: time 0.00, memory 0.00" in told


def test_the_drawing_has_what_was_measured_and_no_more(scaling):
    done = [record(edges, edges / 1e6) for edges in (10**4, 10**5, 10**7)]
    plain = [one | {"model": "plain gcn"} for one in done]
    failed = record(10**8) | {"status": "out of memory"}
    picture = scaling.drawing([*done, *plain, failed, *(one | {"device": "cuda"} for one in [*done, *plain])])
    lines = re.findall(r'points="(.*?)"', picture)
    assert [len(line.split()) for line in lines] == [2] * 6
    assert "10<tspan" in picture
    assert ">7</tspan>" in picture
    assert ">8</tspan>" not in picture


def test_records_need_a_file(scaling):
    with pytest.raises(InputError, match="--out"):
        scaling.measure_all(None, [("tiny", TINY, "sbm-gcn")], "cpu")
