"""What this is: its version, and where it lives."""

VERSION = "0.3.0"
"""Of the wheel, the reports, the servers and the page."""
REPOSITORY = "https://github.com/OWNER/axolotl-advisor"
"""``make owner NAME=...`` writes the account here, and everywhere else."""
SITE = "https://OWNER.github.io/axolotl-advisor"
"""Where `make site` is published: the Pages of that account."""
