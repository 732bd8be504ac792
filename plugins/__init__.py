"""Adapters that run the check from inside other tools."""
