#!/usr/bin/env bash
# Build the sdist and the wheel into the empty folder dist, check their metadata, and use the installed wheel.
set -euo pipefail
cd "$(dirname "$0")/../.."
rm -rf dist
python -m pip install build twine
python -m build
python -m twine check --strict dist/*
python tools/ci/check_wheel.py dist/*.whl
