#!/usr/bin/env bash
# Install psilearn with each extra by itself, into a new environment, and import what the extra is for.
# Arguments are names of extras; without one, all are tried.
set -euo pipefail
cd "$(dirname "$0")/../.."
python tools/ci/check_extras.py "$@"
