"""One conversion whose stages are timed: what `stages.py` starts, with as little of its own as can be.

    python benchmarks/staged.py BEGUN MODULES RESULT ARGUMENTS..

BEGUN is the clock of the process that started this one, MODULES a file with the names of what a conversion imports.
RESULT becomes JSON: by stage the seconds of the wall and of the processor.
"""

import os
import sys
import time

FIRST = time.perf_counter(), time.process_time()

# Each function, and the stage that it is; in the order of a conversion.
POINTS = (
    ("open and detect", "conversion.reading_pass", "Pass.__init__"),
    ("read", "formats.text", "TextRows.read"),
    ("read", "formats.binary", "BinaryRecords.read"),
    ("scan", "formats.text", "TextRows.scan"),
    ("scan", "formats.binary", "BinaryRecords.scan"),
    ("wait for the turn", "conversion.engine", "Engine._wait_for_turn"),
    ("select", "conversion.selection", "Selection.select"),
    ("fill", "formats.text", "TextRows.fill"),
    ("fill", "formats.binary", "BinaryRecords.fill"),
    ("write", "bundle.writer", "RowFile.write"),
    ("mean", "conversion.row_writer", "RunningSums.add"),
    ("special rows", "conversion.row_writer", "RowWriter.finish"),
    ("vocabulary, settings", "bundle.writer", "write_file"),
    ("hash", "io.digest", "hash_piece"),
    ("hash", "bundle.writer", "file_digest"),
    ("sync", "io.writeback", "WriteBack.finish"),
    ("sync", "io.filesystem", "sync"),
    ("publish", "io.atomic", "AtomicOutput.publish"),
)


def converted(begun: str, modules: str, result: str, *arguments: str) -> None:
    """Run the conversion, write down its times, and end the process as it does."""
    # First what a conversion does before its work. A command ends its process itself; these two must not.
    from vec2emb.__main__ import main

    codes: list[int] = []
    leave, os._exit = os._exit, codes.append  # type: ignore[assignment]
    sys.argv[1:] = ["--version"]
    main()
    with open(modules) as file:
        for name in file.read().split():
            __import__(name)
    there = time.perf_counter(), time.process_time()

    # From here on the clocks, too.
    import json

    from clocks import Clock

    clock = Clock()
    clock.add("start of Python", FIRST[0] - float(begun), FIRST[1])
    clock.add("imports", there[0] - FIRST[0], there[1] - FIRST[1])
    clock.wrap_all(POINTS)
    sys.argv[1:] = ["convert", *arguments, "--quiet"]
    clock.wrap("the rest", main)()
    ended = time.perf_counter(), time.process_time()
    with open(result, "w") as file:
        json.dump({"times": clock.times, "ended": ended[0], "processor": ended[1]}, file)
    leave(codes[-1])


if __name__ == "__main__":
    converted(*sys.argv[1:])
