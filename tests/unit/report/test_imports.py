"""What the page of a suite must not wait for."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch", "torch_geometric", "numba", "sklearn")


def test_a_page_of_stored_results_needs_no_heavy_package():
    code = f"import sys, g3nn.studies.suite_page; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
