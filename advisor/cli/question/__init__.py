"""Asks about a run that would be blocked: apply what makes it fit, and start?"""
