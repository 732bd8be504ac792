"""``python -m advisor``: the same as the command ``advisor``."""

from advisor.cli.main import main

main()
