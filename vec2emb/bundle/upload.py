"""A bundle at a URL: written on this machine first, then uploaded, the tensors last.

An object store moves no folder into place, so for a while a part of the bundle is there. Without its tensors it is
none; with those of another one its checksums disagree, and `vec2emb.load` compares them. What fails midway is taken
back, unless the store has taken the tensors for good: then the new bundle is whole, and the old one gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Any, Self, TypeVar

from ..errors import UsageError, Vec2embError
from ..io.filesystem import writing
from ..io.remote import again, filesystem
from ..io.remote.uploads import check_size, state, upload
from ..io.urls import label_of, name_of
from .publication import CONFIG, MAX_CONFIG, MODEL, VOCAB, Publication, Target, is_folder_name

T = TypeVar("T")


class RemoteTarget(Target):
    """Where a bundle is to stand, behind a URL; the `paths` are those of its file system."""

    def __init__(self, url: str) -> None:
        self.location, self.label = url, label_of(url)
        if url.startswith(("http://", "https://")):
            raise UsageError(
                "output-to-web", "nothing can be written to a web server", found=self.label,
                hint="write to a folder, or to an object store such as s3://BUCKET/NAME",
            )  # fmt: skip
        self.name = name_of(url)
        self.is_folder = is_folder_name(self.name, self.label)
        self.system, path = filesystem(url)
        self.path = path.rstrip("/")
        stem = self.path.removesuffix(".safetensors")
        self.paths = (
            {name: f"{self.path}/{name}" for name in (MODEL, VOCAB, CONFIG)}
            if self.is_folder
            else {MODEL: self.path, VOCAB: f"{stem}.vocab.txt", CONFIG: f"{stem}.vec2emb.json"}
        )

    def holds_bundle(self) -> bool:
        """Whether a bundle stands there now."""
        if not self._ask(lambda: self.system.exists(self.paths[MODEL])):
            return False
        try:
            config = json.loads(self._ask(lambda: self.system.cat_file(self.paths[CONFIG], end=MAX_CONFIG)))
        except (Vec2embError, ValueError, RecursionError):
            return False
        return isinstance(config, dict) and "format_version" in config

    def is_free(self) -> bool:
        """Whether nothing stands there."""
        with contextlib.suppress(Exception):
            self.system.invalidate_cache()
        if self.is_folder:
            return not self._ask(lambda: self.system.find(self.path, maxdepth=1))
        return not any(self._ask(lambda path=path: self.system.exists(path)) for path in self.paths.values())  # type: ignore[misc]

    def _check_place(self) -> None:
        """There are no mounts and no names that are too long."""

    def publication(self, if_exists: str = "error") -> Publication:
        """What writes to it."""
        return RemotePublication(self, if_exists)

    def _is_folder_now(self) -> bool:
        return self.is_folder

    def _ask(self, call: Callable[[], T]) -> T:
        return again(call, self.location)


class RemotePublication(Publication):
    """A folder for temporary files, whose bundle is uploaded by `publish`."""

    def __init__(self, target: RemoteTarget, if_exists: str) -> None:
        super().__init__(target, if_exists)
        self.hidden = self.aside = self.lock = ""  # nothing is hidden at a URL
        self._remote = target
        self._folder = ""

    def __enter__(self) -> Self:
        self.target.check(self.if_exists)
        with writing(self.target.label, "a copy of it to upload", "set TMPDIR to a folder with room"):
            self._folder = tempfile.mkdtemp(prefix="vec2emb-")
        self._undo.callback(shutil.rmtree, self._folder, ignore_errors=True)
        return self

    def path(self, name: str) -> str:
        """Where to write a file of this name before publishing."""
        return os.path.join(self._folder, name)

    def publish(self) -> None:
        """Upload everything, the tensors last.

        Raises:
            OutputError: the store refuses, or something has come to stand there meanwhile.
            TryAgainError: the network fails.
        """
        target, system = self._remote, self._remote.system
        before: dict[str, bytes] = {}
        if not target.is_free():
            target.check(self.if_exists)
            before = {name: again(lambda name=name: system.cat_file(target.paths[name]), target.location)  # type: ignore[misc]
                      for name in (VOCAB, CONFIG)}  # fmt: skip
        tensors = again(self._tensors, target.location)
        try:
            for name in (VOCAB, CONFIG):
                self._upload(name)
                self._check(name)
            self._upload(MODEL)
        except BaseException as error:
            self._take_back(before, tensors, error)
            raise
        self._check(MODEL)

    def _upload(self, name: str) -> None:
        upload(self._remote.system, self.path(name), self._remote.paths[name], self._remote.label)

    def _check(self, name: str) -> None:
        check_size(self._remote.system, self.path(name), self._remote.paths[name], self._remote.label)

    def _tensors(self) -> tuple[Any, ...] | None:
        return state(self._remote.system, self._remote.paths[MODEL])

    def _take_back(self, before: dict[str, bytes], tensors: tuple[Any, ...] | None, error: BaseException) -> None:
        """Leave what was there before: nothing, or a bundle whose `tensors` nobody has touched."""
        system, paths = self._remote.system, self._remote.paths
        try:
            if again(self._tensors, self._remote.location) != tensors:  # they came before the failure: all is there
                return
            for name, data in before.items():
                system.pipe_file(paths[name], data)
        except Exception:
            if isinstance(error, Vec2embError):
                what = "what was there is no bundle any more" if before else "a part of it may be there"
                error.hint = f"{what}: run the command again"
            return
        for name in (VOCAB, CONFIG, MODEL) if not before else ():
            with contextlib.suppress(Exception):
                system.rm_file(paths[name])
