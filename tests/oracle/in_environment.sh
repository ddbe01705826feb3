#!/usr/bin/env bash
# in_environment.sh NAME FILE: runs pytest on FILE of this folder in the environment NAME of
# runtime/cmake/requirements/, which it makes first unless it is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
../../dev environment "$1"
exec "../../.venv/$1/bin/python" -B -m pytest -q -rs -p no:cacheprovider "$2"
