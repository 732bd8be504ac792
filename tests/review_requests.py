"""What GitHub and GitLab take in the requests that write comments: as they publish it, and what we promise on top."""

from typing import Any

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    """An object with these properties alone: what an API does not know it ignores in silence, which a test should not."""
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


GITHUB_PUBLISHED = closed(
    [],
    commit_id=STRING,
    body=STRING,
    event={"type": "string", "enum": ["APPROVE", "REQUEST_CHANGES", "COMMENT"]},
    comments={
        "type": "array",
        "items": closed(
            ["path", "body"],
            path=STRING,
            position=INTEGER,
            body=STRING,
            line=INTEGER,
            side=STRING,
            start_line=INTEGER,
            start_side=STRING,
        ),
    },
)
"""The body of ``pulls/create-review``: github/rest-api-description@cfb76da8e22855a15ed2bc1766b588d762a68bca,
descriptions/api.github.com/api.github.com.2022-11-28.yaml, paths, ``/repos/{owner}/{repo}/pulls/{pull_number}/reviews``.
"""
GITHUB_OURS: dict[str, Any] = {
    "required": ["event", "body", "comments"],  # "Required when using REQUEST_CHANGES or COMMENT", it says of the body
    "properties": {
        "event": {"const": "COMMENT"},
        "body": {"minLength": 1},
        "comments": {
            "items": {
                "required": ["line", "side"],
                "not": {"required": ["position"]},
                "dependentRequired": {"start_line": ["start_side"]},
                "properties": {
                    "path": {"pattern": "^[^/]"},
                    "line": {"minimum": 1},
                    "side": {"enum": ["LEFT", "RIGHT"]},
                    "start_line": {"minimum": 1},
                    "start_side": {"enum": ["LEFT", "RIGHT"]},
                    "body": {"maxLength": 65536},
                },
            }
        },
    },
}
"""A comment on lines of the diff: docs.github.com/rest/pulls/comments, of ``side`` and ``start_side``."""
GITHUB_REVIEW: dict[str, Any] = {"allOf": [GITHUB_PUBLISHED, GITHUB_OURS]}

PLACE = {"line_code": STRING, "type": STRING, "old_line": STRING, "new_line": STRING}
GITLAB_PUBLISHED = closed(
    ["body"],
    body=STRING,
    created_at=STRING,
    position=closed(
        ["base_sha", "start_sha", "head_sha", "position_type"],
        base_sha=STRING,
        start_sha=STRING,
        head_sha=STRING,
        position_type={"type": "string", "enum": ["text", "image"]},
        new_path=STRING,
        new_line=INTEGER,
        old_path=STRING,
        old_line=INTEGER,
        width=INTEGER,
        height=INTEGER,
        x=INTEGER,
        y=INTEGER,
        line_range=closed([], start=closed([], **PLACE), end=closed([], **PLACE)),
    ),
)
"""The body of ``POST /projects/:id/merge_requests/:noteable_id/discussions``: gitlabhq/gitlabhq, lib/api/discussions.rb,
the declared ``params``, at 05f0ebba3a2c8ddf39e436f412dc2ab5bf1353b2. GitLab's own OpenAPI description is made from them.
"""
GITLAB_OURS: dict[str, Any] = {
    "required": ["body", "position"],
    "properties": {
        "body": {"maxLength": 1_000_000},
        "position": {
            "required": ["new_path", "old_path", "new_line"],
            "properties": {"position_type": {"const": "text"}, "new_line": {"minimum": 1}},
        },
    },
}
"""A suggestion on one line of the new text: docs.gitlab.com/api/discussions, "Create a new merge request thread"."""
GITLAB_DISCUSSION: dict[str, Any] = {"allOf": [GITLAB_PUBLISHED, GITLAB_OURS]}

GITHUB_COMMENT: dict[str, Any] = closed(["body"], body=STRING | {"minLength": 1, "maxLength": 65536})
"""The body of ``issues/create-comment`` and ``issues/update-comment``: docs.github.com/rest/issues/comments, API version
2022-11-28; ``body`` is all that either takes. The length is ours to keep: GitHub refuses more with 422.
"""
NOTE = STRING | {"minLength": 1, "maxLength": 1_000_000}
GITLAB_NOTE: dict[str, Any] = closed(
    ["body"], body=NOTE, internal={"type": "boolean"}, created_at=STRING, merge_request_diff_head_sha=STRING
)
"""The body of ``POST /projects/:id/merge_requests/:noteable_id/notes``: gitlabhq/gitlabhq, lib/api/notes.rb, the declared
``params``, at 017a6c129d6a9e4ad9fec792cd84f88641d7dbfe, without what they call deprecated; docs.gitlab.com/api/notes says
that a body has a million characters at most.
"""
GITLAB_NOTE_UPDATE: dict[str, Any] = closed(["body"], body=NOTE)
"""The body of ``PUT /projects/:id/merge_requests/:noteable_id/notes/:note_id``: the same file; it may not be blank."""
