"""The digest of a file: SHA-256 over the SHA-256 digests of its pieces, so that all cores can compute it.

    digest = sha256(sha256(piece 1) sha256(piece 2) ..)     32 bytes each, one after the other
    piece  = 8 MiB of the file; the last may be shorter, and an empty file has none

A plain SHA-256 is computed from the start of a file to its end, by one core. Pieces are hashed in any order, also while
the file is being written: as soon as a piece is complete.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from ..options.threads import worker_count

PIECE = 8 << 20
_STEP = 1 << 18  # bytes read at a time

ReadInto = Callable[[memoryview, int], int]  # (buffer, offset) -> bytes read, 0 at the end


def file_digest(file: str | int, threads: int | None = None) -> str:
    """The digest of a file, given by its path or descriptor, in hexadecimal; read and hashed on all cores.

    Raises:
        OSError: it cannot be read.
    """
    if isinstance(file, str):
        with open(file, "rb", buffering=0) as opened:
            return file_digest(opened.fileno(), threads)
    descriptor, size = file, os.fstat(file).st_size
    found = hash_pieces([(reader(descriptor), piece) for piece in pieces_of(size)], threads)
    return digest_of(found)


def pieces_of(size: int) -> range:
    """The numbers of the pieces of a file."""
    return range(-(-size // PIECE))


def digest_of(digests: Iterable[bytes]) -> str:
    """The digest, in hexadecimal, of the digests of pieces."""
    return hashlib.sha256(b"".join(digests)).hexdigest()


def reader(descriptor: int) -> ReadInto:
    """How `hash_pieces` reads an open file."""
    return lambda view, offset: os.preadv(descriptor, [view], offset)


def hash_pieces(pieces: list[tuple[ReadInto, int]], threads: int | None = None) -> list[bytes]:
    """SHA-256 of pieces, each given as what reads its file and its number; hashed on all cores.

    Raises:
        OSError: a file cannot be read.
    """
    found = [b""] * len(pieces)
    failures: list[BaseException] = []
    left: Iterator[tuple[int, tuple[ReadInto, int]]] = iter(enumerate(pieces))
    lock = threading.Lock()

    def work() -> None:
        buffer = memoryview(bytearray(_STEP))
        try:
            while not failures:
                with lock:
                    place, (read, piece) = next(left)
                found[place] = hash_piece(read, piece, buffer)
        except StopIteration:
            pass
        except BaseException as error:
            failures.append(error)

    workers = [
        threading.Thread(target=work, name=f"vec2emb-hash-{number}")
        for number in range(min(worker_count(threads), len(pieces)) - 1)
    ]
    started = []
    for worker in workers:
        with suppress(RuntimeError):  # no thread to be had: the others do its share
            worker.start()
            started.append(worker)
    try:
        work()
    finally:
        left = iter(())
        for worker in started:
            worker.join()
    if failures:
        raise failures[0]
    return found


def hash_piece(read: ReadInto, piece: int, buffer: memoryview) -> bytes:
    """SHA-256 of one piece of a file."""
    digest, at, stop = hashlib.sha256(), piece * PIECE, (piece + 1) * PIECE
    while at < stop and (count := read(buffer[: stop - at], at)):
        digest.update(buffer[:count])
        at += count
    return digest.digest()


class WrittenPieces:
    """The pieces of a file that is being written, by several threads and in any order.

    With `early`, the thread that completes a piece hashes it at once, while its bytes are still in the cache. A later
    write into the piece discards that hash, so `finish` never uses one of other bytes.

    Attributes:
        early: whether pieces are hashed while the file is being written.
        read: how its bytes are read.
        hashes: SHA-256 of pieces by their number.
    """

    def __init__(self, read: ReadInto) -> None:
        self.early = False
        self.read = read
        self._own = threading.local()  # each thread's buffer
        self._lock = threading.Lock()
        self._written: dict[int, int] = {}  # piece -> bytes written into it
        self._writes: dict[int, int] = {}  # piece -> how often it was written to
        self.hashes: dict[int, bytes] = {}

    def wrote(self, offset: int, count: int) -> None:
        """Note that bytes were written; call it after each write."""
        due = []
        with self._lock:
            while count:
                piece, inside = divmod(offset, PIECE)
                part = min(count, PIECE - inside)
                self.hashes.pop(piece, None)
                self._writes[piece] = self._writes.get(piece, 0) + 1
                self._written[piece] = self._written.get(piece, 0) + part
                if self.early and self._written[piece] == PIECE:
                    due.append((piece, self._writes[piece]))
                offset, count = offset + part, count - part
        for piece, writes in due:
            digest = hash_piece(self.read, piece, self._buffer())
            with self._lock:
                if self._writes[piece] == writes:  # nothing was written meanwhile
                    self.hashes[piece] = digest

    def _buffer(self) -> memoryview:
        try:
            buffer: memoryview = self._own.buffer
        except AttributeError:
            buffer = self._own.buffer = memoryview(bytearray(_STEP))
        return buffer

    def missing(self, size: int) -> list[int]:
        """The pieces of the finished file that have no hash."""
        self.hashes.pop(size // PIECE, None)  # which may have been cut
        return [piece for piece in pieces_of(size) if piece not in self.hashes]

    def finish(self, size: int, threads: int | None = None) -> str:
        """The digest of the file, once it has its final content; pieces without a hash are hashed on all cores."""
        return finish_all([(self, size)], threads)[0]


def finish_all(files: list[tuple[WrittenPieces, int]], threads: int | None = None) -> list[str]:
    """The digests of files of these sizes, as `WrittenPieces.finish`; the pieces of all are hashed side by side."""
    missing = [(written, piece) for written, size in files for piece in written.missing(size)]
    found = hash_pieces([(written.read, piece) for written, piece in missing], threads)
    for (written, piece), digest in zip(missing, found, strict=True):
        written.hashes[piece] = digest
    return [digest_of(written.hashes[piece] for piece in pieces_of(size)) for written, size in files]
