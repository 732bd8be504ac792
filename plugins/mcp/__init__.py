"""A server of the Model Context Protocol: agents check, estimate and plan axolotl runs with it."""
