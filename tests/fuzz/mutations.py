"""Small damages to a file: what a disk, a network, an editor or somebody hostile does to it."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable, Sequence

TELLING = (
    b"", b"\0", b'"', b"'", b",", b"\n", b"\r", b"\xff\xfe", b"\xef\xbb\xbf", b"nan", b"-inf", b"1e309", b"-1", b"0",
    b"9223372036854775808", b"18446744073709551615", b"\xed\xa0\x80", b"null", b"true", b"[]", b"{}", b"\x80\x04",
    b"..", b"/etc/passwd", b"=1+1", b"PK\x03\x04", b"SQLite format 3\0", b"\x7f" * 8, b"\xff" * 8, b"[" * 500,
)  # fmt: skip
"""Pieces that mean something to some reader."""


def damaged(content: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """The content after one to four damages. others: contents from which a piece may be taken."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        content = chance.choice(_DAMAGES)(content, others, chance)
    return content


def _place(content: bytes, chance: random.Random) -> int:
    return chance.randrange(len(content) + 1)


def _flip(content: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    if not content:
        return content
    place = chance.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << chance.randrange(8))]) + content[place + 1 :]


def _overwrite(content: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    place, length = _place(content, chance), chance.choice((1, 2, 4, 8))
    return content[:place] + chance.randbytes(length) + content[place + length :]


def _insert(content: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    place = _place(content, chance)
    return content[:place] + chance.choice(TELLING) + content[place:]


def _replace(content: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    place, piece = _place(content, chance), chance.choice(TELLING)
    return content[:place] + piece + content[place + len(piece) :]


def _remove(content: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    place = _place(content, chance)
    return content[:place] + content[place + chance.randrange(1, 40) :]


def _cut(content: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    return content[: _place(content, chance)]


def _repeat(content: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    place = _place(content, chance)
    piece = content[place : place + chance.randrange(1, 60)]
    return content[:place] + piece * chance.choice((2, 3, 50)) + content[place + len(piece) :]


def _splice(content: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    other = chance.choice(others) if others else content
    start = _place(other, chance)
    return content[: _place(content, chance)] + other[start:]


_DAMAGES: tuple[Callable[[bytes, Sequence[bytes], random.Random], bytes], ...] = (
    _flip, _flip, _overwrite, _insert, _insert, _replace, _remove, _cut, _repeat, _splice,
)  # fmt: skip


def packed(members: dict[str, bytes]) -> bytes:
    """Several files as one, so that all inputs are bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


def unpacked(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def damaged_member(content: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """One of several files damaged inside; what is packed around it stays whole."""
    members = unpacked(content)
    name = chance.choice(sorted(members))
    pieces = [unpacked(other).get(name, b"") for other in others]
    return packed({**members, name: damaged(members[name], pieces, chance)})
