from __future__ import annotations

import json
import math
import os
import re
from importlib.resources import files
from types import MappingProxyType

import pytest

from g3nn.base.errors import DataError, InputError
from g3nn.pages import assets

SOURCES = sorted(
    path.name for path in (files("g3nn.pages") / "templates").iterdir() if path.name.endswith((".js", ".css"))
)


@pytest.fixture
def bare(monkeypatch):
    """The frame of a page around some data, without the library."""
    monkeypatch.setattr(assets, "_chart_library", lambda: "")

    def render(data):
        return assets.render("base.html.j2", styles=[], scripts=[], data=data)

    return render


def test_numbers_as_text():
    for value, plain, with_sign in [
        (0.8296, "0.830", "+0.830"),
        (-0.0126, "−0.013", "−0.013"),
        (0.0004, "0.000", "0.000"),
        (-0.0004, "−0.000", "0.000"),
        (None, "–", "–"),
    ]:
        assert (assets.number(value), assets.signed(value)) == (plain, with_sign)


def test_counts():
    assert [assets.count(number, "trial") for number in (0, 1, 2000)] == ["0 trials", "1 trial", "2,000 trials"]
    assert [assets.count(number, "class", "classes") for number in (1, 2)] == ["1 class", "2 classes"]


def test_a_style_or_script_can_stand_inside_its_tag():
    for name in SOURCES:
        source = (files("g3nn.pages") / "templates" / name).read_text(encoding="utf-8")
        assert "</script" not in source
        assert "</style" not in source
        assert "<!--" not in source


def test_data_cannot_end_its_tag(bare):
    wild = {"text": "</script><script>alert(1)</script><!-- é \u2028 & '"}
    page = bare(wild)
    (embedded,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert "<" not in embedded
    assert json.loads(embedded) == wild


def test_data_has_few_digits_and_only_numbers_that_a_browser_reads():
    for value, expected in [
        (0.12345678, 0.12346),
        (2.0, 2),
        (float("nan"), None),
        ({"low": (1.5, None, -math.inf)}, {"low": [1.5, None, None]}),
        (MappingProxyType({"hidden": 16, "flag": True}), {"hidden": 16, "flag": True}),
    ]:
        assert repr(assets.plain(value)) == repr(expected)


def test_writing_replaces_the_page(tmp_path):
    path = tmp_path / "page.html"
    for text in ("first", "second ±"):
        assets.write(path, text)
        assert path.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_that_cannot_be_put_in_place_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old", encoding="utf-8")

    def refuse(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(DataError, match="No space left"):
        assets.write(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_where_no_page_can_be(tmp_path):
    with pytest.raises(InputError, match="a folder that exists"):
        assets.check_target(tmp_path / "nowhere" / "page.html")
    with pytest.raises(InputError, match="not a folder"):
        assets.check_target(tmp_path)
