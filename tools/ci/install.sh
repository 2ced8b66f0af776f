#!/usr/bin/env bash
# Install what an extra of the library is for into the environment of "python": "test" the library alone, any other extra
# all houses.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "$1" = test ]; then
    python -m pip install -e '.[test]'
else
    python -m pip install -e ".[$1]" -e packages/psilearn-chem -e lab
fi
