"""What torch's operations allocate, and when backward frees it."""
