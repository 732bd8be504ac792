"""How far the estimates are from measured runs: the figures, and the tables made of them."""
