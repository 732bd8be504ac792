"""The command ``advisor``, and ``python -m advisor``."""

import atexit
import gc


def main() -> None:
    """Run the command; a short process keeps nearly all to its end, so that to collect it gains nothing."""
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)

    from advisor.cli.main import main as command

    command()


if __name__ == "__main__":
    main()
