"""The advisor's own rules: one file, one rule. ``flowchart.toml`` has the order."""
