#!/usr/bin/env bash
# Install the lowest allowed version of each dependency of the library into the environment of "python" (Python 3.11), and
# run the tests of the library. Arguments are passed to pytest.
set -euo pipefail
cd "$(dirname "$0")/../.."
pins="$(mktemp)"
trap 'rm -f "$pins"' EXIT
python -m tools pins test-all > "$pins"
python -m pip install --requirement "$pins"
python -m pip install --no-deps -e .
python -m pytest -n auto --dist=worksteal tests "$@"
