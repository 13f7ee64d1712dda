"""Files of records, a JSON list with one record in each line, which a benchmark goes on from where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from g3nn.base.errors import Problems
from g3nn.base.folders import replacing

Record = dict[str, Any]


def read_records(path: Path, argument: str, check: Callable[[Record], Any], problems: Problems) -> list[Record]:
    """The records of a file; a file with anything else is a problem. check: raises where a record lacks something."""
    advice = "Repair it, or name another file; it was left as it is."
    try:
        records = json.loads(path.read_text())
        if not isinstance(records, list):
            raise TypeError("no list")
        for record in records:
            check(record)
    except (OSError, ValueError, KeyError, TypeError) as error:
        problems.add(argument, f"{path} ({type(error).__name__}: {error})", "a file of records", advice)
        return []
    return records


def records_to_extend(path: Path | None, check: Callable[[Record], Any], problems: Problems) -> list[Record]:
    """Those of the file that `--out` names, none if there is no such file yet."""
    if path is None:
        problems.add("--out", "nothing", "a file for the records")
    elif path.exists():
        return read_records(path, "--out", check, problems)
    elif not path.absolute().parent.is_dir():
        problems.add("--out", path, "a file in a folder that exists")
    return []


def stored(path: Path, argument: str, check: Callable[[Record], Any]) -> list[Record]:
    problems = Problems()
    records = read_records(path, argument, check, problems)
    problems.raise_if_any()
    return records


def write_records(path: Path, records: Sequence[Record]) -> None:
    """Whatever happens, the file holds all records of before or all of now."""
    with replacing(path) as draft:
        draft.write_text("[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n")


def tell(row: Record, out: Path | None) -> None:
    """Print a record, and add it to a file of JSON lines if there is one."""
    line = json.dumps(row)
    print(line, flush=True)
    if out is not None:
        with out.open("a") as file:
            file.write(line + "\n")
