#!/usr/bin/env bash
# Installs the advisor into an environment of its own: VERSION from PyPI, or the checkout that this action is part of.
# Nothing of the checkout is run: `-m` alone would take `venv` and `pip` from the working directory (python3 --help, -I).
set -euo pipefail

if [ -n "$VERSION" ]; then
    wanted=axolotl-advisor==$VERSION
else
    wanted=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
fi
cd "$RUNNER_TEMP"
for name in "${!PYTHON@}"; do unset "$name"; done

environment=$RUNNER_TEMP/axolotl-advisor
python3 -I -m venv "$environment"
bin=$environment/bin
[ -d "$bin" ] || bin=$environment/Scripts
"$bin/python" -I -m pip install --quiet --disable-pip-version-check "$wanted"
echo "command=$bin/advisor" >> "$GITHUB_OUTPUT"
