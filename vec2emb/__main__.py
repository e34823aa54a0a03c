"""`vec2emb` and `python -m vec2emb`: the way into the command line, and out of it."""

import gc
import os
import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and end the process with its code."""
    # What is made while modules load stays: looking for garbage among it took a tenth of the start.
    gc.set_threshold(20_000)
    # Until there is something to clean up, Ctrl-C just ends the process, without a traceback of imports.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .cli import run

    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):  # whoever read it has gone
            code = code or 1
    # At once: all files are closed, and taking every object apart before the system takes back the memory costs time.
    os._exit(code)


if __name__ == "__main__":
    main()
