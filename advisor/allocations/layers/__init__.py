"""A model's layers, in the order in which they allocate."""
