"""What the commands do: each returns its exit code, and loads what it alone needs."""
