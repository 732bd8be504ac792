#!/usr/bin/env bash
# Installs the advisor into an environment of its own: VERSION from PyPI, or the checkout that this action is part of.
set -euo pipefail

environment=$RUNNER_TEMP/axolotl-advisor
python3 -m venv "$environment"
bin=$environment/bin
[ -d "$bin" ] || bin=$environment/Scripts

if [ -n "$VERSION" ]; then
    wanted=axolotl-advisor==$VERSION
else
    wanted=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
fi
"$bin/python" -m pip install --quiet --disable-pip-version-check "$wanted"
echo "command=$bin/advisor" >> "$GITHUB_OUTPUT"
