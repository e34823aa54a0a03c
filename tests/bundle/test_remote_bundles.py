"""Bundles behind URLs: uploaded the tensors last, loaded only whole, never half of one."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from helpers import FIXTURES, run
from web import Web, serving

import vec2emb
from vec2emb import Vec2embError
from vec2emb.errors import BundleError, InputError, OutputError, TryAgainError
from vec2emb.io.remote import uploads

GLOVE = FIXTURES / "glove.6B.50d.sample.txt"
NAMES = ("model.safetensors", "vocab.txt", "vec2emb.json")

pytestmark = [
    pytest.mark.usefixtures("short_pauses", "downloads"),
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:(botocore|moto|s3fs|aiobotocore|werkzeug)"),
]


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    """An S3 of this process: what the environment needs to find it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    found = {
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "hidden", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }  # fmt: skip
    yield found
    server.stop()


@pytest.fixture
def s3(store: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Its file system, with an empty bucket."""
    for name, value in store.items():
        monkeypatch.setenv(name, value)
    system = fsspec.filesystem("s3")
    if system.exists("bucket"):
        system.rm("bucket", recursive=True)
    system.mkdir("bucket")
    return system


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bundle = tmp_path_factory.mktemp("local") / "bundle"
    vec2emb.convert(GLOVE, bundle)
    return bundle


def refusal(call: Any) -> Vec2embError:
    with pytest.raises(Vec2embError) as caught:
        call()
    return caught.value


def contents(system: Any, path: str) -> dict[str, bytes]:
    system.invalidate_cache()
    return {name.rpartition("/")[2]: system.cat_file(name) for name in system.find(path)}


def test_s3_there_and_back(s3: Any, local: Path, tmp_path: Path) -> None:
    s3.put_file(str(GLOVE), f"bucket/in/{GLOVE.name}")
    report = vec2emb.convert(f"s3://bucket/in/{GLOVE.name}", "s3://bucket/out")
    assert (report.path, report.model_path) == ("s3://bucket/out", "s3://bucket/out/model.safetensors")
    assert contents(s3, "bucket/out") == {name: (local / name).read_bytes() for name in NAMES}
    table, expected = vec2emb.load("s3://bucket/out"), vec2emb.load(local)
    assert np.array_equal(table.vectors, expected.vectors)
    assert table.vocab.tokens[:] == expected.vocab.tokens[:]
    again = pickle.loads(pickle.dumps(table))
    assert np.array_equal(again["the"], expected["the"])
    assert str(table.explain("the")) == str(expected.explain("the"))
    assert vec2emb.verify("s3://bucket/out", f"s3://bucket/in/{GLOVE.name}", GLOVE).ok
    found = vec2emb.inspect("s3://bucket/out")
    assert (found.path, found.kind, found.ok) == ("s3://bucket/out", "bundle", True)
    audit = vec2emb.audit("s3://bucket/out", f"s3://bucket/in/{GLOVE.name}")
    assert [source.name for source in audit.sources] == ["s3://bucket/out", f"s3://bucket/in/{GLOVE.name}"]
    assert vec2emb.similar("s3://bucket/out", "the")
    vec2emb.export("s3://bucket/out", "glove", tmp_path / "back.txt", specials="drop")
    assert len(vec2emb.read_vectors(tmp_path / "back.txt")) == 250
    assert [folder.name for folder in (tmp_path / "cache").iterdir()] != []


def test_s3_corpora_and_faults(s3: Any) -> None:
    s3.pipe_file("bucket/texts/a.txt", b"the of the\n")
    s3.pipe_file("bucket/texts/b.txt", b"of\n")
    for corpus in (
        "s3://bucket/texts",
        "s3://bucket/texts/*.txt",
        ["s3://bucket/texts/a.txt", "s3://bucket/texts/b.txt"],
    ):
        assert vec2emb.count_tokens(corpus).most_common(2) == [("of", 2), ("the", 2)]
    for url, code in (
        ("s3://bucket/gone", "not-found"),
        ("s3://no-bucket/a", "not-found"),
        ("s3://bucket/texts", "not-a-bundle"),
    ):
        assert refusal(lambda url=url: vec2emb.inspect(url)).code == code


def test_what_stands_there(s3: Any, local: Path) -> None:
    url = "s3://bucket/a"
    vec2emb.convert(GLOVE, url)
    before = contents(s3, "bucket/a")
    error = refusal(lambda: vec2emb.convert(GLOVE, url, limit=3))
    assert (type(error), error.code) == (OutputError, "target-exists")
    assert str(error).startswith("s3://bucket/a: a bundle is there already")
    assert vec2emb.convert(GLOVE, url, if_exists="keep").kept_existing
    assert refusal(lambda: vec2emb.convert(GLOVE, url, limit=3, if_exists="keep")).code == "target-differs"
    assert contents(s3, "bucket/a") == before
    s3.pipe_file("bucket/a/README.md", b"mine")
    assert vec2emb.convert(GLOVE, url, limit=3, if_exists="replace").rows == 5
    assert len(vec2emb.load(url)) == 5
    assert contents(s3, "bucket/a")["README.md"] == b"mine"
    s3.pipe_file("bucket/b/notes.txt", b"mine")
    assert refusal(lambda: vec2emb.convert(GLOVE, "s3://bucket/b", if_exists="replace")).code == "target-not-a-bundle"
    assert contents(s3, "bucket/b") == {"notes.txt": b"mine"}
    assert refusal(lambda: vec2emb.convert(GLOVE, "s3://bucket/v.txt")).code == "output-suffix"
    assert refusal(lambda: vec2emb.convert(GLOVE, "s3://no-bucket/a")).exit_code in (1, 4)


def test_one_stem_and_positions(s3: Any) -> None:
    vec2emb.convert(GLOVE, "s3://bucket/x/glove.safetensors")
    assert set(contents(s3, "bucket/x")) == {"glove.safetensors", "glove.vocab.txt", "glove.vec2emb.json"}
    assert len(vec2emb.load("s3://bucket/x/glove.safetensors")) == 252
    error = refusal(lambda: vec2emb.attach_positions("s3://bucket/x/glove.safetensors", "learned", 9))
    assert (
        str(error)
        == "a bundle behind a URL is not changed in place: found s3://bucket/x/glove.safetensors; name an output"
    )
    vec2emb.attach_positions(
        "s3://bucket/x/glove.safetensors", "learned", 9, scale="match-positions", output="s3://bucket/y"
    )
    table = vec2emb.load("s3://bucket/y")
    assert table.positions is not None
    table.save("s3://bucket/z")
    assert vec2emb.verify("s3://bucket/z").ok


def broken_after(monkeypatch: pytest.MonkeyPatch, count: int, error: BaseException) -> None:
    """Let the upload after the first `count` fail midway."""
    calls: list[str] = []
    real = uploads.open if hasattr(uploads, "open") else open

    class Failing:
        def __init__(self, file: Any) -> None:
            self._file = file

        def __enter__(self) -> Failing:
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

        def read(self, size: int) -> bytes:
            if self._file.tell():
                raise error
            data: bytes = self._file.read(size // 2)
            return data

    def opened(path: str, mode: str) -> Any:
        calls.append(path)
        file = real(path, mode)
        return Failing(file) if len(calls) > count else file

    monkeypatch.setattr(uploads, "open", opened, raising=False)


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("error", [OSError("reset"), KeyboardInterrupt()], ids=["network", "interrupt"])
def test_an_upload_that_fails(
    count: int, error: BaseException, s3: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing stays of a new bundle, and of one that was there everything."""
    vec2emb.convert(GLOVE, "s3://bucket/old", limit=3)
    before = contents(s3, "bucket/old")
    monkeypatch.setattr(uploads, "_PIECE", 200)
    for target in ("old", "new"):
        with monkeypatch.context() as patch:
            broken_after(patch, count, error)
            with pytest.raises((TryAgainError, KeyboardInterrupt)):
                vec2emb.convert(GLOVE, f"s3://bucket/{target}", if_exists="replace")
    assert contents(s3, "bucket/old") == before
    assert contents(s3, "bucket/new") == {}
    assert len(vec2emb.load("s3://bucket/old")) == 5


def test_parts_of_an_upload_are_removed(s3: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An object in several parts that is not finished costs money, though nobody sees it."""
    large = tmp_path / "large"
    large.write_bytes(os.urandom(6 << 20))
    opening = type(s3)._open
    monkeypatch.setattr(type(s3), "_open", lambda self, path, mode, block_size=None, **more: opening(
        self, path, mode, block_size=5 << 20, **more))  # fmt: skip
    monkeypatch.setattr(uploads, "_PIECE", 4 << 20)
    with monkeypatch.context() as patch:
        failing: Iterator[bytes | BaseException] = iter([large.read_bytes(), KeyboardInterrupt()])

        class Source:
            def __enter__(self) -> Source:
                return self

            def __exit__(self, *_: object) -> None:
                pass

            def read(self, _: int) -> bytes:
                piece = next(failing)
                if isinstance(piece, BaseException):
                    raise piece
                return piece

        patch.setattr(uploads, "open", lambda *_: Source(), raising=False)
        with pytest.raises(KeyboardInterrupt):
            uploads.upload(s3, str(large), "bucket/large", "s3://bucket/large")
    assert not s3.call_s3("list_multipart_uploads", Bucket="bucket").get("Uploads")
    assert not s3.exists("bucket/large")
    uploads.upload(s3, str(large), "bucket/large", "s3://bucket/large")
    assert s3.cat_file("bucket/large") == large.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_half_an_upload_is_refused(name: str, local: Path, tmp_path: Path) -> None:
    """Of two bundles with the same words, a file of one among those of the other."""
    vec2emb.convert(GLOVE, tmp_path / "other", unit_norm=True, unk_init="zeros")
    system = fsspec.filesystem("memory")
    for one in NAMES:
        system.pipe_file(f"/half/{one}", ((tmp_path / "other" if one == name else local) / one).read_bytes())
    if name == "vocab.txt":
        system.pipe_file(f"/half/{one}", (local / one).read_bytes())
        system.pipe_file("/half/vocab.txt", (local / "vocab.txt").read_bytes().replace(b"the\n", b"eht\n", 1))
    error = refusal(lambda: vec2emb.load("memory://half"))
    assert (type(error), error.code) == (BundleError, "bundle-damaged")
    assert "is not the one that vec2emb.json names" in str(error)
    assert not vec2emb.verify("memory://half").ok
    system.pipe_file("/half/vocab.txt", (local / "vocab.txt").read_bytes())
    system.rm_file("/half/model.safetensors")
    assert refusal(lambda: vec2emb.load("memory://half")).code == "not-found"
    assert not vec2emb.verify("memory://half").ok
    system.rm_file("/half/vec2emb.json")
    error = refusal(lambda: vec2emb.load("memory://half"))
    assert (type(error), error.code) == (InputError, "not-a-bundle")
    assert str(error) == "memory://half: this is no bundle: expected memory://half/vec2emb.json beside it"


def test_memory_there_and_back(local: Path) -> None:
    vec2emb.convert(GLOVE, "memory://there/glove", if_exists="replace")
    system = fsspec.filesystem("memory")
    assert {name: system.cat_file(f"/there/glove/{name}") for name in NAMES} == {
        name: (local / name).read_bytes() for name in NAMES
    }
    assert np.array_equal(vec2emb.load("memory://there/glove").vectors, vec2emb.load(local).vectors)


def test_downloaded_once(local: Path, downloads: Path) -> None:
    with serving() as web:
        for name in NAMES:
            web.put(f"/b/{name}", (local / name).read_bytes(), cuts=[100])
        for url in (f"{web.root}/b", f"{web.root}/b/", f"{web.root}/b/model.safetensors", f"{web.root}/b?key=SIGNED"):
            web.asked.clear()
            assert len(vec2emb.load(url)) == 252
            paths = {path.partition("?")[0] for path, _ in web.asked}
            assert paths == ({f"/b/{name}" for name in NAMES} if url == f"{web.root}/b" else {"/b/vec2emb.json"})
        assert len(list(downloads.iterdir())) == 1
        shutil.rmtree(downloads)
        assert len(vec2emb.load(f"{web.root}/b")) == 252
        assert vec2emb.inspect(f"{web.root}/b/").ok
        _changed(web, "/b/vec2emb.json")
        assert refusal(lambda: vec2emb.load(f"{web.root}/b")).code in ("bundle-damaged", "bundle-config")


def _changed(web: Web, path: str) -> None:
    config = json.loads(web.files[path].data)
    config["files"]["vocab.txt"]["digest"] = "0" * 64
    web.put(path, json.dumps(config).encode())


def test_on_the_command_line(s3: Any, store: dict[str, str], tmp_path: Path) -> None:
    env = {**store, "VEC2EMB_CACHE": str(tmp_path / "cache")}
    done = run("convert", GLOVE, "-o", "s3://bucket/cli", env=env)
    assert done.returncode == 0, done.stderr
    assert b"embedding = load_embedding('s3://bucket/cli')" in done.stdout
    done = run("explain", "s3://bucket/cli", "the", env=env)
    assert done.returncode == 0, done.stderr
    done = run("convert", GLOVE, "-o", "s3://bucket/cli", env=env)
    assert done.returncode == 1
    assert b"error[target-exists]: s3://bucket/cli: a bundle is there already" in done.stderr
