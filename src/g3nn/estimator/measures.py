"""How good answers are that are no classes: real values, counts and tags. Unknown values are NaN and do not count."""

from __future__ import annotations

from typing import Any

import numpy as np

COVERAGE_LEVEL = 0.9


def number_measures(
    values: np.ndarray, mean: np.ndarray, log_prob: np.ndarray, low: np.ndarray, high: np.ndarray
) -> dict[str, float]:
    """Of one column: rmse, mae, r2, log_prob, coverage. All arrays are (n,).

    r2 is NaN where values do not differ, and everything is where none is known.
    """
    known = ~np.isnan(values)
    if not known.any():
        return dict.fromkeys(("rmse", "mae", "r2", "log_prob", "coverage"), float("nan"))
    missed, spread = (values - mean)[known], values[known] - values[known].mean()
    total = float((spread**2).sum())
    return {
        "rmse": float(np.sqrt((missed**2).mean())),
        "mae": float(np.abs(missed).mean()),
        "r2": 1 - float((missed**2).sum()) / total if total > 0 else float("nan"),
        "log_prob": float(log_prob[known].mean()),
        "coverage": float(((low <= values) & (values <= high))[known].mean()),
    }


def tag_table(values: np.ndarray, probabilities: np.ndarray) -> list[dict[str, Any]]:
    """For each tag: nodes (of which it is known), share, precision, recall and f1 at a threshold of one half.

    values, probabilities: (n, T). A ratio without a denominator is None: nobody has the tag, or nobody was given it.
    """
    known = ~np.isnan(values)
    has, given = (values > 0.5) & known, (probabilities > 0.5) & known
    rows = []
    for t in range(values.shape[1]):
        hits, true, told = (int(part[:, t].sum()) for part in (has & given, has, given))
        nodes = int(known[:, t].sum())
        rows.append(
            {
                "nodes": nodes,
                "share": _ratio(true, nodes),
                "precision": _ratio(hits, told),
                "recall": _ratio(hits, true),
                "f1": _ratio(2 * hits, true + told),
            }
        )
    return rows


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def tag_measures(values: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
    """accuracy (share of known tags that are right), nll and brier (means over known tags), f1_micro, f1_macro.

    f1_macro is the mean over tags that somebody has or was given.
    """
    known = ~np.isnan(values)
    has, given = (values > 0.5) & known, (probabilities > 0.5) & known
    p = np.where(values > 0.5, probabilities, 1 - probabilities)[known]
    marked = int(has.sum() + given.sum())
    each = [row["f1"] for row in tag_table(values, probabilities) if row["f1"] is not None]
    return {
        "accuracy": float((has == given)[known].mean()),
        "nll": float(-np.log(np.maximum(p, np.finfo(np.float64).tiny)).mean()),
        "brier": float(((1 - p) ** 2).mean()),
        "f1_micro": 2 * int((has & given).sum()) / marked if marked else 1.0,
        "f1_macro": float(np.mean(each)) if each else 1.0,
    }
