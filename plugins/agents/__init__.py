"""Texts for agents: a skill to install, and a page for axolotl's own."""
