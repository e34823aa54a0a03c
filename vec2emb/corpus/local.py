"""Counting on this machine: threads that take the next block by turns, each with a counter of its own.

A counter that outgrows its share of the memory is written to disk and started anew. Which block goes to which thread is
chance; the sum is not, nor is the error: blocks carry tickets in the order of the corpus, and of several faults the one
with the smallest ticket is raised.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from .._kernel import TokenCounter
from ..errors import Vec2embError
from ..options.threads import worker_count
from .counts import TokenCounts
from .inputs import Piece
from .merging import Spill
from .reading import Blocks
from .settings import Settings
from .tally import Tally

LEAST_SHARE = 4 << 20  # bytes of a counter: with less, each block would become a file


def count_locally(
    pieces: Iterator[Piece],
    settings: Settings,
    memory: int,
    threads: int | None,
    show: Callable[[int], None] | None,
) -> TokenCounts:
    """Count all pieces by threads, within about `memory` bytes; `show` is told the bytes that are read.

    Raises:
        InputError: the first fault of the corpus.
    """
    workers = worker_count(threads)
    # At the end there are a counter for each thread, the sum of them, and the sum again, in order.
    run = _Run(Blocks(pieces, settings), settings, max(memory // (3 * workers), LEAST_SHARE))
    try:
        run.go(workers, show)
        counters = [tally.finished() for tally in run.tallies]
        if run.spill is None:
            whole = TokenCounter() if not counters else counters.pop(0)
            while counters:
                whole.merge(counters.pop())
            return TokenCounts.sorted(whole, tokenizer=settings.tokenizer, lowercase=settings.lowercase)
        while counters:
            run.spill.add(counters.pop())
        run.tallies.clear()
        return run.spill.merged(memory, workers, settings)
    finally:
        if run.spill is not None:
            run.spill.close()


class _Run:
    """One pass over the blocks."""

    def __init__(self, blocks: Blocks, settings: Settings, share: int) -> None:
        self.tallies: list[Tally] = []
        self.spill: Spill | None = None
        self._blocks = blocks
        self._settings = settings
        self._share = share
        self._reading = threading.Lock()
        self._spilling = threading.Lock()
        self._tickets = 0
        self._stop = False
        self._failures: list[tuple[int, BaseException]] = []

    def go(self, workers: int, show: Callable[[int], None] | None) -> None:
        """Run to the end of the corpus, or to its first fault."""
        threads = [threading.Thread(target=self._work, name=f"vec2emb-count-{i}") for i in range(workers)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.1)
                    if show is not None:
                        show(self._blocks.consumed)
        finally:
            # An interrupt, or an error in `show`: no thread outlives the call.
            self._stop = True
            self._blocks.cancel()
            for thread in threads:
                if thread.ident is not None:  # else there was no thread to be had
                    thread.join()
            self._blocks.close()
        # What is no fault of the corpus goes first.
        if self._failures:
            raise min(self._failures, key=lambda failure: (isinstance(failure[1], Vec2embError), failure[0]))[1]

    def _work(self) -> None:
        tally, buffer = Tally(self._settings), bytearray()
        while True:
            with self._reading:
                ticket = self._tickets
                self._tickets += 1
                try:
                    block = None if self._stop else self._blocks.read(buffer)
                except BaseException as error:
                    self._fail(ticket, error)
                    break
                if block is None:
                    self._stop = True
                    break
            try:
                tally.add(block, buffer)
                if tally.memory > self._share:
                    self._write(tally)
                    tally = Tally(self._settings)
            except BaseException as error:
                self._fail(ticket, error)
                break
        self.tallies.append(tally)

    def _write(self, tally: Tally) -> None:
        counter = tally.finished()
        with self._spilling:
            if self.spill is None:
                self.spill = Spill()
            self.spill.add(counter)

    def _fail(self, ticket: int, error: BaseException) -> None:
        self._failures.append((ticket, error))
        self._stop = True
