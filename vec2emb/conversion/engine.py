"""Runs a source through scan, select and fill, by as many identical workers as are wanted.

Each worker takes the next block under a lock, scans it, waits for its turn to select, then parses and writes its kept
rows. Blocks carry tickets in the order of the file; selection happens in that order, and of several faults the one with
the smallest ticket is raised: so nothing depends on how many workers there are or how large the blocks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .._kernel import Block, Rows
from .._kernel.codes import Fault, Nonfinite, Note, State
from ..errors import InputError, Vec2embError
from ..formats import RowReader
from ..options.threads import worker_count
from .parsed_rows import ParsedRows, Sink
from .selection import RowEvent, Selection

BLOCK = 1 << 20  # bytes read at a time: smaller and larger ones were both slower
OUT_BYTES = 1 << 20  # of parsed rows, written at a time

Progress = Callable[[int, int | None], None]


class Tally:
    """How often something happened, and on which line first."""

    def __init__(self) -> None:
        self.count = 0
        self.line = 0

    def add(self, count: int, line: int) -> None:
        """Count some more; the first call that counts any gives the line."""
        if count and not self.count:
            self.line = line
        self.count += count


class Counts:
    """What passed through the engine, in the order of the file."""

    def __init__(self) -> None:
        self.rows = 0  # seen in the file, skipped ones included
        self.skipped = Tally()
        self.first_skipped: InputError | None = None
        self.blank = Tally()
        self.excess_separators = Tally()
        self.numeral_tokens = Tally()
        self.cr_tokens = Tally()
        self.recoded = Tally()
        self.nonfinite = Tally()
        self.limited = False  # whether reading ended at the limit
        self.last_token = b""
        self.lines = 0


class Engine:
    """One pass over a source. Make it, `run` it, read its `counts`."""

    def __init__(
        self,
        reader: RowReader,
        selection: Selection,
        sink: Sink,
        *,
        label: str,
        first_line: int,
        limit: int | None = None,
        workers: int | None = None,
    ) -> None:
        self.counts = Counts()
        self._reader = reader
        self._selection = selection
        self._sink = sink
        self._policy = reader.policy
        self._label = label
        self._base = first_line  # number of the first line of the next block to be selected
        self._limit = limit
        self._workers = worker_count(workers)
        self._reading = threading.Lock()
        self._ended: list[threading.Thread] = []
        self._all_ended = threading.Event()
        self._turn = threading.Condition()
        self._tickets = 0  # blocks taken
        self._selected = 0  # blocks whose selection is done
        self._written: set[int] = set()
        self._written_up_to = 0  # all blocks before this one are written
        self._stop = False  # take no more blocks
        self._end = -1  # ticket of the block at which the limit was reached
        self._failures: list[tuple[int, BaseException]] = []
        self._odd: list[tuple[int, int, InputError]] = []  # ticket, rows with non-finite values, the first one's error
        self._pending_blank = Tally()
        self._one_by_one = False
        self.fills = True  # whether vectors are read, or only tokens and shapes

    def run(self, source_progress: Callable[[], tuple[int, int | None]], progress: Progress | None) -> Counts:
        """Run to the end of the source or of the limit.

        Raises:
            Vec2embError: the first fault of the source, in its order.
        """
        threads: list[threading.Thread] = []
        try:
            for i in range(self._workers):
                threads.append(threading.Thread(target=self._work_to_end, name=f"vec2emb-{i}"))
                threads[-1].start()
            all_ended = False
            while not all_ended:
                all_ended = self._all_ended.wait(0.1)
                if progress is not None:
                    progress(*source_progress())
        finally:
            # An interrupt, an error in `progress`, no thread to be had: none outlives the call. Threads are joined only
            # once they are through: interrupted in `join`, Python takes a running thread for one that has ended.
            self._halt()
            started = [thread for thread in threads if thread.ident is not None]
            while len(self._ended) < len(started):
                time.sleep(0.005)
            for thread in started:
                thread.join()
        self._raise_first_failure()
        return self.counts

    def step(self, block: Block, out: bytearray) -> bool:
        """Instead of `run`: pass one block through, in the calling thread; False at the end.

        Rows in front of a fault reach the sink before the fault is raised, a non-finite value included.
        """
        if self._stop:
            return False
        ticket = self._tickets
        if not self._reader.read(block):
            return False
        self._tickets += 1
        self._one_by_one = True
        try:
            self._process(ticket, block, out)
        finally:
            self._pass_turn(ticket)
            self._mark_written(ticket)
        return True

    def _work_to_end(self) -> None:
        try:
            self._work()
        finally:
            self._ended.append(threading.current_thread())
            if len(self._ended) == self._workers:
                self._all_ended.set()

    def _work(self) -> None:
        block, out = self._reader.new_block(), bytearray()
        while True:
            with self._reading:
                if self._stop:
                    return
                ticket = self._tickets
                try:
                    more = self._reader.read(block)
                except BaseException as error:
                    self._fail(ticket, error)
                    return
                if not more:
                    self._stop = True
                    return
                self._tickets += 1
            try:
                self._process(ticket, block, out)
            except BaseException as error:
                self._fail(ticket, error)
            finally:
                self._pass_turn(ticket)
                self._mark_written(ticket)

    def _process(self, ticket: int, block: Block, out: bytearray) -> None:
        self._reader.scan(block)
        if self._policy.skip_bad_rows:
            self._reader.check(block)
        if not self._wait_for_turn(ticket):
            return
        kept, error = self._select(ticket, block)
        if not self.fills:
            kept = 0
        self._pass_turn(ticket)
        # Faults of numbers come from rows in front of the one that selection stopped at.
        self._fill(ticket, block, kept, out)
        if error is not None:
            raise error

    # Select: one block at a time, in the order of the file.

    def _select(self, ticket: int, block: Block) -> tuple[int, InputError | None]:
        counts, rows = self.counts, block.rows
        block.base = self._base
        if self._limit is not None and counts.rows + rows.count >= self._limit:
            rows.truncate(self._limit - counts.rows)
            self._end, counts.limited = ticket, True
            self._halt()
        error: InputError | None = None
        skip = self._policy.skip_bad_rows
        if (faulty := self._reader.hard_fault(block) if skip else rows.first_fault()) >= 0:
            error = self._reader.error(block, faulty)
            rows.truncate(faulty)
        kept, duplicate = self._selection.select(block, self._label)
        self._count(block)
        return kept, duplicate or error

    def _count(self, block: Block) -> None:
        counts, pending, rows, base = self.counts, self._pending_blank, block.rows, block.base
        if rows.first_blank >= 0:
            inside, first = rows.blank_inside, base + rows.first_blank
            if rows.count:
                counts.blank.add(pending.count, pending.line)
                counts.blank.add(inside, first)
                pending.count = 0
                pending.add(rows.blank_after, base + rows.lines - rows.blank_after)
            else:
                pending.add(rows.blank_after, first)
        elif rows.count:
            counts.blank.add(pending.count, pending.line)
            pending.count = 0
        for tally, note, kept_only in (
            (counts.excess_separators, Note.EXCESS_SEPARATORS, False),
            (counts.numeral_tokens, Note.NUMERAL_ENDED_TOKEN, False),
            (counts.cr_tokens, Note.CR_IN_TOKEN, True),
            (counts.recoded, Note.RECODED, True),
        ):
            number, first_row = rows.tally(note, kept_only)
            if number:
                tally.add(number, block.line(first_row))
        number, first_row = rows.tally_state(State.FAULTY)
        if number:
            if counts.first_skipped is None:
                counts.first_skipped = self._reader.error(block, first_row)
            counts.skipped.add(number, block.line(first_row))
            if self._selection.rules.note_events:
                for row in rows.rows_in_state(State.FAULTY):
                    event = RowEvent("skipped", block.line(row), block.token(row), str(self._reader.error(block, row)))
                    self._selection.on_event(event)
        if rows.count:
            counts.rows += rows.count
            counts.last_token = block.token(rows.count - 1)
        self._base = base + rows.lines
        counts.lines = self._base - 1

    # Fill: blocks beside each other.

    def _fill(self, ticket: int, block: Block, kept: int, out: bytearray) -> None:
        rows, dim = block.rows, block.dim
        width = 4 * dim
        step = max(1, OUT_BYTES // width)
        if kept and len(out) < min(step, kept) * width:
            out.extend(bytes(min(step, kept) * width - len(out)))
        rewrites = self._selection.rewrites and rows.tally_state(State.SEEN)[0] > 0
        with memoryview(out) as view:
            for start in range(0, kept, step):
                stop = min(start + step, kept)
                faulty = self._reader.fill(block, start, stop, out)
                if self._one_by_one and rows.tally(Note.NONFINITE, True)[0]:
                    faulty = _first_fault(rows, start, stop if faulty < 0 else faulty, faulty)
                if rewrites:  # the later row must come later
                    self._wait_until_written(ticket)
                self._sink(ParsedRows(rows, start, stop if faulty < 0 else faulty, dim, view))
                if faulty >= 0:
                    self._note_nonfinite(ticket, block)
                    raise self._reader.error(block, rows.kept_row(faulty))
        self._note_nonfinite(ticket, block)

    def _note_nonfinite(self, ticket: int, block: Block) -> None:
        rows = block.rows
        number, first = rows.tally(Note.NONFINITE, True)
        if not number:
            return
        line = block.line(first)
        with self._turn:
            if self._policy.nonfinite == Nonfinite.ERROR:
                if rows.fault_of(first)[0] == Fault.NONFINITE_VALUE:
                    self._odd.append((ticket, number, self._reader.error(block, first)))
            else:
                tally = self.counts.nonfinite
                tally.line = min(tally.line, line) if tally.count else line
                tally.count += number

    # Turns and failures.

    def _wait_for_turn(self, ticket: int) -> bool:
        """Wait until all earlier blocks are selected; False if this one is not wanted any more."""
        with self._turn:
            self._turn.wait_for(lambda: self._selected == ticket)
            return not self._failed_before(ticket) and not 0 <= self._end < ticket

    def _pass_turn(self, ticket: int) -> None:
        with self._turn:
            if self._selected < ticket:
                self._turn.wait_for(lambda: self._selected == ticket)
            if self._selected == ticket:
                self._selected += 1
                self._turn.notify_all()

    def _wait_until_written(self, ticket: int) -> None:
        with self._turn:
            self._turn.wait_for(lambda: self._written_up_to == ticket)

    def _mark_written(self, ticket: int) -> None:
        with self._turn:
            self._written.add(ticket)
            while self._written_up_to in self._written:
                self._written.remove(self._written_up_to)
                self._written_up_to += 1
            self._turn.notify_all()

    def _fail(self, ticket: int, error: BaseException) -> None:
        with self._turn:
            self._failures.append((ticket, error))
        self._halt()

    def _halt(self) -> None:
        """Take no more blocks, nor wait for one from a source that is slow."""
        self._stop = True
        self._reader.cancel()

    def _failed_before(self, ticket: int) -> bool:
        return any(failed < ticket for failed, _ in self._failures)

    def _raise_first_failure(self) -> None:
        """Raise the fault that comes first in the file; one beyond the limit does not count."""
        failures = [f for f in self._failures if self._end < 0 or f[0] <= self._end]
        foreign = [error for _, error in failures if not isinstance(error, Vec2embError)]
        if foreign:
            raise foreign[0]
        hard = min(failures, key=lambda failure: failure[0], default=None)
        odd = sorted((o for o in self._odd if hard is None or o[0] <= hard[0]), key=lambda o: o[0])
        if odd:
            error = odd[0][2]
            number = sum(o[1] for o in odd)
            more = "before another fault" if hard else "in all"
            error.message += f" ({number} row{'s' if number > 1 else ''} with such values {more})"
            error.args = (error.message,)
            raise error
        if hard is not None:
            raise hard[1]


def _first_fault(rows: Rows, start: int, stop: int, otherwise: int) -> int:
    """The first position of kept[start:stop] whose row has a fault."""
    return next((p for p in range(start, stop) if rows.fault_of(rows.kept_row(p))[0]), otherwise)
