"""All that a kernel says about a block of bytes, so that the stories of two kernels can be compared."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from vec2emb._kernel.codes import Fault, Note, State

NOTES, STATES = tuple(map(int, Note)), tuple(map(int, State))  # as numbers, which are quicker than members


def faults(rows: Any) -> list[tuple[int, int, int]]:
    return [rows.fault_of(row) for row in range(rows.count)]


def seen_of(rows: Any, data: bytes) -> list[Any]:
    return [
        rows.count, rows.lines, rows.blank_inside, rows.blank_after, rows.first_blank, rows.first_fault(),
        rows.tokens(data), [rows.place(row) for row in range(rows.count)], faults(rows),
        [rows.tally(note) for note in NOTES], [rows.tally(note, True) for note in NOTES],
        [rows.rows_in_state(state) for state in STATES], [rows.tally_state(state) for state in STATES],
        rows.below(2), list(rows.kept), rows.runs(0, len(rows.kept)),
    ]  # fmt: skip


def fill_all(fill: Any, rows: Any, dim: int, faulty: set[int]) -> list[Any]:
    """Fill all kept rows, going on after each fault: the answers, and each good row's bytes."""
    count = len(rows.kept)
    out = bytearray(count * dim * 4)
    answers = []
    start = 0
    while start < count:
        answer = fill(start, count, memoryview(out)[start * dim * 4 :])
        answers.append(answer)
        if answer < 0:
            break
        faulty.add(answer)
        start = answer + 1
    for position, row in enumerate(rows.kept):
        if rows.fault_of(row)[0] == Fault.NONFINITE_VALUE:
            faulty.add(position)
    size = dim * 4
    return [answers, [out[i * size : (i + 1) * size] for i in range(count) if i not in faulty]]


def text_story(
    kernel: ModuleType, data: bytes, dim: int, utf8: bool, policy: int, unit_norm: bool, limit: float, seen_too: bool
) -> list[Any]:
    """Everything that a kernel says about a block of text, from the scan to the check."""
    block, its = kernel.Block(dim, buffer=data), kernel.Policy(policy, unit_norm, limit, utf8=utf8)
    rows = block.rows
    index = kernel.TokenIndex()
    index.add(b"the")
    kernel.scan_text(block, its)
    story = [seen_of(rows, data), kernel.profile_text(data, len(data), 5)]
    index.add_rows(data, rows)
    story += [rows.keep(seen_too), seen_of(rows, data), index.blob(0, len(index)), index.unmet(0)]
    story += fill_all(lambda start, stop, out: kernel.fill(block, start, stop, out, its), rows, dim, set())
    story.append(seen_of(rows, data))
    kernel.check(block, its)
    story.append(seen_of(rows, data))
    index.find_rows(data, rows)
    story.append(seen_of(rows, data))
    rows.truncate(rows.count // 2)
    story.append(seen_of(rows, data))
    return story


def record_story(
    kernel: ModuleType, data: bytes, dim: int, width: int, big: bool, utf8: bool, policy: int, unit_norm: bool,
    limit: float,
) -> list[Any]:  # fmt: skip
    """Everything that a kernel says about a block of binary records."""
    block, its = kernel.Block(dim, width, big, data), kernel.Policy(policy, unit_norm, limit, utf8=utf8)
    rows = block.rows
    index = kernel.TokenIndex()
    told: list[Any] = [kernel.scan_binary(block, 5, its), seen_of(rows, data)]
    try:
        index.add_rows(data, rows)
    except ValueError as error:
        told.append(str(error))
    rows.keep(True)
    told += [seen_of(rows, data), index.blob(0, len(index))]
    answers, vectors = fill_all(lambda start, stop, out: kernel.fill(block, start, stop, out, its), rows, dim, set())
    values = np.frombuffer(b"".join(vectors), np.float32)
    # Which bits a NaN carries is not ours to promise; its sign is.
    told += [answers, np.where(np.isnan(values), np.copysign(np.float32(7), values), values).tobytes()]
    kernel.check(block, its)
    told.append(seen_of(rows, data))
    return told
