#!/usr/bin/env bash
# Build the sdists and the wheels of the library and of the chemistry package into the empty folder dist, check their
# metadata, and use the installed wheels.
set -euo pipefail
cd "$(dirname "$0")/../.."
rm -rf dist
python -m pip install build twine
python -m build
python -m build --outdir dist packages/psilearn-chem
python -m twine check --strict dist/*
python -m tools wheel dist/*.whl
