"""Writes requirements.lock: the pins of constraints.txt with the hash of every file of theirs on the package index.

    python tools/lock.py

It holds for Linux and macOS, x86-64 and arm64, Python 3.11.5 to 3.13. torch is left out, with what only its CUDA builds
need: which build is right depends on the machine, and each has a hash of its own.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
LEFT_OUT = {"torch"}
HEADER = """# constraints.txt with hashes, without torch. Written by: python tools/lock.py
# After torch is there: pip install --require-hashes --no-deps -r requirements.lock
"""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    """The version of each package, by its normal name."""
    return {normal(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", text, re.M)}


def entries(text: str) -> dict[str, str]:
    """The lines of each package of a lock, by its normal name."""
    parts = re.split(r"^(?=[\w.-]+(?:\[[\w,-]+\])?==)", text, flags=re.M)[1:]
    return {normal(re.split(r"[\[=]", part)[0]): part for part in parts}


def compiled() -> str:
    """What uv finds. The environments of pyproject.toml, which it repeats on every line, are left out."""
    given = ["--universal", "--generate-hashes", "--all-extras", "--no-annotate", "--no-header", "--no-strip-extras"]
    words = ["uv", "pip", "compile", *given, "--python-version", "3.11.5", "-c", "constraints.txt", "pyproject.toml"]
    found = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    parts = [f"(python_full_version < '3.14' and sys_platform == '{system}')" for system in ("darwin", "linux")]
    return found.replace(f" ; {' or '.join(parts)}", "")


def main() -> None:
    wanted = pins((ROOT / "constraints.txt").read_text()).keys() - LEFT_OUT
    found = entries(compiled())
    LOCK.write_text(HEADER + "".join(found[name] for name in sorted(wanted & found.keys())))
    for name in sorted(wanted - found.keys()):
        print(f"constraints.txt: nothing needs {name}")


if __name__ == "__main__":
    main()
