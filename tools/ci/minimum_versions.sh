#!/usr/bin/env bash
# Install the lowest allowed version of each dependency into the environment of "python" (Python 3.11), and run the tests.
# Arguments are passed to pytest.
set -euo pipefail
cd "$(dirname "$0")/../.."
pins="$(mktemp)"
trap 'rm -f "$pins"' EXIT
python tools/ci/minimum_versions.py test > "$pins"
python -m pip install --requirement "$pins"
python -m pip install --no-deps -e .
python -m pytest -n auto --dist=worksteal "$@"
