"""Files of web servers, through the session of fsspec's HTTP file system, so that its configuration counts.

The bytes are asked for as they are (`Accept-Encoding: identity`) and taken as they come: a server that packs them all
the same only adds a layer that is seen through. A request that begins inside the file names the version that it is
about (`If-Range`), so that two versions are never put together.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ...errors import InputError, UsageError, Vec2embError
from .facts import Digest, Facts, changed, digest_of
from .systems import Calls, TransferError, access_denied, in_our_words, meaning

if TYPE_CHECKING:
    import aiohttp
    from fsspec import AbstractFileSystem

PIECE = 1 << 20  # bytes gathered before they are handed over from fsspec's thread
CONNECT, READ = 30.0, 60.0  # seconds until a server that says nothing is taken for gone

_AGAIN = (408, 425, 429)  # and those from 500 on


class HttpOrigin:
    """A file of a web server.

    Attributes:
        label: its URL, without secrets.
    """

    def __init__(self, system: AbstractFileSystem, url: str, label: str) -> None:
        self.label = label
        self.calls = Calls(system.loop, label)
        self._system = system
        self._url = url

    def open(self, start: int, window: int | None, known: Facts | None) -> tuple[Facts, HttpStream]:
        """Ask for the bytes from `start` on; `window` says how many are enough. The stream may begin before `start`.

        Raises:
            TransferError: it may go well the next time.
            InputError: the server refuses.
            TryAgainError: the file is not the one that is `known`.
        """
        future = self.calls.start(self._get(start, window, known))
        try:
            response = in_our_words(lambda: self.calls.result(future), self._meaning)
        except BaseException:
            future.add_done_callback(self._let_go)  # an answer that comes all the same
            raise
        stream = HttpStream(response, self.calls, self._meaning)
        try:
            return self._understand(response, start, known, stream)
        except BaseException:
            stream.close()
            raise

    def _let_go(self, future: Future[aiohttp.ClientResponse]) -> None:
        if not future.cancelled() and future.exception() is None:
            self._system.loop.call_soon_threadsafe(future.result().close)

    async def _get(self, start: int, window: int | None, known: Facts | None) -> aiohttp.ClientResponse:
        import aiohttp

        headers = {"Accept-Encoding": "identity"}
        named = known is not None and (known.size is not None or known.validator is not None)
        if named and (start or window is not None):
            stop = "" if window is None else start + window - 1
            headers["Range"] = f"bytes={start}-{stop}"
            if known is not None and known.validator is not None:
                headers["If-Range"] = known.validator
        options = dict(self._system.kwargs)
        headers = {**options.pop("headers", {}), **headers}
        options.setdefault("timeout", aiohttp.ClientTimeout(total=None, sock_connect=CONNECT, sock_read=READ))
        session = await self._system.set_session()
        url = self._system.encode_url(self._url)
        return await session.get(url, headers=headers, auto_decompress=False, **options)  # type: ignore[no-any-return]

    def _understand(
        self, response: aiohttp.ClientResponse, start: int, known: Facts | None, stream: HttpStream
    ) -> tuple[Facts, HttpStream]:
        status, headers = response.status, response.headers
        if status == 206 and known is not None:
            found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", headers.get("Content-Range", "").strip())
            if found is None:
                raise TransferError("the server's answer does not say which part of the file it is")
            stream.start, total = int(found[1]), found[3]
            other_size = known.size is not None and total not in ("*", str(known.size))
            if stream.start > start or other_size or _versions_differ(headers, known):
                raise changed(self.label)
            return known, stream
        if status != 200:
            raise self._refused(response)
        facts = _facts_of(headers)
        if known is not None and (facts.size, facts.version) != (known.size, known.version):
            raise changed(self.label)
        return facts, stream

    def _refused(self, response: aiohttp.ClientResponse) -> Vec2embError | TransferError:
        status = response.status
        said = f"{status} {response.reason or ''}".strip()
        if status in (404, 410):
            return InputError("not-found", "there is no such file", path=self.label, found=said)
        if status in (401, 403, 407):
            return access_denied(self.label, said)
        if status in _AGAIN or status >= 500:
            wait = response.headers.get("Retry-After", "")
            return TransferError(f"the server says {said}", float(wait) if wait.isdecimal() else 0.0)
        if status == 416:
            return TransferError("the file has fewer bytes than the server said")
        return InputError("refused-by-server", "the server does not give the file", path=self.label, found=said)

    def _meaning(self, error: BaseException) -> Vec2embError | TransferError:
        import aiohttp

        if isinstance(error, Vec2embError | TransferError):
            return error
        if isinstance(error, aiohttp.InvalidURL):
            return UsageError("url-form", "this is no URL that can be asked for", found=self.label)
        if isinstance(error, aiohttp.ClientSSLError):
            return InputError("certificate", "the server's certificate is not trusted, or it speaks no TLS that we do",
                              path=self.label, found=type(error).__name__)  # fmt: skip
        if isinstance(error, aiohttp.TooManyRedirects):
            return InputError("refused-by-server", "the server redirects in a circle", path=self.label)
        if isinstance(error, aiohttp.ClientConnectorError):
            return TransferError(f"no connection to {error.host}: {error.os_error.strerror or error.os_error}")
        if isinstance(error, TimeoutError):
            return TransferError("the server does not answer")
        if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError | ConnectionError):
            return TransferError("the connection was cut")
        if isinstance(error, aiohttp.ClientError):
            return TransferError(f"the server's answer cannot be understood, {type(error).__name__}")
        return meaning(error, self.label)

    def check(self, known: Facts) -> None:
        """Nothing to do: every request named the version that it is about."""


class HttpStream:
    """The body of a response; the next piece is under way while the last one is used.

    Attributes:
        start: byte of the file at which it begins.
    """

    def __init__(
        self, response: aiohttp.ClientResponse, calls: Calls, meaning: Callable[[BaseException], Exception]
    ) -> None:
        self.start = 0
        self._response = response
        self._calls = calls
        self._meaning = meaning
        self._piece = memoryview(b"")
        self._coming: Future[bytes] | None = None
        self._failure: BaseException | None = None
        self._ended = False

    def read(self, size: int) -> memoryview:
        """Some bytes, at most `size`; none at the end of the response.

        Raises:
            TransferError: the connection was cut, or is silent.
        """
        if not self._piece and not self._ended:
            future = self._coming or self._calls.start(self._gather())
            self._coming = None
            self._piece = memoryview(self._calls.result(future))
            if not self._ended and self._failure is None:
                self._coming = self._calls.start(self._gather())
        if not self._piece and self._failure is not None:
            raise self._meaning(self._failure) from None
        data, self._piece = self._piece[:size], self._piece[size:]
        return data

    async def _gather(self) -> bytes:
        """The next bytes; what was there before a failure counts, the failure is told later."""
        pieces, size = [], 0
        try:
            while size < PIECE:
                piece = await self._response.content.readany()
                if not piece:
                    self._ended = True
                    break
                pieces.append(piece)
                size += len(piece)
                if self._calls.given_up.is_set():  # somebody waits for the end of this read only
                    break
        except Exception as error:
            self._failure = error
        return b"".join(pieces)

    def close(self) -> None:
        """Let go of the connection."""
        if self._coming is not None:
            self._coming.cancel()
        with contextlib.suppress(RuntimeError):  # the loop is gone: so is the connection
            self._calls.start(self._close())

    async def _close(self) -> None:
        self._response.close()


def _facts_of(headers: Mapping[str, str]) -> Facts:
    length = headers.get("Content-Length", "")
    size = int(length) if length.isdecimal() else None
    tag, modified = headers.get("ETag"), headers.get("Last-Modified")
    return Facts(
        size,
        (tag or "", modified or ""),
        size is not None and headers.get("Accept-Ranges", "").strip().lower() == "bytes",
        _digest_of(headers, size),
        tag if tag and not tag.startswith("W/") else modified,
        size is not None or "chunked" in headers.get("Transfer-Encoding", "").lower(),
    )


def _versions_differ(headers: Mapping[str, str], known: Facts) -> bool:
    found = headers.get("ETag", ""), headers.get("Last-Modified", "")
    return any(now and before and now != before for now, before in zip(found, known.version, strict=True))


def _digest_of(headers: Mapping[str, str], size: int | None) -> Digest | None:
    """The checksum that a server gives of the bytes that it sends, where it surely is one."""
    stored = headers.get("x-goog-stored-content-length", "")
    packed = headers.get("x-goog-stored-content-encoding", "identity") != "identity"
    # Of what Google unpacks on its way the checksum is that of the packed form.
    for value in headers.getall("x-goog-hash", ()) if not packed and stored in ("", str(size)) else ():  # type: ignore[attr-defined]
        for part in value.split(","):
            if part.strip().startswith("md5="):
                return digest_of("md5", part.strip().removeprefix("md5="))
    if "Content-MD5" in headers:
        return digest_of("md5", headers["Content-MD5"].strip())
    found = re.search(r"(?:^|,)\s*sha-256=:([A-Za-z0-9+/=]+):", headers.get("Repr-Digest", ""))
    if found:
        return digest_of("sha256", found[1])
    tag = headers.get("ETag", "").strip('"')
    encrypted = "aws:kms" in headers.get("x-amz-server-side-encryption", "") or any(
        name.lower().startswith("x-amz-server-side-encryption-customer") for name in headers
    )
    if "x-amz-request-id" in {name.lower() for name in headers} and not encrypted:
        return digest_of("md5", tag, is_hex=True)  # none where the object was put together of parts
    return None
