"""The suite of noisy graphs: what it holds, and a tiny one from the trainings to the page."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import g3nn.graph.datasets
from g3nn.base.errors import InputError
from g3nn.cli import app
from g3nn.graph.datasets import EDGE_NOISE, NOISE, load, load_noisy, settings_of, synthetic
from g3nn.graph.datasets.graphs import METATTACK
from g3nn.kernels.sparse import cosine_similarity
from g3nn.studies import executors
from g3nn.studies import suite_page as views
from g3nn.studies.comparison import compare
from g3nn.studies.job import Job, run_job
from g3nn.studies.records import Point
from g3nn.studies.run import schedule
from g3nn.studies.single_job import AUDIT_AUC, AUDIT_ECE, COSINE_AUC
from g3nn.studies.store import Store
from g3nn.studies.suite import ESTIMATOR, Suite
from g3nn.studies.suite_file import load_suite
from g3nn.studies.tables import render

pytestmark = pytest.mark.usefixtures("labels_judged_quickly", "edges_judged_quickly")

MODELS = ["gcn", "gat", "gcn-jaccard", "gcn-svd", "gnnguard", "rgcn", "g3nn"]
QUICK = {"model": "gcn", "epochs": 3, "ensemble": 1}

TINY = """
objectives = ["elbo"]
selects = true
[protocol]
trials = 2
selection_seeds = 1
finalists = 1
finalist_seeds = 1
[fixed]
epochs = 2
[axes]
hidden = [8, 16]
few = [{ model = "gcn", epochs = 2, ensemble = 1 }]
[[grids]]
models = ["gcn", "gcn-jaccard", "gcn-svd", "gnnguard", "rgcn"]
[[grids]]
models = ["gat"]
axes = ["hidden"]
[[grids]]
models = ["g3nn"]
axes = ["few"]
"""
SETTINGS = ("standard", "random-50", "dice-25", "metattack-25")
for number, setting in enumerate(SETTINGS):
    cells = ", ".join(f'{{ model = "{model}", dataset = "cora" }}' for model in MODELS)
    quoted = '{ model = "pro-gnn", dataset = "cora", published = 0.7, quoted = true }'
    TINY += f'[[tables]]\nname = "{number}"\nsetting = "{setting}"\ncells = [{cells}, {quoted}]\n'


@pytest.fixture
def graph(monkeypatch):
    """A small graph in the place of Cora, and no poisoned one."""
    task = replace(synthetic(nodes=80, labels_per_class=5, val=8, seed=1), name="cora")
    monkeypatch.setitem(g3nn.graph.datasets.ALL_DATASETS.own, "cora", lambda: task)
    monkeypatch.delenv("G3NN_ATTACKED", raising=False)
    executors.task_of.cache_clear()
    yield task
    executors.task_of.cache_clear()


@pytest.fixture
def tiny(tmp_path) -> Suite:
    file = tmp_path / "tiny.toml"
    file.write_text(TINY, encoding="utf-8")
    return load_suite(str(file), to_run=True)


@pytest.fixture(scope="module")
def noise() -> Suite:
    return load_suite("noise", to_run=True)


def test_every_model_is_in_every_place(noise):
    places = {(cell.dataset, cell.setting) for cell in noise.cells}
    settings = {name: {setting for dataset, setting in places if dataset == name} for name in ("cora", "citeseer")}
    assert settings["cora"] == settings["citeseer"] == {"standard", *EDGE_NOISE, *METATTACK}
    assert {place for place in places if place[0] == "polblogs"} == {
        ("polblogs", f"metattack-{percent}") for percent in (0, 10, 25)
    }
    assert all(setting in settings_of(dataset) for dataset, setting in places)
    for place in places:
        cells = [cell for cell in noise.cells if (cell.dataset, cell.setting) == place and not cell.quoted]
        assert [cell.model for cell in cells] == MODELS, place


def test_the_published_numbers(noise):
    numbers = {
        (cell.model, cell.dataset, METATTACK[cell.setting]): cell.published for cell in noise.cells if cell.published
    }
    steps = (0, 5, 10, 15, 20, 25)
    assert [numbers.pop(("gcn", "cora", step)) for step in steps] == [0.835, 0.766, 0.704, 0.651, 0.596, 0.475]
    assert [numbers.pop(("pro-gnn", "cora", step)) for step in steps] == [0.830, 0.823, 0.790, 0.764, 0.733, 0.697]
    assert numbers == {("gcn", "citeseer", 25): 0.569, ("pro-gnn", "citeseer", 25): 0.690}
    assert {cell.model for cell in noise.cells if cell.quoted} == {"pro-gnn"}


def test_the_estimator_gets_its_own_parameters_alone(noise):
    points = [point for entry in noise.entries({"model": ESTIMATOR}) for point in noise.points(entry)]
    assert [point.options for point in points] == [{}] * 33
    assert noise.protocol.trials == 10


def test_a_parameter_that_the_estimator_does_not_have_is_refused(tmp_path):
    for options, argument in ((' denoize = "x"', "denoize"), (" device = 'cpu'", "device"), (" hidden = 3", "")):
        file = tmp_path / "own.toml"
        file.write_text(TINY.replace('few = [{ model = "gcn"', f"few = [{{{options}"), encoding="utf-8")
        if not argument:
            load_suite(str(file), to_run=True)
            continue
        with pytest.raises(InputError, match=argument):
            load_suite(str(file), to_run=True)


def test_a_dataset_without_the_setting_is_refused(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(TINY.replace('model = "gat", dataset = "cora"', 'model = "gat", dataset = "pubmed"'), "utf-8")
    with pytest.raises(InputError, match="pubmed metattack-25; expected a setting that the dataset has"):
        load_suite(str(file), to_run=True)


def test_seeds_share_a_stack_only_where_they_share_the_graph(graph, tiny, store):
    jobs = schedule(tiny, store, None, 32).jobs
    stacks = {(job.stage, job.first.setting, job.first.model): [] for job in jobs}
    for job in jobs:
        stacks[job.stage, job.first.setting, job.first.model].append(job.seeds)
    assert stacks["trial", "standard", "gcn"] == [(0, 1)]
    assert stacks["trial", "dice-25", "gcn"] == [(0,), (1,)]
    assert stacks["trial", "standard", "g3nn"] == [(0,), (1,)]
    assert all(len(set(job.seeds)) == 1 for job in jobs if job.first.setting in NOISE)
    one, other = (executors.task_for(job) for job in jobs if (job.first.setting, job.first.model) == ("dice-25", "gcn"))
    assert not np.array_equal(one.edges, other.edges)
    assert np.array_equal(other.edges, load("cora", "dice-25", seed=1).edges)
    assert {"pro-gnn"} & {job.first.model for job in jobs} == set()


@pytest.mark.slow
def test_the_estimator_is_a_record_like_others(graph):
    point = Point("cora", "random-50", ESTIMATOR, "elbo", QUICK)
    noisy = load_noisy("cora", "random-50", 3)
    (record,) = run_job(Job("trial", (point,), (3,)), "cpu", noisy.task)
    assert (record.status, record.error, record.seed) == ("stopped", "", 3)
    known = np.full(80, -1)
    known[noisy.task.train], known[noisy.task.val] = (noisy.task.labels[part] for part in (graph.train, graph.val))
    fitted = g3nn.G3NNClassifier(**QUICK, random_state=3, device="cpu")
    fitted.fit(graph.features, known, noisy.task.edges, val=graph.val)
    assert record.test_accuracy == (fitted.predict() == graph.labels)[graph.test].mean()
    assert record.val_accuracy == (fitted.predict() == graph.labels)[graph.val].mean()
    (select,) = run_job(Job("select", (point,), (3,)), "cpu", noisy.task)
    assert (select.val_loss, select.test_accuracy, select.evidence) == (record.val_loss, None, None)

    def auc(likely: np.ndarray) -> float:
        """The share of pairs, an injected edge and another one, of which the injected one is the less likely."""
        one, other = likely[noisy.injected][:, None], likely[~noisy.injected]
        return float(((one < other) + 0.5 * (one == other)).mean())

    expected = {
        AUDIT_AUC: fitted.edge_proba(noisy.task.edges),
        COSINE_AUC: cosine_similarity(graph.features, noisy.task.edges),
    }
    areas = {name: auc(likely) for name, likely in expected.items()}
    genuine, gap = fitted.edge_proba(noisy.task.edges, density="genuine"), 0.0
    for low in np.arange(15) / 15:
        inside = (genuine >= low) & (genuine < low + 1 / 15)
        gap += abs(genuine[inside].sum() - (~noisy.injected)[inside].sum()) / len(genuine)
    assert record.evidence.figures == pytest.approx({**areas, AUDIT_ECE: gap})


def test_no_figure_where_nothing_was_injected(graph):
    for setting in ("standard", "removed-50"):
        point = Point("cora", setting, ESTIMATOR, "elbo", QUICK)
        (record,) = run_job(Job("trial", (point,), (0,)), "cpu", load("cora", setting))
        assert record.evidence.figures == {}


def test_the_estimator_sees_no_test_label(graph):
    labels = graph.labels.copy()
    labels[graph.test] = (labels[graph.test] + 1) % graph.num_classes
    point = Point("cora", "standard", ESTIMATOR, "elbo", QUICK)
    told, lied = (
        run_job(Job("trial", (point,), (0,)), "cpu", task)[0] for task in (graph, replace(graph, labels=labels))
    )
    assert told.val_loss == lied.val_loss
    assert told.test_accuracy != lied.test_accuracy


def test_a_fit_that_fails_is_a_failed_record(graph):
    point = Point("cora", "standard", ESTIMATOR, "elbo", {"effort": "none"})
    (record,) = run_job(Job("trial", (point,), (0,)), "cpu", graph)
    assert record.status == "failed"
    assert "effort" in record.error


@pytest.mark.slow
def test_from_the_trainings_to_the_page(graph, tiny, tmp_path):
    store, page = tmp_path / "runs.sqlite", tmp_path / "page.html"
    call = CliRunner().invoke
    arguments = [str(tmp_path / "tiny.toml"), "--store", str(store)]
    done = call(app, ["bench", "run", *arguments, "--device", "cpu"], catch_exceptions=False)
    assert done.exit_code == 0
    notes = re.findall("note: .*", done.output)
    advice = "Set G3NN_ATTACKED to the folder with these files and run again."
    assert notes == [f"note: 7 cells are left out: there is no cora.npz. {advice}"]
    with Store.read(store) as stored:
        comparison = compare(tiny, stored)
        assert {record.status for record in stored.records()} <= {"limit", "stopped"}
    assert all(cell.trials == 2 for cell in comparison.cells if cell.setting != "metattack-25" and not cell.quoted)
    ours = [cell for cell in comparison.cells if cell.selected]
    assert [(cell.model, cell.setting) for cell in ours] == [(ESTIMATOR, setting) for setting in SETTINGS[:3]]
    for cell in ours:
        assert list(cell.peers) == MODELS[:-1]
        assert set(cell.figures) == ({AUDIT_AUC, AUDIT_ECE, COSINE_AUC} if cell.setting in NOISE else set())
    text = render(comparison)
    assert "0.700 published" in text
    assert re.search(
        r"cora random-50: g3nn, 0\.\d+ \(NLL .*, audit AUC .*, cosine AUC .*\); p-values against gcn", text
    )
    assert "0.700 published" in render(comparison, "markdown")
    assert call(app, ["bench", "report", *arguments, "--out", str(page)], catch_exceptions=False).exit_code == 0
    html = page.read_text(encoding="utf-8")
    assert "Beside the best peer" in html
    assert "Accuracy against noise" in html
    again = call(app, ["bench", "run", *arguments, "--device", "cpu", "--json"], catch_exceptions=False)
    assert json.loads(again.stdout)["trainings"] == 0


def test_accuracy_against_the_amount_of_noise(tiny, store, make_record):
    for entry in tiny.entries({"model": "gcn,g3nn"}):
        for seed in range(2):
            (point,) = tiny.points(entry)
            accuracy = 0.9 - 0.1 * SETTINGS.index(entry.cell.setting) + 0.02 * seed
            store.append([make_record(point, "trial", seed, test_accuracy=accuracy)])
    panels = {panel["title"]: panel["lines"] for panel in views.rates(compare(tiny, store).cells)}
    assert list(panels) == ["Random on Cora", "Dice on Cora", "Metattack on Cora"]
    gcn, ours, quoted = panels["Random on Cora"]
    assert [line["label"] for line in (gcn, ours, quoted)] == ["gcn", "g3nn", "pro-gnn (published)"]
    assert [line["ours"] for line in (gcn, ours, quoted)] == [False, True, False]
    assert (gcn["rates"], gcn["means"]) == ([0, 50], pytest.approx([0.91, 0.81]))
    assert (quoted["means"], quoted["stds"]) == ([0.7, 0.7], [None, None])
    assert views.rates([cell for cell in compare(tiny, store).cells if cell.setting == "standard"]) == []
