"""`vec2emb` and `python -m vec2emb`: the way into the command line."""

import gc
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and exit."""
    # What is made while modules load stays: looking for garbage among it took a tenth of the start.
    gc.set_threshold(20_000)
    from .cli import main as run

    run()


if __name__ == "__main__":
    main()
