"""The page: static files that run the advisor in the browser. Nothing leaves it."""
