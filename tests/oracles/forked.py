"""The ranks of a worker: its libraries are imported once, then each rank is a fork of the process that did.

``python -m tests.oracles.forked WORKER WORLD FOLDER MEETING``. What a rank says is ``<rank>.log`` in the folder.
"""

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path


def forked(rank: int, folder: Path, main: Callable[[], None]) -> int:
    """The id of a process in which a rank does its work."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        log = os.open(folder / f"{rank}.log", os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(log, stream)
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
        main()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def waited_for(ranks: set[int]) -> bool:
    """Whether all ended well; where one did not, the others would wait for it in vain."""
    while ranks:
        child, status = os.wait()
        ranks.discard(child)
        if status:
            for left in ranks:
                os.kill(left, signal.SIGKILL)
            return False
    return True


def main(worker: str, world: int, folder: Path, meeting: Path) -> int:
    os.environ.update(WORLD_SIZE=str(world))
    module = importlib.import_module(f"{__package__}.{worker}")
    return 0 if waited_for({forked(rank, folder, lambda: module.main(folder, meeting)) for rank in range(world)}) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])))
