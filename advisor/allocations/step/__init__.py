"""The model put together, and one optimizer step over it."""
