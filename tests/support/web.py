"""A web server that does what real ones do, good and bad, in a thread of the test."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """A file, and how it is served.

    Attributes:
        data: its bytes.
        ranges: whether parts can be asked for.
        etag: of this version.
        cuts: of the answers that come first: after how many bytes the connection is cut.
        statuses: of the answers that come first: this status instead of the file.
        length: `true`, `none` (the end of the connection is the end), `chunked`, or a wrong number.
        headers: further ones.
        next: what it becomes after so many answers: (number, the other).
    """

    data: bytes
    ranges: bool = True
    etag: str | None = '"v1"'
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    length: str | int = "true"
    headers: dict[str, str] = field(default_factory=dict)
    next: tuple[int, Served] | None = None
    answers: int = 0


class Web:
    """The server: what it serves, and what it was asked.

    Attributes:
        files: by path.
        asked: (path, headers) of each request.
    """

    def __init__(self, port: int) -> None:
        self.files: dict[str, Served] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.root = f"http://127.0.0.1:{port}"

    def put(self, path: str, data: bytes, **how: object) -> str:
        """Serve a file; its URL."""
        self.files[path] = Served(data, **how)  # type: ignore[arg-type]
        return f"{self.root}{path}"

    def ranges(self) -> list[str | None]:
        """The `Range` of each request."""
        return [headers.get("Range") for _, headers in self.asked]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    web: Web

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.web.asked.append((self.path, dict(self.headers)))
        served = self.web.files.get(path)
        if served is None:
            self.send_error(404)
            return
        if served.next is not None and served.answers >= served.next[0]:
            served = self.web.files[path] = served.next[1]
        served.answers += 1
        if served.statuses:
            status = served.statuses.pop(0)
            self.send_response(status)
            if status in (301, 302):
                self.send_header("Location", served.headers["Location"])
            if status == 429:
                self.send_header("Retry-After", "0")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self._send(served)

    def _send(self, served: Served) -> None:
        start, stop, status = 0, len(served.data), 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        current = self.headers.get("If-Range") in (None, served.etag, formatdate(0, usegmt=True))
        if asked and served.ranges and current:
            start, status = int(asked[1]), 206
            stop = min(stop, int(asked[2]) + 1) if asked[2] else stop
            if start >= len(served.data):
                self.send_response(416)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
        body = served.data[start:stop]
        self.send_response(status)
        if served.etag:
            self.send_header("ETag", served.etag)
        if served.ranges:
            self.send_header("Accept-Ranges", "bytes")
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(served.data)}")
        for name, value in served.headers.items():
            self.send_header(name, value)
        if served.length == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
        elif served.length != "none":
            self.send_header("Content-Length", str(len(body) if served.length == "true" else served.length))
        else:
            self.close_connection = True
        self.end_headers()
        cut = bool(served.cuts)
        if cut:
            body = body[: served.cuts.pop(0)]
            self.close_connection = True
            if served.length == "chunked":
                self.wfile.write(b"%x\r\n%b" % (len(body) + 9, body))
                return
        if served.length == "chunked":
            body = b"".join(
                b"%x\r\n%b\r\n" % (len(piece), piece)
                for piece in (body[at : at + 5000] for at in range(0, len(body), 5000))
            )
            body += b"0\r\n\r\n"
        if isinstance(served.length, int):
            self.close_connection = True
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)
            if cut or isinstance(served.length, int):
                time.sleep(0.05)  # what has come is read before the cut is seen


@contextlib.contextmanager
def serving() -> Iterator[Web]:
    """A server on a free port of this machine."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    handler.web = web = Web(server.server_address[1])  # type: ignore[attr-defined]
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01))
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
