"""Asks about one edit at a time, as ``git add -p`` does, and plans again after each answer."""
