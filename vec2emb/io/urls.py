"""URLs among paths: what is one, what may be shown of it, and what is recorded.

    https://host/vectors.txt    s3://bucket/vectors.txt    hf://org/repo/vectors.txt    memory://vectors.txt

A path is a URL if it begins with a scheme of two letters or more and `://` and no file of that name is there: so
neither `C:\\vectors.txt` nor `a:b.txt` is one. `file://` stands for a path of this machine. User names, passwords and
queries may be secrets, and are neither shown nor recorded.
"""

from __future__ import annotations

import os
import re

from ..errors import UsageError

# `re` compiles these when the first URL is met; most conversions meet none.
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]+"
_URL = rf"(?:{_SCHEME}::)*{_SCHEME}://"
_USER = rf"({_SCHEME}://)[^/?#\s]*@"
_QUERY = rf"({_SCHEME}://[^\s?#]*)[?#]\S+"
_SIGNED = (
    r"(?i)[?&;#](?:[^=&;#]*(?:sig|token|secret|pass|pwd|credential|auth|key|sas|jwt|session|hmac)[^=&;#]*"
    r"|x-(?:amz|goog|ms)-[^=&;#]*)="
)


def is_url(path: object) -> bool:
    """Whether something names a file of another machine."""
    return isinstance(path, str) and _has_scheme(path) and not path.startswith("file://") and not os.path.lexists(path)


def _has_scheme(path: str) -> bool:
    return "://" in path and re.match(_URL, path) is not None


def plain(path: str) -> str:
    """A `file://` URL as the path that it stands for; anything else as it is.

    Raises:
        UsageError: it names another machine.
    """
    if not path.startswith("file://"):
        return path
    from urllib.parse import unquote

    host, slash, rest = path.removeprefix("file://").partition("/")
    if host not in ("", "localhost") or not slash:
        raise UsageError(
            "file-url", "a file:// URL names a file of this machine", expected="file:///PATH", found=label_of(path)
        )
    return unquote(slash + rest, errors="surrogateescape")


def label_of(path: str) -> str:
    """What a message calls a path: of a URL neither user, password nor query."""
    return cleaned(path) if _has_scheme(path) else path


def cleaned(text: str) -> str:
    """A text without the users, passwords and queries of the URLs in it."""
    return re.sub(_QUERY, r"\1?..", re.sub(_USER, r"\1", text))


def name_of(url: str) -> str:
    """The base name of what a URL leads to, which is what gets recorded."""
    first = url.split("::")[0] if not _has_scheme(url) or "::" not in url else _first_with_path(url)
    scheme, _, rest = (without_secrets(first) or "").partition("://")  # of a store `?` may be part of a name
    if scheme in ("http", "https"):
        from urllib.parse import unquote

        rest = unquote(re.split("[?#]", rest, maxsplit=1)[0])
    host, _, path = rest.partition("/")
    name = path.rstrip("/").rpartition("/")[2]
    return name or host.rpartition("@")[2]


def _first_with_path(url: str) -> str:
    """Of a chain as `simplecache::s3://bucket/a`, the first link that names something."""
    return next((link for link in url.split("::") if link.partition("://")[2]), url)


def without_secrets(url: str | None) -> str | None:
    """A URL that may be recorded: without user and password, and without a query that signs or holds a key."""
    if url is None or not _has_scheme(url):
        return url
    shown = re.sub(_USER, r"\1", url)
    return re.split("[?#]", shown, maxsplit=1)[0] if re.search(_SIGNED, shown) else shown


def joined(url: str, name: str) -> str:
    """The URL of a file in the folder that a URL names; a query stays at the end."""
    if url.startswith(("http://", "https://")):
        head, mark, tail = re.fullmatch(r"([^?#]*)([?#]?)(.*)", url, re.DOTALL).groups()  # type: ignore[union-attr]
        return f"{head.rstrip('/')}/{name}{mark}{tail}"
    return f"{url.rstrip('/')}/{name}"


def local_only(path: str, what: str) -> None:
    """Refuse a URL where only a file of this machine can be.

    Raises:
        UsageError: the path is a URL.
    """
    if is_url(path):
        raise UsageError(
            "local-only", f"{what} cannot be at a URL", found=label_of(path), hint="name a file of this machine"
        )
