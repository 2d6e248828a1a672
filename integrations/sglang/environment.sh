#!/bin/sh
# Makes an environment with SGLang on a CPU, the tests' platform for it, and this package: environment.sh FOLDER
set -eu
folder=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
[ -x "$folder/bin/python" ] || "${PYTHON:-python3}" -m venv "$folder"
pip() { "$folder/bin/python" -m pip install ${PIP_ARGS:-} -q "$@"; }
pip -r "$root/integrations/sglang/requirements.txt"
pip --no-deps sglang==0.5.23
pip "$root"
# Built from a copy, so that the build leaves nothing among the tests.
copy=$(mktemp -d)
cp -r "$root/tests/integrations/sglang/plain_cpu/." "$copy"
pip --no-deps "$copy"
rm -rf "$copy"
# The index has torchvision for GPUs alone; beside a torch without CUDA it is imported with this.
site=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo 'import plain_cpu.vision' > "$site/plain_cpu.pth"
