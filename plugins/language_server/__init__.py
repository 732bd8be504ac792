"""A language server: findings while typing, quick fixes, what a key does to this run, and the verdict."""
