"""From the columns of a node table to a matrix of features, in the same way for every later table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from g3nn.data.planetoid import row_normalised
from g3nn.data.tables.checks import Findings
from g3nn.data.tables.columns import BOOLEAN, CATEGORICAL, LARGEST, NUMERIC, floats, listed
from g3nn.data.tables.reading import NodeTable
from g3nn.data.tables.schema_columns import (
    Boolean,
    Category,
    Column,
    Count,
    Number,
    Remarks,
    Text,
    fit_category,
    fit_text,
)
from g3nn.errors import DataError, G3NNWarning, Problems
from g3nn.parse import Matrix

FORMAT, VERSION = "g3nn feature schema", 1

FEWEST_COUNTS = 50
LEAST_ZEROS, LEAST_ZEROS_IN_ALL = 0.25, 0.8
"""Share of zeros in each column of word counts, and in all of them together."""

_KINDS: dict[str, type[Column]] = {one.kind: one for one in (Number, Count, Boolean, Category, Text)}


@dataclass(frozen=True)
class FeatureSchema:
    """What was learned about the columns of a table.

    - Numbers are standardised: (x - mean) / standard deviation, over the known values. A missing one stays NaN.
    - Word counts are kept sparse. A column is taken for one if it is never negative or missing and zero in at least a
      quarter of the rows, provided that there are at least 50 such columns and that four fifths of all their values
      are zero. They are not standardised; instead, the counts of each row are divided by their sum.
    - Booleans are 0 or 1. Missing: NaN.
    - Categories are one-hot: the 100 most frequent ones that are in at least two rows. The others share one feature,
      and so does a category never seen before; where there are no others it is all 0. Missing: all 0.
    - Text gives TF-IDF of the 2,000 most frequent words that are in at least two rows. Missing: all 0.

    Word counts come first in the matrix, then the other columns in the order of the table.
    """

    columns: tuple[Column, ...]

    @classmethod
    def fit(cls, nodes: NodeTable, *, missing: str = "impute") -> FeatureSchema:
        """Learn from a table. Raises one error for all columns that are constant, without values, infinite, ...

        missing: "error" if missing numbers and booleans are an error too, else "impute".
        """
        findings, problems = Findings(), Problems()
        facts = {
            name: _Facts.of(floats(nodes.features[name])) for name, kind in nodes.kinds.items() if _is_number(kind)
        }
        counts = _counts(nodes, facts)
        others: list[Column] = []
        for name, kind in nodes.kinds.items():
            column = nodes.features[name].combine_chunks()
            if name in facts and name not in counts:
                facts[name].judge(name, findings)
                others.append(Boolean(name) if kind == BOOLEAN else Number(name, facts[name].mean, facts[name].scale))
            elif kind == CATEGORICAL:
                others.append(fit_category(name, column, findings))
            elif name not in counts:
                others.append(fit_text(name, column, findings))
        findings.report(nodes.name, missing, problems)
        problems.raise_if_any()
        return cls((*map(Count, counts), *others))

    @property
    def feature_names(self) -> list[str]:
        return [feature for column in self.columns for feature in column.features]

    @property
    def sparse(self) -> bool:
        """Whether most features come from counts, categories and words, and the matrix is stored sparse."""
        mostly_zero = sum(len(column.features) for column in self.columns if column.sparse)
        return 2 * mostly_zero > len(self.feature_names)

    def names(self, kind: str) -> list[str]:
        """The columns that are to be read as this kind."""
        return [column.name for column in self.columns if column.read_as == kind]

    def encode(self, nodes: NodeTable, *, missing: str = "impute", quiet: bool = False) -> Matrix:
        """(n, d) float32, a scipy CSR array or a dense array; NaN where a number or boolean is missing.

        Raises one error that names every column that is missing, too many, of another kind, or cannot be encoded.
        missing: as in `fit`. Values that the fit did not see are counted in a warning, unless `quiet`.
        """
        problems, remarks = Problems(), Remarks()
        self.check_columns(nodes, problems)
        problems.raise_if_any()
        table = {name: nodes.features[name].combine_chunks() for name in nodes.features.column_names}
        counts = [column.values(table[column.name], remarks) for column in self.columns if isinstance(column, Count)]
        blocks = [_shares(counts)] if counts else []
        for column in self.columns:
            if not isinstance(column, Count):
                blocks.append(column.encode(table[column.name], remarks))
        for name, found in remarks.refused.items():
            problems.add(f"{nodes.name}, column {name!r}", found, "values like those of the fit")
        Findings(incomplete=remarks.incomplete).report(nodes.name, missing, problems)
        problems.raise_if_any()
        if remarks.unseen and not quiet:
            told = "; ".join(f"column {name!r}: {found}" for name, found in remarks.unseen.items())
            words = "categories that were rare or not there at the time of the fit"
            warnings.warn(f"{nodes.name}: {words}: {told}", G3NNWarning, stacklevel=2)
        if self.sparse:
            return sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks], format="csr"))
        return np.hstack([block.toarray() if sp.issparse(block) else block for block in blocks])

    def check_columns(self, nodes: NodeTable, problems: Problems) -> None:
        """Record which columns are missing, too many or of another kind."""
        allowed = "the columns that the model was fitted with"
        expected = {column.name: column.read_as for column in self.columns}
        absent = [name for name in expected if name not in nodes.kinds]
        extra = [name for name in nodes.kinds if name not in expected]
        wrong = [
            f"{name!r} ({_found_kind(nodes, name)} instead of {kind})"
            for name, kind in expected.items()
            if name in nodes.kinds and _found_kind(nodes, name) not in (kind, "empty")
        ]
        if absent:
            problems.add(nodes.name, f"no column {listed(absent)}", allowed)
        if extra:
            problems.add(nodes.name, f"new columns {listed(extra)}", allowed, "Take them out.")
        if wrong:
            shown = ", ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
            problems.add(nodes.name, f"columns of another kind: {shown}", allowed)

    def to_json(self) -> dict[str, Any]:
        columns = [{"kind": column.kind, **asdict(column, dict_factory=_plain)} for column in self.columns]
        return {"format": FORMAT, "version": VERSION, "columns": columns}

    @classmethod
    def from_json(cls, content: Any) -> FeatureSchema:
        """What `to_json` gave; raises where it is something else."""
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise DataError("not a feature schema of g3nn.")
        version = content.get("version")
        if isinstance(version, int) and version > VERSION:
            raise DataError(
                f"a feature schema of version {version}; this g3nn reads up to {VERSION}. Install a newer one."
            )
        columns = content.get("columns")
        if version != VERSION or set(content) != {"format", "version", "columns"} or not isinstance(columns, list):
            raise DataError("a damaged feature schema.")
        read = tuple(_column(position, one) for position, one in enumerate(columns))
        if not read or len({column.name for column in read}) < len(read):
            raise DataError("a damaged feature schema: its columns are none or double.")
        return cls(read)


@dataclass(frozen=True)
class _Facts:
    """About one column of numbers or booleans."""

    known: int
    missing: int
    low: float
    high: float
    zeros: float
    mean: float
    scale: float

    @classmethod
    def of(cls, values: np.ndarray) -> _Facts:
        known = values[~np.isnan(values)]
        missing = values.size - known.size
        if known.size == 0:
            return cls(0, missing, 0.0, 0.0, 0.0, 0.0, 1.0)
        low, high = float(known.min()), float(known.max())
        if max(-low, high) > LARGEST:
            return cls(known.size, missing, low, high, 0.0, 0.0, 1.0)
        scale = float(known.std())
        zeros = float((known == 0).mean())
        return cls(known.size, missing, low, high, zeros, float(known.mean()), scale if scale > 0 else 1.0)

    def judge(self, name: str, findings: Findings) -> None:
        if self.known == 0:
            findings.empty.append(name)
            return
        if max(-self.low, self.high) > LARGEST:
            findings.infinite.append(name)
        elif self.low == self.high:
            findings.constant.append(name)
        if self.missing:
            findings.incomplete.append(name)


def _is_number(kind: str) -> bool:
    return kind in (NUMERIC, BOOLEAN)


def _counts(nodes: NodeTable, facts: Mapping[str, _Facts]) -> list[str]:
    """The columns of word counts, by the rule that `FeatureSchema` states."""
    able = [
        name
        for name, fact in facts.items()
        if nodes.kinds[name] == NUMERIC and fact.missing == 0 and fact.low >= 0 and fact.zeros >= LEAST_ZEROS
    ]
    enough = len(able) >= FEWEST_COUNTS and np.mean([facts[name].zeros for name in able]) >= LEAST_ZEROS_IN_ALL
    return able if enough else []


def _shares(counts: Sequence[np.ndarray]) -> sp.csr_array:
    """(n, d): each row divided by its sum. A missing count stays NaN and is left out of the sum."""
    rows = [np.flatnonzero(column) for column in counts]
    data = np.concatenate([column[row] for column, row in zip(counts, rows, strict=True)])
    ends = np.cumsum([0, *(row.size for row in rows)])
    matrix = sp.csc_array((np.nan_to_num(data), np.concatenate(rows), ends), shape=(counts[0].size, len(counts)))
    shares = row_normalised(sp.csr_array(matrix))
    if np.isnan(data).any():
        gaps = sp.csc_array((np.where(np.isnan(data), np.nan, 0.0), matrix.indices, ends), shape=matrix.shape)
        shares.data += sp.csr_array(gaps).data.astype(np.float32)
    return shares


def _found_kind(nodes: NodeTable, name: str) -> str:
    column = nodes.features[name]
    return "empty" if column.null_count == len(column) else nodes.kinds[name]


def _plain(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """As JSON has it, which knows lists only."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in pairs}


def _column(position: int, content: Any) -> Column:
    """One column from JSON. Nothing in it is trusted."""
    kind = content.get("kind") if isinstance(content, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise DataError(f"a damaged feature schema: column {position} is of no known kind.")
    made: Any = _KINDS[kind]
    values: dict[str, Any] = {key: value for key, value in content.items() if key != "kind"}
    good = set(values) == {field.name for field in fields(made)} and all(
        _valid(key, value) for key, value in values.items()
    )
    if not good or len(values.get("words", ())) != len(values.get("weights", ())):
        raise DataError(f"a damaged feature schema: column {position} is not as it was written.")
    column: Column = made(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})
    return column


def _valid(key: str, value: Any) -> bool:
    if key in ("categories", "words"):
        return isinstance(value, list) and all(isinstance(one, str) for one in value) and len(set(value)) == len(value)
    if key == "weights":
        return isinstance(value, list) and all(_finite(one) for one in value)
    if key in ("mean", "scale"):
        return _finite(value) and (key == "mean" or value > 0)
    return isinstance(value, bool if key == "other" else str)


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST
