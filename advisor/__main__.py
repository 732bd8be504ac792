"""The command ``advisor``, and ``python -m advisor``."""

import atexit
import gc


def main() -> None:
    """Run the command; a short process keeps nearly all to its end, and to collect it is a tenth of a check."""
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)

    from advisor.cli.main import main as command

    command()


if __name__ == "__main__":
    main()
