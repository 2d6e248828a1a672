#!/bin/sh
# Makes an environment with LMCache on a CPU and this package: environment.sh FOLDER
set -eu
folder=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
[ -x "$folder/bin/python" ] || "${PYTHON:-python3}" -m venv "$folder"
pip() { "$folder/bin/python" -m pip install ${PIP_ARGS:-} -q "$@"; }
pip -r "$root/integrations/lmcache/requirements.txt"
pip --no-deps lmcache==0.5.6
pip -e "$root"
