#!/usr/bin/env bash
# Install psilearn with all extras into the environment of "python", and run the tests. Arguments are passed to pytest.
set -euo pipefail
cd "$(dirname "$0")/../.."
python -m pip install -e '.[test]'
python -m pytest -n auto --dist=worksteal "$@"
