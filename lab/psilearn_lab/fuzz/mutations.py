"""Random changes of files: of bytes, lines and numbers, inside archives, and of the structure of JSON and arrays."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

MAX_SIZE = 1 << 18  # bytes of a changed file
MAX_NESTED = 200  # lists and objects of a node that is nested within itself, so that Python's encoder can write it
NUMBERS = [
    *b"0 -0 -1 1e309 -1e309 1e-400 nan inf -inf NaN 0x10 1_000 1.5 127 128 255 256 65536 5e-324 100000000".split(),
    *b"2147483647 2147483648 4294967296 -2147483649 9223372036854775807 9223372036854775808 1000000000000".split(),
    *(b"-9223372036854775809", b"\xd9\xa3", b"1.7976931348623157e308", b"", b"1" + b"0" * 30, b"9" * 5000),
]
TOKENS = [
    *b"\0|\n|\r\n|\r|\t| |,|:|;|'|\"|\\|{|}|[|]|<|>|\xef\xbb\xbf|\xff\xfe|\xed\xa0\x80|\xc0|?|#|%|//|(|(((((".split(
        b"|"
    ),
    *(b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"&b;", b"\x1f\x8b", b"PK\x03\x04", b"\xe2\x80\xa8", b"null", b"true"),
    *(b"[" * 3000, b'{"a":' * 3000),
]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 7, 0.5, -0.5, 1e308, 2**31, 2**53, -(2**63), 10**9, 10**30, "", "a", "float"),
    *("\0", [], {}, [0], [1, 2], [-1, -1], [2**62, 2], [[]], "1e309", "median", "../x", ["x"] * 3, "F64", "U8"),
    *({"kind": "list", "items": []}, {"kind": "reference", "id": 0}, {"kind": "float", "value": "nan"}),
    *({"kind": "type", "name": "float"}, {"kind": "dtype", "name": "O"}, {"kind": "dtype", "name": "<f4"}),
]
DTYPES = [
    *("<f8", "<f4", ">f8", "<i8", "<i4", "|u1", "|b1", "|i1", "<c16", "<U3", "<U0", "|S2", "<M8[s]", "|V8", "|O", "<f2")
]
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*")


def mutate_bytes(content: bytes, rng: Random, tokens: Sequence[bytes] = ()) -> bytes:
    """Return a content with one or several random changes; archives are changed inside or outside."""
    if rng.random() < 0.6:
        inside = _mutate_archive(content, rng, tokens)
        if inside is not None:
            return inside
    for _ in range(1 + min(int(rng.expovariate(0.7)), 8)):
        if tokens and rng.random() < 0.15:
            content = _insert(content, rng, rng.choice(tokens))
        else:
            content = rng.choice(_CHANGES)(content, rng)
    return content[:MAX_SIZE]


def _mutate_archive(content: bytes, rng: Random, tokens: Sequence[bytes]) -> bytes | None:
    """Return a gzip or zip archive whose decompressed content is changed; None for other files."""
    try:
        if content.startswith(b"\x1f\x8b"):
            return gzip.compress(mutate_bytes(gzip.decompress(content), rng, tokens), 1, mtime=0)
        if content.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                members = {name: archive.read(name) for name in archive.namelist()}
            chosen = rng.choice(sorted(members))
            change = mutate_array if rng.random() < 0.5 else mutate_bytes
            members[chosen] = change(members[chosen], rng)
            if rng.random() < 0.1:
                members[rng.choice(sorted(members))] = members.pop(rng.choice(sorted(members)))
            stream = io.BytesIO()
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, data in members.items():
                    archive.writestr(zipfile.ZipInfo(name), data)
            return stream.getvalue()
    except (OSError, EOFError, ValueError, KeyError, NotImplementedError, zlib.error, zipfile.BadZipFile):
        pass  # a previous change has damaged it
    return None


def _slice(content: bytes, rng: Random) -> tuple[int, int]:
    start = rng.randrange(len(content) + 1)
    return start, min(len(content), start + rng.randrange(64))


def _insert(content: bytes, rng: Random, token: bytes) -> bytes:
    start = rng.randrange(len(content) + 1)
    return content[:start] + token + content[start + (len(token) if rng.random() < 0.5 else 0) :]


def _flip_bit(content: bytes, rng: Random) -> bytes:
    changed = bytearray(content or b"\0")
    for _ in range(rng.choice((1, 1, 1, 4, 16))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _set_byte(content: bytes, rng: Random) -> bytes:
    return _insert(content, rng, bytes([rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))]))


def _set_integer(content: bytes, rng: Random) -> bytes:
    size = rng.choice((2, 4, 8))
    half = 2 ** (8 * size - 1)
    value = rng.choice((0, 1, -1, half - 1, -half, 2 ** (4 * size), rng.randrange(4096)))
    token = (value % (2 * half)).to_bytes(size, rng.choice(("little", "big")))
    start = rng.randrange(len(content) + 1)
    return content[:start] + token + content[start + size :]


def _change_near_end(content: bytes, rng: Random) -> bytes:
    """Change the footer, in which binary formats store their structure."""
    start = max(0, len(content) - rng.choice((16, 256, 2048)))
    return content[:start] + rng.choice((_flip_bit, _set_byte, _set_integer))(content[start:], rng)


def _delete(content: bytes, rng: Random) -> bytes:
    start, stop = _slice(content, rng)
    return content[:start] + content[stop:]


def _duplicate(content: bytes, rng: Random) -> bytes:
    start, stop = _slice(content, rng)
    return content[:stop] + content[start:stop] * rng.choice((1, 2, 50)) + content[stop:]


def _move(content: bytes, rng: Random) -> bytes:
    start, stop = _slice(content, rng)
    return _insert(content, rng, content[start:stop])


def _truncate(content: bytes, rng: Random) -> bytes:
    n = len(content)
    return content[: rng.choice((0, 1, 4, rng.randrange(n + 1), max(0, n - rng.randrange(1, 32))))]


def _change_lines(content: bytes, rng: Random) -> bytes:
    lines = content.split(b"\n")
    i, j, action = rng.randrange(len(lines)), rng.randrange(len(lines)), rng.randrange(4)
    if action == 0:
        del lines[i]
    elif action == 1:
        lines.insert(i, lines[j])
    elif action == 2:
        lines[i], lines[j] = lines[j], lines[i]
    else:
        lines[i] = lines[i] * rng.choice((2, 3, 200))
    return b"\n".join(lines)


def _change_number(content: bytes, rng: Random) -> bytes:
    return _replace_match(_NUMBER, content, rng, rng.choice(NUMBERS))


def _change_word(content: bytes, rng: Random) -> bytes:
    words = _WORD.findall(content[:MAX_SIZE])
    return _replace_match(_WORD, content, rng, rng.choice(words)) if words else content


def _replace_match(pattern: re.Pattern[bytes], content: bytes, rng: Random, token: bytes) -> bytes:
    """Replace the first match after a random place."""
    match = pattern.search(content, rng.randrange(len(content) + 1))
    return content if match is None else content[: match.start()] + token + content[match.end() :]


def _insert_token(content: bytes, rng: Random) -> bytes:
    return _insert(content, rng, rng.choice(TOKENS))


def _repeat_byte(content: bytes, rng: Random) -> bytes:
    return _insert(content, rng, bytes([rng.randrange(256)]) * rng.choice((10, 1000, 60_000)))


_CHANGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_flip_bit, _flip_bit, _set_byte, _set_integer, _change_near_end, _change_near_end, _delete, _duplicate, _move),
    *(_truncate, _change_lines, _change_lines, _change_number, _change_number, _change_number, _change_word),
    *(_insert_token, _insert_token, _repeat_byte),
)


def mutate_json(value: Any, rng: Random) -> Any:
    """Replace, remove, exchange or nest nodes of a JSON value, in place; return it."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        places = list(_iter_places(value))
        if places:
            _change_place(rng, places)
    return value


def _iter_places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container with each of its keys."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _iter_places(value[key])


def _change_place(rng: Random, places: list[tuple[Any, Any]]) -> None:
    (container, key), (other, other_key) = rng.choice(places), rng.choice(places)
    action, copied = rng.randrange(7), json.loads(json.dumps(other[other_key]))
    number = isinstance(container[key], int | float) and not isinstance(container[key], bool)
    if action == 0:
        del container[key]
    elif action == 1:
        container[key] = copied
    elif action == 2 and isinstance(container, list):
        container.append(json.loads(json.dumps(container[key])))
    elif action == 3 and number:
        container[key] = rng.choice((-container[key], container[key] + 1, container[key] - 1, container[key] * 1000))
    elif action == 4 and isinstance(container[key], dict | list):  # the node within itself, again and again
        for _ in range(rng.choice((1, 3, 12))):
            text = json.dumps(container[key])
            if text.count("[") + text.count("{") > MAX_NESTED or len(text) > MAX_SIZE:
                break
            for parent, inside in list(_iter_places(container[key]))[-2:]:
                parent[inside] = json.loads(text)
    else:
        container[key] = json.loads(json.dumps(rng.choice(VALUES)))


def mutate_array(content: bytes, rng: Random) -> bytes:
    """Change the values, the shape or the dtype of an .npy file; return the content if it is not one."""
    action = rng.randrange(5)
    if action == 0:
        sizes = [rng.choice((0, 1, 2, 3, 7, 30, 2**20, 2**40, 2**62, -1)) for _ in range(rng.randrange(4))]
        return re.sub(rb"'shape': \([^)]*\)", f"'shape': {tuple(sizes)}".encode(), content, count=1)
    if action == 1:
        return re.sub(rb"'descr': '[^']*'", f"'descr': '{rng.choice(DTYPES)}'".encode(), content, count=1)
    try:
        array = change_array(np.load(io.BytesIO(content), allow_pickle=False), rng)
    except Exception:  # a previous change has damaged it; numpy raises errors of many types
        return content
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def change_array(array: Any, rng: Random) -> Any:
    """Return an array with some other values, another dtype or another shape."""
    action = rng.randrange(3)
    with np.errstate(all="ignore"):
        if action == 0 and array.size and array.dtype.kind in "biuf":
            array = array.copy()
            for _ in range(rng.choice((1, 1, 3))):
                value: Any = rng.choice((0, 1, -1, 2, 2**31 - 1, 2**40, -(2**62), np.nan, np.inf, 1e300, 1e-300, 255))
                array.flat[rng.randrange(array.size)] = np.asarray(value).astype(array.dtype)
            return array
        if action == 1:
            return array.astype(rng.choice(("<f8", "<f4", "<i8", "<i4", "|u1", "|b1")))
    forms = (array[:-1], array[::-1], array.T, array.ravel(), array[None], array[:0]) if array.ndim else (array[None],)
    return np.ascontiguousarray(rng.choice(forms))
