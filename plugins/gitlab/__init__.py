"""Comments on merge requests of GitLab."""
