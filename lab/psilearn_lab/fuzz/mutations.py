"""Random changes of the content of a file: of its bytes, its lines, its numbers and, if it is an archive, its parts."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from random import Random

Mutation = Callable[[bytes, Random], bytes]

MAX_SIZE = 1 << 18  # bytes of a changed file
NUMBERS = (
    *(
        b"0",
        b"-0",
        b"-1",
        b"1e309",
        b"-1e309",
        b"1e-400",
        b"nan",
        b"inf",
        b"-inf",
        b"NaN",
        b"",
        b"0x10",
        b"1_000",
        b"1.5",
    ),
    *(b"127", b"128", b"255", b"256", b"65536", b"2147483647", b"2147483648", b"4294967296", b"-2147483649"),
    *(b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"1" + b"0" * 30, b"9" * 5000),
    *(b"\xd9\xa3", b"1.7976931348623157e308", b"5e-324", b"1000000000000", b"100000000"),
)
TOKENS = (
    *(
        b"\0",
        b"\n",
        b"\r\n",
        b"\r",
        b"\t",
        b" ",
        b",",
        b":",
        b";",
        b"'",
        b'"',
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b"<",
        b">",
    ),
    *(
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\xc0",
        b"?",
        b"#",
        b"%",
        b"//",
        b"null",
        b"true",
        b"(",
        b"(((((",
    ),
    *(
        b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
        b"&b;",
        b"[" * 3000,
        b'{"a":' * 3000,
        b"\x1f\x8b",
        b"PK\x03\x04",
        b"\xe2\x80\xa8",
    ),
)
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
            return _mutate_zip(content, rng, tokens)
    except (OSError, EOFError, ValueError, KeyError, NotImplementedError, zlib.error, zipfile.BadZipFile):
        pass  # a previous change has damaged it
    return None


def _mutate_zip(content: bytes, rng: Random, tokens: Sequence[bytes]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    chosen = rng.choice(sorted(members))
    members[chosen] = mutate_bytes(members[chosen], rng, tokens)
    if rng.random() < 0.1:
        members[rng.choice(sorted(members))] = members.pop(rng.choice(sorted(members)))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return stream.getvalue()


def _slice(content: bytes, rng: Random, longest: int = 64) -> tuple[int, int]:
    start = rng.randrange(len(content) + 1)
    return start, min(len(content), start + rng.randrange(longest))


def _insert(content: bytes, rng: Random, token: bytes) -> bytes:
    start = rng.randrange(len(content) + 1)
    stop = start + (len(token) if rng.random() < 0.5 else 0)
    return content[:start] + token + content[stop:]


def _flip_bit(content: bytes, rng: Random) -> bytes:
    if not content:
        return b"\0"
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 4, 16))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _set_byte(content: bytes, rng: Random) -> bytes:
    return _insert(content, rng, bytes([rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))]))


def _set_integer(content: bytes, rng: Random) -> bytes:
    size = rng.choice((2, 4, 8))
    value = rng.choice(
        (0, 1, -1, 2 ** (8 * size - 1) - 1, -(2 ** (8 * size - 1)), 2 ** (4 * size), rng.randrange(4096))
    )
    token = (value % 2 ** (8 * size)).to_bytes(size, rng.choice(("little", "big")))
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
    return content[
        : rng.choice((0, 1, 4, rng.randrange(len(content) + 1), max(0, len(content) - rng.randrange(1, 32))))
    ]


def _change_lines(content: bytes, rng: Random) -> bytes:
    lines = content.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    action = rng.randrange(4)
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


_CHANGES: tuple[Mutation, ...] = (
    *(_flip_bit, _flip_bit, _set_byte, _set_integer, _change_near_end, _change_near_end, _delete, _duplicate, _move),
    *(_truncate, _change_lines, _change_lines, _change_number, _change_number, _change_number, _change_word),
    *(_insert_token, _insert_token, _repeat_byte),
)
