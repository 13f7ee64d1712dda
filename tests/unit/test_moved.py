"""Packages that extend g3nn import modules under the names of version 0.2."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import g3nn
from g3nn.base.moved import MOVED


@pytest.mark.parametrize("old", MOVED)
def test_an_old_name_gives_the_module_itself(old, monkeypatch):
    monkeypatch.delitem(sys.modules, f"g3nn.{old}", raising=False)
    new = import_module(f"g3nn.{MOVED[old]}")
    with pytest.warns(DeprecationWarning, match=f"g3nn.{old} is now g3nn.{MOVED[old]}"):
        assert import_module(f"g3nn.{old}") is new
    assert new.__spec__ is not None
    assert new.__spec__.name == f"g3nn.{MOVED[old]}"


@pytest.mark.slow
def test_so_do_modules_in_an_old_package_and_attributes():
    code = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
import g3nn
from g3nn.likelihoods.sbm import PlantedPartition
from g3nn.model.likelihoods.sbm import PlantedPartition as Same
assert PlantedPartition is Same
assert g3nn.errors.G3NNWarning is g3nn.G3NNWarning
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_other_names_do_not_exist():
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        import_module("g3nn.nowhere")
    with pytest.raises(AttributeError, match="nowhere"):
        g3nn.nowhere  # noqa: B018
