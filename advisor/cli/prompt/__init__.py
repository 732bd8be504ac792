"""Asks about one edit at a time, as ``git add -p`` does, and plans anew after each answer."""
