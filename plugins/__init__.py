"""Adapters that run the check from inside other tools; this version has none yet."""
