"""Losses of the trainers, and scores in place of a head."""
