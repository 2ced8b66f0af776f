#!/usr/bin/env bash
# Run the tests with pre-releases of the dependencies, new random examples and coverage, then fuzz the readers for a minute
# each.
set -euo pipefail
cd "$(dirname "$0")/../.."
seed="${SEED:-$RANDOM}"
echo "SEED=$seed repeats this run."
python -m pip install --pre --upgrade --upgrade-strategy eager -e '.[test-all]' -e packages/psilearn-chem -e lab
python -m pytest -n auto --dist=worksteal --cov=psilearn --cov=psilearn_chem --cov-fail-under=95 \
    --hypothesis-profile=default --hypothesis-seed="$seed" "$@"
python -m psilearn_lab.fuzz readers models --seed "$seed" --seconds "${SECONDS_PER_TARGET:-60}"
