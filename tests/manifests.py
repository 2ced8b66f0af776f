"""Tamper with manifest folders as an attacker would: change files or the manifest, and recompute the checksums."""

import hashlib
import json

from psilearn._utils.folder_writer import MANIFEST
from psilearn._utils.folders import CHECKSUM, compute_checksum


def data_folder(path):
    """Return the folder that contains the files of a manifest folder."""
    return path / json.loads((path / MANIFEST).read_text()).get("data", "")


def write_sealed(path, content):
    """Write a manifest with a valid checksum."""
    content = {name: value for name, value in content.items() if name != CHECKSUM}
    (path / MANIFEST).write_text(json.dumps({**content, CHECKSUM: compute_checksum(content)}))


def edit_manifest(path, change):
    """Change the manifest in place, with a valid checksum."""
    content = json.loads((path / MANIFEST).read_text())
    change(content)
    write_sealed(path, content)


def reseal(path):
    """List the files of a folder as they are now: their sizes and SHA-256, but the former shapes and dtypes."""
    data = data_folder(path)

    def update(content):
        for name, entry in content["files"].items():
            if (data / name).is_file():
                file = (data / name).read_bytes()
                entry.update(bytes=len(file), sha256=hashlib.sha256(file).hexdigest())

    edit_manifest(path, update)
