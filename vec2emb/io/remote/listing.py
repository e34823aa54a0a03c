"""The files that a URL names: one, those in a folder, or those of a pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ..urls import label_of
from .files import PAUSE, TRIES
from .systems import Calls, Info, TransferError, filesystem, meaning, no_network

T = TypeVar("T")


def listed(url: str, pattern: Iterable[str]) -> list[tuple[str, int | None]] | None:
    """The files that a URL names, each with its size, by name; None for a single file of a web server.

    Args:
        pattern: the characters that make a pattern. Of a web server only `*` does, and only a URL that ends with `/` is
            a folder, since nothing else tells one there.

    Raises:
        InputError: there is nothing of that name.
        TryAgainError: the network fails.
    """
    system, path = filesystem(url)
    is_web = url.startswith(("http://", "https://"))
    is_pattern = "*" in path.partition("?")[0] if is_web else bool(set(pattern) & set(path))
    if is_web and not is_pattern and not path.endswith("/"):
        return None

    def find() -> dict[str, Info]:
        if is_pattern:
            found: dict[str, Info] = system.glob(path, detail=True)
        elif path.endswith("/") if is_web else system.isdir(path):
            found = system.find(path, detail=True)
        else:
            found = {path: system.info(path)}
        return found

    listing = again(find, url)
    files = [(name, info.get("size")) for name, info in listing.items() if info.get("type") != "directory"]
    return [(system.unstrip_protocol(name), size) for name, size in sorted(files)]


def again(call: Callable[[], T], url: str) -> T:
    """What a call of a file system gives, which is repeated while the network fails.

    Raises:
        Vec2embError: what it raises, in our words.
    """
    label = label_of(url)
    calls = Calls(None, label)
    reason = ""
    for attempt in range(TRIES):
        if attempt:
            calls.pause(PAUSE * 2 ** (attempt - 1))
        try:
            return call()
        except Exception as error:
            found = meaning(error, label)
        if not isinstance(found, TransferError):
            raise found from None
        reason = found.reason
    raise no_network(label, f"{reason}; tried {TRIES} times")


def is_folder(url: str) -> bool:
    """Whether a URL names a folder; of a web server's, whether it ends with `/`."""
    if url.startswith(("http://", "https://")):
        return url.endswith("/")
    system, path = filesystem(url)
    return url.endswith("/") or again(lambda: bool(system.isdir(path)), url)
