#!/usr/bin/env bash
# Build the site with warnings as errors, run its gallery, and check the links inside it.
set -euo pipefail
cd "$(dirname "$0")/../.."
python -m pip install -e '.[docs]'
python -m sphinx -W --keep-going -q -b html docs docs/_build/html
python tools/check_site_links.py
