#!/usr/bin/env bash
# Sends the fixes on lines of the pull request as suggestions, those that are new since the push before.
# What goes wrong here is a warning: the comment has the same edits.
set -uo pipefail
cd "$RUNNER_TEMP" || exit 0

reviews=repos/$GITHUB_REPOSITORY/pulls/$PULL_REQUEST
left=$RUNNER_TEMP/advisor-review.json

give_up() {
    echo "::warning title=advisor::no suggestions on the pull request: $1"
    exit 0
}

[ -f "$REVIEW" ] || exit 0
bodies=$(gh api --paginate "$reviews/comments?per_page=100" --jq '.[].body') || give_up "its comments cannot be read"
code=0
printf '%s' "$bodies" | python3 -I "$(dirname "${BASH_SOURCE[0]}")/suggest.py" "$REVIEW" > "$left" || code=$?
[ "$code" != 3 ] || exit 0
[ "$code" = 0 ] || give_up "the review cannot be read"
gh api --silent --method POST "$reviews/reviews" --input "$left" || give_up "the token needs pull-requests: write"
