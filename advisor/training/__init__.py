"""Inside the process that trains: the check before anything is loaded, and the measuring until the end."""
