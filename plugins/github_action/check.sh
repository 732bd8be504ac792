#!/usr/bin/env bash
# One check: annotations on standard output, SARIF and Markdown in files, the Markdown in the summary of the job.
# Its own exit code is 0; that of the check is an output, so that the steps after it still run.
# Nothing of the checkout is run, whatever PYTHONPATH says; its settings and its repository's are read with care.
set -euo pipefail
for name in "${!PYTHON@}"; do unset "$name"; done
python=$(dirname "$ADVISOR")/python
git=(git -c "core.hooksPath=/dev/null" -c core.fsmonitor=false -c safe.bareRepository=explicit -c gc.auto=0)

sarif=$RUNNER_TEMP/advisor.sarif
markdown=$RUNNER_TEMP/advisor.md
html=$RUNNER_TEMP/advisor.html
review=$RUNNER_TEMP/advisor-suggestions.json
errors=$RUNNER_TEMP/advisor.err
rm -f "$sarif" "$markdown" "$html" "$review"

options=(--output-format github --output-format "sarif=$sarif" --output-format "markdown=$markdown")
options+=(--output-format "html=$html")
[ -z "$GPUS" ] || options+=(--gpus "$GPUS")
[ -z "$FAIL_ON" ] || options+=(--fail-on "$FAIL_ON")
[ -z "$CHANGED_SINCE" ] || options+=(--changed-since "$CHANGED_SINCE")

# The base is compared with only if git has it, or can fetch it: a check without it beats none.
if [ -n "$BASE" ] && ! "${git[@]}" cat-file -e "$BASE^{commit}" 2> /dev/null; then
    "${git[@]}" fetch --quiet --no-recurse-submodules --depth=1 origin "$BASE" 2> /dev/null || true
fi
against=$AGAINST
if [ -z "$against" ] && [ -n "$BASE" ]; then
    if "${git[@]}" cat-file -e "$BASE^{commit}" 2> /dev/null; then
        against=$BASE
    else
        echo "::notice title=advisor::no comparison: the base of the pull request is not in the checkout"
    fi
fi
if [ -n "$against" ] && [ "$against" != none ]; then
    options+=(--against "$against" --output-format "github-review=$review")
fi
[ "$ISOLATED" != true ] || options+=(--isolated)

# Only who may push writes the settings of these events; of all others they may narrow the check and no more.
unset ADVISOR_NARROW
narrow=
case ${GITHUB_EVENT_NAME:-} in
    push | schedule | workflow_dispatch) ;;
    *) narrow=1; export ADVISOR_NARROW=1 ;;
esac

paths=()
while IFS= read -r path; do
    path=${path%$'\r'}
    [ -z "$path" ] || paths+=("$path")
done <<< "$WHERE"
[ ${#paths[@]} -gt 0 ] || paths=(.)

# Rules are code: they are those of the folders that the input names, else those that the settings name, which a pull
# request takes from its base, settings and rules.
export ADVISOR_RULES=
while read -r folder; do
    folder=${folder%$'\r'}
    [ -z "$folder" ] || options+=(--rules "$folder")
done <<< "$RULES"
if [ -z "$RULES" ] && [ "$ISOLATED" != true ]; then
    base=$RUNNER_TEMP/advisor-base
    rm -rf "$base"
    asked=()
    if [ -z "$narrow" ]; then
        whose="the settings"
        asked=(named_rules.py "${paths[0]}")
    elif "${git[@]}" cat-file -e "$BASE^{commit}" 2> /dev/null; then
        whose="the base"
        asked=(base_rules.py "$BASE" "$base")
    fi
    if [ ${#asked[@]} -gt 0 ]; then
        "$python" -I "$(dirname "${BASH_SOURCE[0]}")/${asked[0]}" "${asked[@]:1}" > "$base.rules" 2> "$errors" \
            || echo "::warning title=advisor::the rules of $whose are not run: $(head -c 1000 "$errors" | tr -d '\r\n' | sed 's/%/%25/g')"
        ADVISOR_RULES=$(cat "$base.rules")
    fi
fi

code=0
"$ADVISOR" check "${options[@]}" -- "${paths[@]}" 2> "$errors" || code=$?
# What is said of files holds their names, in which nothing is to be read as a command.
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
echo "::stop-commands::$token"
cat "$errors"
echo "::$token::"

if [ "$code" -gt 1 ]; then
    said=$(cat "$errors")
    escaped=${said//'%'/%25}
    escaped=${escaped//$'\r'/%0D}
    echo "::error title=advisor could not run::${escaped//$'\n'/%0A}"
    { printf '\n\n**Could not be checked:**\n\n'; sed 's/^/    /' "$errors"; } >> "$markdown"
fi
if [ -f "$markdown" ]; then
    # A summary may have 1 MiB.
    head -c 1000000 "$markdown" >> "$GITHUB_STEP_SUMMARY"
fi
{
    echo "exit-code=$code"
    echo "sarif=$sarif"
    echo "markdown=$markdown"
    echo "html=$html"
    echo "review=$review"
} >> "$GITHUB_OUTPUT"
