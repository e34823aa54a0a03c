"""Bundles behind URLs: downloaded once, checked, and opened from there.

What `vec2emb.json` says names the download: it holds the checksums of the other two files, so the same settings are
the same bundle, wherever they come from. It is put into `$VEC2EMB_CACHE`, else the user's folder for caches, complete
or not at all, and may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from ..errors import BundleError, InputError, UsageError
from ..io.atomic import AtomicOutput, tidy
from ..io.digest import WrittenPieces, reader
from ..io.filesystem import sync, write_all, write_file, writing
from ..io.remote import open_remote, read_whole
from ..io.urls import joined, label_of, name_of
from ..safetensors_files.sharding import shards_of
from .publication import CONFIG, MAX_CONFIG, MODEL, VOCAB

_PIECE = 1 << 20


def cached(url: str) -> str:
    """The folder of this machine that has the bundle behind a URL; downloaded unless it is there already.

    Raises:
        InputError: there is no bundle, or the server refuses.
        BundleError: its files are not those that its vec2emb.json names.
        OutputError: the folder of downloads cannot be written to, or is full.
        TryAgainError: the network fails.
    """
    urls = _files_of(url)
    config = _read_config(urls, url)
    root = _root()
    folder = os.path.join(root, hashlib.sha256(config).hexdigest()[:32])
    if os.path.isdir(folder):
        tidy(root)
        return folder
    with writing(root, "the download", "set VEC2EMB_CACHE to a folder with room that can be written to"):
        os.makedirs(root, exist_ok=True)
        tidy(root)
        with _Download(folder, root, lambda: None) as output:
            if not os.path.isdir(folder):  # else another run downloaded it meanwhile
                _fill(output.hidden, urls, config, url)
                for name in (VOCAB, MODEL, CONFIG):
                    sync(output.path(name))
                output.publish()
    return folder


class _Download(AtomicOutput):
    """The folder of a download, which several runs may want at the same time: the first one downloads it."""

    shared = True


def _fill(part: str, urls: dict[str, str], config: bytes, url: str) -> None:
    """Download the files of a bundle into a folder, and compare them with what its settings say."""
    recorded = _recorded(config, url)
    for name in (VOCAB, MODEL):
        found = _download(urls[name], os.path.join(part, name))
        if found != recorded[name]:
            raise BundleError(
                "bundle-damaged", f"{name_of(urls[name])} is not the one that {CONFIG} names", path=label_of(url),
                expected="{} bytes, digest {}".format(*recorded[name]), found="{} bytes, digest {}".format(*found),
                hint="an upload that failed or is under way? Upload the bundle again",
            )  # fmt: skip
    write_file(os.path.join(part, CONFIG), [config], flush=False)


@contextlib.contextmanager
def downloaded(url: str) -> Iterator[str]:
    """A copy of a bundle as it is, damaged or not, in a folder for temporary files.

    Raises:
        InputError: there is no bundle.
        OutputError: it does not fit on the disk.
        TryAgainError: the network fails.
    """
    urls = _files_of(url)
    config = _read_config(urls, url)
    with contextlib.ExitStack() as undo:
        with writing(label_of(url), "a copy of it", "set TMPDIR to a folder with room"):
            folder = tempfile.mkdtemp(prefix="vec2emb-")
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
            write_file(os.path.join(folder, CONFIG), [config], flush=False)
            for name in (VOCAB, MODEL):
                try:
                    _download(urls[name], os.path.join(folder, name))
                except InputError as error:
                    if error.code != "not-found":  # else whoever looks at the copy says what is missing
                        raise
        yield folder


def _root() -> str:
    """The folder of all downloads."""
    above = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("VEC2EMB_CACHE") or os.path.join(above, "vec2emb")


def _files_of(url: str) -> dict[str, str]:
    """The URL of each file of a bundle."""
    name = name_of(url)
    if not name.endswith(".safetensors"):
        return {name: joined(url, name) for name in (MODEL, VOCAB, CONFIG)}
    head, _, tail = url.rpartition(".safetensors")
    if name == MODEL:
        head = head.removesuffix(MODEL.removesuffix(".safetensors"))
        return {MODEL: url, VOCAB: f"{head}{VOCAB}{tail}", CONFIG: f"{head}{CONFIG}{tail}"}
    return {MODEL: url, VOCAB: f"{head}.vocab.txt{tail}", CONFIG: f"{head}.vec2emb.json{tail}"}


def _read_config(urls: dict[str, str], url: str) -> bytes:
    try:
        config = read_whole(urls[CONFIG], MAX_CONFIG)
    except InputError as error:
        if error.code not in ("not-found", "is-a-folder"):
            raise
        raise InputError(
            "not-a-bundle", "this is no bundle", path=label_of(url), expected=f"{label_of(urls[CONFIG])} beside it"
        ) from None
    try:
        shards = shards_of(json.loads(config))
    except (ValueError, RecursionError):
        return config  # whoever opens it says what is wrong
    if shards:
        raise UsageError(
            "shards-at-a-url", "shards are not opened where they are", expected="a folder of this machine",
            found=label_of(url), hint="copy the folder here first",
        )  # fmt: skip
    return config


def _recorded(config: bytes, url: str) -> dict[str, tuple[int, str]]:
    """Bytes and digest that the files should have."""
    found: dict[str, tuple[int, str]] = {}
    try:
        files: dict[str, Any] = json.loads(config)["files"]
        for key, facts in files.items():
            name = MODEL if key.endswith(".safetensors") else VOCAB
            found[name] = int(facts["bytes"]), str(facts["digest"])
        return {name: found[name] for name in (MODEL, VOCAB)}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise BundleError(
            "bundle-config", f"the settings do not say what the files should be ({type(error).__name__})",
            path=label_of(url),
        ) from None  # fmt: skip


def _download(url: str, path: str) -> tuple[int, str]:
    """Copy a file; its bytes and digest."""
    size, buffer = 0, memoryview(bytearray(_PIECE))
    with open_remote(url) as source, open(path, "x+b", buffering=0) as file:
        written = WrittenPieces(reader(file.fileno()))
        written.early = True
        while count := source.readinto(buffer):
            write_all(file.fileno(), buffer[:count], size)
            written.wrote(size, count)
            size += count
        source.check_unchanged()
        return size, written.finish(size)
