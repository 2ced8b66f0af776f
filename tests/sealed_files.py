"""Tamper with files of arrays as an attacker would: change their contents, and recompute the checksums."""

import hashlib
import json

ZEROS = "0" * 64


def edit(file_format, path, change):
    """Change the JSON content and the arrays of a file in place, with valid checksums."""
    file = file_format.read(path)
    arrays = dict(file.arrays)
    content = change(file.content, arrays)
    file_format.write(path, file.content if content is None else content, arrays)


def split(path):
    """Return the header of a file and its data."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def seal(header, data):
    """Return a file with this header and these data, and valid checksums if there is a place for them."""
    metadata = header.get("__metadata__")
    if isinstance(metadata, dict):
        metadata.update(data_sha256=hashlib.sha256(data).hexdigest(), sha256=ZEROS)
    text = json.dumps(header).encode()
    raw = len(text).to_bytes(8, "little") + text
    digest = hashlib.sha256(raw).hexdigest()
    return raw.replace(f'"sha256": "{ZEROS}"'.encode(), f'"sha256": "{digest}"'.encode()) + data
