"""File systems of fsspec by URL, and what their errors mean."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import InputError, MissingPackageError, SourceError, TryAgainError, UsageError, Vec2embError, needed
from ..urls import cleaned, label_of

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

T = TypeVar("T")
Info = Mapping[str, Any]  # what a file system says of a file: each has names and types of its own

_POLL = 0.1  # seconds at most until a wait notices that nobody wants it any more
_GRACE = 2.0  # seconds of silence that it then still waits: what comes may be wanted after all


class TransferError(Exception):
    """Something that may go well if it is tried again.

    Attributes:
        reason: in a few words, without secrets.
        after: seconds that the server asks to wait.
    """

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after = after


def filesystem(url: str) -> tuple[AbstractFileSystem, str]:
    """The fsspec file system of a URL, and the path in it.

    Raises:
        MissingPackageError: fsspec, or what it needs for this protocol, is not there.
        UsageError: there is no such protocol.
    """
    with needed("fsspec", "remote", "reading a URL"):
        import fsspec
    options: dict[str, object] = {}
    protocol = url.partition("://")[0]
    if protocol in ("http", "https"):
        # As curl does: proxies and ~/.netrc are those of the environment, unless fsspec's configuration says else.
        configured = {**fsspec.config.conf.get("http", {}), **fsspec.config.conf.get("https", {})}
        options["client_kwargs"] = {"trust_env": True, **configured.get("client_kwargs", {})}

    def refused(error: Exception) -> Exception:
        if isinstance(error, ImportError):
            return MissingPackageError.of(str(error.name or error), "remote", f"reading {protocol}://")
        if isinstance(error, ValueError):
            reason = cleaned(str(error))
            return UsageError("unknown-protocol", f"the URL cannot be read ({reason})", found=label_of(url))
        found = meaning(error, label_of(url))  # some connect already, as ftp does
        return no_network(label_of(url), found.reason) if isinstance(found, TransferError) else found

    system, path = in_our_words(lambda: fsspec.core.url_to_fs(url, **options), refused)
    return system, path


def in_our_words(call: Callable[[], T], meaning: Callable[[Exception], Exception]) -> T:
    """What a call gives; what it raises is raised as `meaning` has it.

    Nothing of the first error stays with the second, not even as its context: it may hold a URL with its secrets, or
    what cannot be pickled, and tblib (on a Dask worker, for one) pickles an error with all that led to it.
    """
    try:
        return call()
    except Exception as error:
        found = meaning(error)
    raise found


def meaning(error: BaseException, label: str) -> Vec2embError | TransferError:
    """What an error of a file system means: a fault of ours to be raised, or something to be tried again."""
    if isinstance(error, Vec2embError | TransferError):
        return error
    names = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, FileNotFoundError) or names & {"NoSuchBucket", "RepositoryNotFoundError"}:
        return InputError("not-found", "there is no such file", path=label)
    if isinstance(error, PermissionError) or any("Credential" in name or "GatedRepo" in name for name in names):
        return access_denied(label, reason_of(error))
    if isinstance(error, IsADirectoryError):
        return InputError("is-a-folder", "this is a folder, not a file of vectors", path=label)
    if isinstance(error, ImportError):
        return MissingPackageError.of(str(error.name or error), "remote", "reading this URL")
    if isinstance(error, NotImplementedError):
        return UsageError("unsupported-by-store", "the file system of this URL cannot do that", found=label)
    if isinstance(error, ValueError | TypeError) and not isinstance(error, OSError):
        return SourceError("read-failed", f"reading failed ({reason_of(error)})", path=label)
    return TransferError(reason_of(error))


def access_denied(label: str, reason: str) -> InputError:
    """The error of a file that is not for everyone."""
    return InputError(
        "access-denied", f"the server does not give access ({reason})", path=label,
        hint="log in as the service has it (environment variables, its configuration, ~/.netrc), or use a signed URL",
    )  # fmt: skip


def reason_of(error: BaseException) -> str:
    """An error in a few words, without secrets."""
    text = cleaned(str(error)).strip().partition("\n")[0]
    name = type(error).__name__
    return f"{name}: {text[:200]}" if text else name


def no_network(label: str, reason: str) -> TryAgainError:
    """The error of a server that does not answer as it should, however often it is asked."""
    return TryAgainError("network", f"the file cannot be read over the network ({reason})", path=label)


class Calls:
    """Runs coroutines of a file system on its loop, and waits for them so that the wait can be given up."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None, label: str) -> None:
        self.given_up = threading.Event()
        self._loop = loop
        self._label = label

    def start(self, coroutine: Coroutine[object, None, T]) -> Future[T]:
        """Begin, without waiting."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def result(self, future: Future[T]) -> T:
        """Wait for the end; whatever it raises is raised here.

        Raises:
            SourceError: it was given up.
        """
        begun = time.monotonic()
        try:
            while not future.done():
                if time.monotonic() - begun > _GRACE:
                    self.check()
                try:
                    future.result(_POLL)
                except TimeoutError:  # of the wait, or what the coroutine itself raised: then it is done
                    continue
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def pause(self, seconds: float) -> None:
        """Wait a while."""
        self.given_up.wait(seconds)
        self.check()

    def check(self) -> None:
        """Raise SourceError if nobody wants the file any more."""
        if self.given_up.is_set():
            raise SourceError("read-failed", "reading failed (it was given up)", path=self._label)
