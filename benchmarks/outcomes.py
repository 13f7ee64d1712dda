"""Real values and counts on synthetic graphs: a generative model compared with its network trained by itself.

    python benchmarks/outcomes.py --graphs 5 --out results/outcomes.json

5,000 nodes, 5 % labelled; labels of neighbours are more alike than features explain (`g3nn.synthetic_values`). For real
values it reports RMSE and the share of test values inside conformal 90 % intervals. For counts it reports the mean
log-probability of a test count, and adds a third model: the same network trained by the likelihood of a plain Poisson.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import poisson
from torch import Tensor

import g3nn
from g3nn.graph.outcomes.counts import Counts
from g3nn.model.generative import ModelSpec
from g3nn.model.inputs import Inputs
from g3nn.model.objective import Objective
from g3nn.model.replicas import Replicas, Sizes
from g3nn.training import Stack, TrainingOptions

LEVEL = 0.9
MODELS: dict[str, dict[str, Any]] = {"gcn": {}, "near-gcn": {"refine": True}}
PLAIN = "gcn, plain Poisson"
Row = dict[str, Any]


def measure(outcome: str, seed: int, device: str, **size: Any) -> list[Row]:
    """Both models on one graph. The graph term weights edges and nodes equally, as the bound does."""
    task = g3nn.synthetic_values(outcome, seed=seed, **size)
    rows = []
    for model, options in MODELS.items():
        weight = {"graph_weight": task.num_edges / len(task.unlabelled)} if options else {}
        result = g3nn.fit(task, model, seed=seed, device=device, **options, **weight)
        row = {"outcome": outcome, "seed": seed, "model": model, "test_log_prob": float(result.test_log_prob[0])}
        row |= real_figures(task, result) if outcome == "real" else count_figures(task, result)
        row["epochs"] = int(result.epochs[0])
        rows.append(row)
    if outcome == "counts":
        rows.append({"outcome": outcome, "seed": seed, "model": PLAIN, **plain_figures(task, seed, device)})
    for row in rows:
        print(row, file=sys.stderr, flush=True)
    return rows


def real_figures(task: g3nn.NodeTask, result: g3nn.FitResult) -> Row:
    outcome, answer, labels = result.outcome, result.answers[0].double().numpy(), task.labels[task.test]
    scores = outcome.conformal_scores(answer[task.val], task.labels[task.val])
    low, high = np.moveaxis(outcome.conformal(answer[task.test], scores, 1 - LEVEL), 2, 0)
    return {
        "rmse": float(np.sqrt(np.mean((result.predictions[0][task.test] - labels) ** 2))),
        "coverage": float(np.mean((low <= labels) & (labels <= high))),
    }


def count_figures(task: g3nn.NodeTask, result: g3nn.FitResult) -> Row:
    plain = poisson.logpmf(task.labels[task.test], result.predictions[0][task.test]).mean()
    return {"plain_poisson_log_prob": float(plain), "deviance_explained": float(result.test_score[0])}


class PlainPoisson(Counts):
    """y_it ~ Poisson(exp h_it), where h_it is the output of the network: a rate without uncertainty."""

    def answer(self, scores: Tensor, start: Tensor | None) -> Tensor:
        assert start is not None
        return scores + start.unsqueeze(1)[:, :, : self.columns]

    def log_prob(self, answer: Tensor, values: Tensor) -> Tensor:
        return values * answer - answer.exp() - (values + 1).lgamma()

    def mean(self, answer: Tensor) -> Tensor:
        return answer.exp()


def plain_figures(task: g3nn.NodeTask, seed: int, device: str) -> Row:
    """The network with the plain likelihood, otherwise trained and stopped as `g3nn.fit` does by default."""
    place = "cuda" if device == "auto" and torch.cuda.is_available() else device.replace("auto", "cpu")
    outcome = PlainPoisson.of(task.labels[task.train], task.num_classes)
    inputs, replicas = Inputs.of(task, place, outcome=outcome), Replicas((seed,))
    sizes = Sizes(task.num_features, task.num_classes, kind=outcome, nodes=task.num_nodes)
    stack = Stack(ModelSpec("gcn").build(sizes, replicas, {}), Objective(), inputs, replicas, TrainingOptions())
    while not stack.finished:
        stack.step()
    ended = stack.end()
    with torch.no_grad():
        answer = stack.model.predict_log_prob(inputs)
        score = outcome.validation(answer, inputs.targets, torch.from_numpy(task.test).to(place))[1]
        rates = outcome.mean(answer)[0].double().cpu().numpy()
    found = poisson.logpmf(task.labels[task.test], rates[task.test]).mean()
    figures = {"test_log_prob": float(found), "deviance_explained": float(score[0])}
    return figures | {"epochs": int(ended["epochs"][0])}


def table(rows: list[Row]) -> str:
    """Means over the graphs."""

    def mean(outcome: str, model: str, key: str) -> float:
        return float(np.mean([row[key] for row in rows if (row["outcome"], row["model"]) == (outcome, model)]))

    alone, joint = MODELS
    kinds = {row["outcome"] for row in rows}
    lines = [f"{len({row['seed'] for row in rows})} graphs; {alone} alone against {joint}"]
    if "real" in kinds:
        rmse = [mean("real", model, "rmse") for model in MODELS]
        cover = [mean("real", model, "coverage") for model in MODELS]
        lines.append(f"real values: RMSE {rmse[0]:.3f} and {rmse[1]:.3f}, {100 * (1 - rmse[1] / rmse[0]):.1f} % lower")
        lines.append(f"90 % intervals: {100 * cover[0]:.1f} % and {100 * cover[1]:.1f} % of test values inside")
    if "counts" in kinds:
        found = [mean("counts", model, "test_log_prob") for model in MODELS]
        plain = mean("counts", PLAIN, "test_log_prob")
        lines.append(f"counts: log-probability {found[0]:.4f} and {found[1]:.4f}; {PLAIN} {plain:.4f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the records to this file")
    parser.add_argument("--table", type=Path, help="print stored records")
    parser.add_argument("--graphs", type=int, default=5, help="number of graphs, with seeds 0, 1, ...")
    parser.add_argument("--outcomes", nargs="+", default=["real", "counts"])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(arguments.table.read_text())))
        return
    rows: list[Row] = []
    for seed in range(arguments.graphs):
        for outcome in arguments.outcomes:
            rows += measure(outcome, seed, arguments.device, nodes=arguments.nodes)
            if arguments.out:
                arguments.out.write_text(json.dumps(rows, indent=1))
    print(table(rows))


if __name__ == "__main__":
    main()
