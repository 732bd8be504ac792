#!/usr/bin/env bash
# Writes the Markdown as a comment of the pull request, or over the comment of the push before.
# What goes wrong here, such as a token that may only read, is a warning: the verdict is the exit code of the check.
set -uo pipefail
cd "$RUNNER_TEMP" || exit 0

marker='<!-- axolotl-advisor -->'
body=$RUNNER_TEMP/advisor-comment.md
comments=repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments
# GitHub takes 65,536 characters. What is cut ends with a whole line.
most=60000

give_up() {
    echo "::warning title=advisor::no comment on the pull request: $1"
    exit 0
}

ours=".[] | select(.user.type == \"Bot\" and (.body | startswith(\"$marker\"))) | .id"
found=$(gh api --paginate "$comments?per_page=100" --jq "$ours") || give_up "its comments cannot be read"
old=${found%%$'\n'*}

# Nothing to say, and nothing said before.
if [ -z "$old" ] && ! grep -q -e '^| config ' -e '^\*\*Could not' "$MARKDOWN"; then
    exit 0
fi

echo "$marker" > "$body"
if [ "$(wc -c < "$MARKDOWN")" -gt "$most" ]; then
    printf 'Cut here; the summary of the job has all of it.\n\n' >> "$body"
    head -c "$most" "$MARKDOWN" | sed '$d' >> "$body"
else
    cat "$MARKDOWN" >> "$body"
fi

if [ -n "$old" ]; then
    gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$old" --field "body=@$body" \
        || give_up "the token needs pull-requests: write"
else
    gh api --silent --method POST "$comments" --field "body=@$body" \
        || give_up "the token needs pull-requests: write"
fi
