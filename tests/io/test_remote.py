"""Sources behind URLs: whatever the server and the network do, the same bundle as of a local file, or an error."""

from __future__ import annotations

import copy
import gzip
import hashlib
import io
import pickle
import subprocess
import sys
import tarfile
import threading
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import fsspec
import pytest
from helpers import FIXTURES, collected, run
from web import Served, Web, serving

import vec2emb
from vec2emb import Vec2embError
from vec2emb.errors import CheckError, InputError, SourceError, TryAgainError, UsageError
from vec2emb.io import urls
from vec2emb.io.remote import files, open_remote

pytestmark = pytest.mark.usefixtures("short_pauses")

GLOVE = FIXTURES / "glove.6B.50d.sample.txt"
DATA = GLOVE.read_bytes()
NAME = GLOVE.name
MD5 = b64encode(hashlib.md5(DATA).digest()).decode()
SECRETS = ("hunter2", "SIGNED")


@pytest.fixture(scope="module")
def server() -> Iterator[Web]:
    with serving() as web:
        yield web


@pytest.fixture
def web(server: Web) -> Web:
    server.files.clear()
    server.asked.clear()
    return server


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a file of this machine gives."""
    bundle = tmp_path_factory.mktemp("local") / "bundle"
    vec2emb.convert(GLOVE, bundle)
    return bundle


def same(a: Path, b: Path, *names: str) -> bool:
    names = names or ("model.safetensors", "vocab.txt", "vec2emb.json")
    return all((a / name).read_bytes() == (b / name).read_bytes() for name in names)


def refusal(call: Any) -> Vec2embError:
    """The error of a call, which holds no secret, not even when it is shown or pickled with all that led to it."""
    with pytest.raises(Vec2embError) as caught:
        call()
    error = caught.value
    shown = f"{error} {error.to_dict()} {pickle.dumps(error)!r}"
    before = error.__cause__ or error.__context__
    while before is not None:
        assert not type(before).__module__.startswith(("aiohttp", "botocore")), "not all of these can be pickled"
        shown += repr(before)
        before = before.__cause__ or before.__context__
    assert not [secret for secret in SECRETS if secret in shown], shown
    return error


def secret(url: str) -> str:
    """The URL with a user, a password and a signature."""
    return url.replace("://", "://user:hunter2@") + "?X-Amz-Signature=SIGNED"


# The same bundle as of a local file.

GOOD: dict[str, dict[str, Any]] = {
    "as usual": {},
    "without ranges": {"ranges": False},
    "in chunks": {"length": "chunked"},
    "cut three times": {"cuts": [1000, 5000, 90000]},
    "cut three times, without ranges": {"cuts": [1000, 90000, 20], "ranges": False},
    "cut, without ranges and versions": {"cuts": [1000, 90000], "ranges": False, "etag": None},
    "cut, with ranges and without versions": {"cuts": [1000, 90000], "etag": None},
    "cut in chunks": {"cuts": [1000, 5000], "length": "chunked"},
    "cut in chunks without versions": {"cuts": [1000, 5000], "length": "chunked", "etag": None},
    "a weak version and a date": {
        "cuts": [1000, 5000], "etag": 'W/"1"', "headers": {"Last-Modified": formatdate(0, usegmt=True)},
    },
    "busy": {"statuses": [503, 500, 429, 408]},
    "a right checksum": {"headers": {"Content-MD5": MD5}},
    "a checksum in the wrong notation": {"headers": {"Content-MD5": hashlib.md5(DATA).hexdigest()}},
    "a right digest": {"headers": {"Repr-Digest": f"sha-256=:{b64encode(hashlib.sha256(DATA).digest()).decode()}:"}},
    "a right hash": {"headers": {"x-goog-hash": f"crc32c=AAAAAA==,md5={MD5}"}},
    "a hash of what is packed": {
        "headers": {"x-goog-hash": "md5=AAAA", "x-goog-stored-content-encoding": "gzip"},
    },
}  # fmt: skip


@pytest.mark.parametrize("how", GOOD)
def test_same_bundle(how: str, web: Web, local: Path, tmp_path: Path) -> None:
    url = secret(web.put(f"/data/{NAME}", DATA, **copy.deepcopy(GOOD[how])))
    report = vec2emb.convert(url, tmp_path / "b")
    assert same(tmp_path / "b", local)
    assert report.warnings == []
    assert report.source == f"{web.root}/data/{NAME}?.."
    assert {headers["Accept-Encoding"] for _, headers in web.asked} == {"identity"}
    assert not web.files[f"/data/{NAME}"].cuts  # all of them happened


def test_reading_goes_on_where_it_was(web: Web) -> None:
    vec2emb.read_vectors(web.put("/v.txt", DATA, cuts=[1000, 5000]))
    assert web.ranges() == [None, "bytes=1000-", "bytes=6000-"]
    assert [headers.get("If-Range") for _, headers in web.asked] == [None, '"v1"', '"v1"']


def packed(kind: str) -> bytes:
    if kind == "gz":
        return gzip.compress(DATA)
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a/first.md", "x" * 70_000)
            archive.writestr(NAME, DATA)
            archive.writestr("other.txt", "of 1\n")
    else:
        with tarfile.open(fileobj=out, mode="w:gz" if kind == "tar.gz" else "w") as tar:
            for name, data in ((NAME, DATA), ("other.txt", b"of 1\n")):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize("kind", ["gz", "zip", "tar", "tar.gz"])
@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "whole"])
def test_packed(kind: str, ranges: bool, web: Web, local: Path, tmp_path: Path) -> None:
    data = packed(kind)
    url = web.put(f"/v.{kind}", data, ranges=ranges, cuts=[len(data) // 2])
    member = None if kind == "gz" else NAME
    report = vec2emb.convert(url, tmp_path / "b", member=member)
    assert same(tmp_path / "b", local, "model.safetensors", "vocab.txt")
    assert report.member == member
    if member is not None:
        error = refusal(lambda: vec2emb.convert(url, tmp_path / "c", member="none"))
        assert str(error).startswith(f"{url}: the archive has no member 'none'")


def test_of_a_large_zip_only_parts_are_read(web: Web) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("large.bin", bytes(4 << 20))
        archive.writestr(NAME, DATA)
    url = web.put("/v.zip", out.getvalue())
    assert len(vec2emb.read_vectors(url, member=NAME)) == 250
    web.files.pop("/v.zip")
    read = [one.removeprefix("bytes=").split("-") for one in web.ranges() if one]
    assert sum(int(stop or 1 << 30) - int(start) for start, stop in read) < 1 << 20


def test_a_zip_that_is_too_large_to_be_kept(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEC2EMB_SPOOL_BYTES", "1000")
    for length in ("true", "chunked"):
        url = web.put("/v.zip", packed("zip"), ranges=False, length=length)
        error = refusal(lambda url=url: vec2emb.inspect(url))
        assert error.code == "download-too-large"
        assert "expected at most 1,000 bytes" in str(error)
        assert str(error).endswith("download the file first, or set VEC2EMB_SPOOL_BYTES")


def test_a_server_that_packs_what_it_sends(web: Web) -> None:
    url = web.put("/v.txt", gzip.compress(DATA), headers={"Content-Encoding": "gzip"})
    assert len(vec2emb.read_vectors(url)) == 250


def test_redirects(web: Web, local: Path, tmp_path: Path) -> None:
    web.put("/real", DATA)
    url = web.put(f"/{NAME}", b"", statuses=[302] * 9, headers={"Location": "/real"})
    vec2emb.convert(url, tmp_path / "b")
    assert same(tmp_path / "b", local)
    error = refusal(lambda: vec2emb.inspect(web.put("/a", b"", statuses=[302] * 99, headers={"Location": "/a"})))
    assert (error.exit_code, str(error)) == (1, f"{web.root}/a: the server redirects in a circle")


# What is no whole file.

BAD: dict[str, tuple[dict[str, Any], type[Vec2embError], str, str]] = {
    "nothing there": ({"statuses": [404]}, InputError, "not-found", "there is no such file: found 404 Not Found"),
    "not for all": ({"statuses": [403]}, InputError, "access-denied", "access (403 Forbidden); log in"),
    "odd": ({"statuses": [418]}, InputError, "refused-by-server", "does not give the file: found 418"),
    "down": ({"statuses": [500] * 9}, TryAgainError, "network", "says 500 Internal Server Error; tried 5 times)"),
    "cut again and again": ({"cuts": [9] * 9}, TryAgainError, "network", "(the connection was cut; tried 5 times)"),
    "cut, not at all": ({"cuts": [0] * 9}, TryAgainError, "network", "tried 5 times"),
    "longer than said": ({"length": len(DATA) + 9}, TryAgainError, "network", "fewer bytes than the server said"),
    "another one": (
        {"cuts": [1000], "next": (1, Served(DATA, etag='"v2"'))}, TryAgainError, "download-changed",
        "the file changed while it was read; run the command again",
    ),
    "another one, without ranges": (
        {"cuts": [1000], "ranges": False, "next": (1, Served(DATA, ranges=False, etag='"v2"'))}, TryAgainError,
        "download-changed", "the file changed",
    ),
    "another one of the same length, without versions": (
        {"cuts": [1000], "ranges": False, "etag": None,
         "next": (1, Served(DATA.replace(b"the", b"THE"), ranges=False, etag=None))},
        TryAgainError, "download-changed", "the file changed",
    ),
    "shorter now": (
        {"cuts": [1000], "etag": None, "next": (1, Served(DATA[:-9], etag=None))}, TryAgainError, "download-changed",
        "the file changed",
    ),
    "a wrong checksum": (
        {"headers": {"Content-MD5": b64encode(bytes(16)).decode()}}, TryAgainError, "checksum-differs",
        f"what came is not what the server has: expected md5 {'00' * 16}, found {hashlib.md5(DATA).hexdigest()}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", BAD)
def test_refused(how: str, web: Web, tmp_path: Path) -> None:
    options, kind, code, text = BAD[how]
    url = secret(web.put("/v.txt", DATA, **copy.deepcopy(options)))
    error = refusal(lambda: vec2emb.convert(url, tmp_path / "b"))
    assert (type(error), error.code) == (kind, code)
    assert text in str(error)
    assert str(error).startswith(f"{web.root}/v.txt?..: ")
    assert list(tmp_path.iterdir()) == []


def test_a_file_whose_end_is_not_marked(web: Web, tmp_path: Path) -> None:
    url = web.put("/v.txt", DATA, length="none")
    report, warnings = collected(lambda: vec2emb.convert(url, tmp_path / "b"))
    assert [str(warning) for warning in warnings] == [
        f"{url}: the server does not say where the file ends, so a cut cannot be told; sha256 would"
    ]
    assert report.rows == 252
    vec2emb.convert(url, tmp_path / "c", sha256=hashlib.sha256(DATA).hexdigest())  # no warning


@pytest.mark.parametrize(
    ("url", "code", "exit_code", "text"),
    [
        ("http://127.0.0.1:1/v.txt", "network", 4, "no connection to 127.0.0.1"),
        ("http://no-such-host.invalid/v.txt", "network", 4, "no connection to no-such-host.invalid"),
        ("http://", "url-form", 2, "this is no URL that can be asked for: found http://"),
        ("nothing://a/b", "unknown-protocol", 2, "nothing"),
        ("memory://gone.txt", "not-found", 1, "memory://gone.txt: there is no such file"),
        ("file://elsewhere/v.txt", "file-url", 2, "expected file:///PATH, found file://elsewhere/v.txt"),
    ],
)
def test_no_server(url: str, code: str, exit_code: int, text: str) -> None:
    error = refusal(lambda: vec2emb.read_vectors(url))
    assert (error.code, error.exit_code) == (code, exit_code)
    assert text in str(error)


def test_no_tls(web: Web) -> None:
    url = secret(web.put("/v.txt", DATA)).replace("http:", "https:")
    assert refusal(lambda: vec2emb.read_vectors(url)).code == "certificate"


def test_a_silent_server_can_be_given_up(web: Web) -> None:
    """A read that waits ends when another thread gives the file up."""
    files.PAUSE = 10.0  # set back by the fixture
    with open_remote(web.put("/v.txt", DATA, cuts=[10] * 9)) as file:
        threading.Timer(0.05, file.cancel).start()
        with pytest.raises(SourceError, match="it was given up"):
            file.read(len(DATA))
        web.files["/v.txt"].cuts.clear()
        file.resume()
        rest = file.read()
    assert rest
    assert DATA.endswith(rest)


def test_the_rest_behind_a_limit(web: Web) -> None:
    """What is read no further is looked at to the end all the same, where that has to be: archives, checksums."""
    data = b"".join(b"word%d 1 2 3\n" % row for row in range(300_000))
    wrong = "0" * 64
    url = web.put("/v.txt", data)
    assert refusal(lambda: vec2emb.read_vectors(url, limit=9, sha256=wrong)).code == "source-sha256"
    assert len(vec2emb.read_vectors(url, limit=9, sha256=hashlib.sha256(data).hexdigest())) == 9
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        for name in ("a.txt", "b.txt"):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    url = web.put("/v.tar.gz", out.getvalue())
    assert refusal(lambda: vec2emb.read_vectors(url, limit=9)).code == "several-tables"


def test_no_thread_is_left(web: Web) -> None:
    """But fsspec's own, which serves the whole process."""
    before = set(threading.enumerate())
    vec2emb.read_vectors(web.put("/v.txt", DATA, cuts=[1000]))
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert not [
        name for name in left if not name.startswith(("fsspecIO", "asyncio_", "Thread-"))
    ]  # the last: the server's


# A checksum that is known beforehand.


def test_pinned(web: Web, tmp_path: Path) -> None:
    right, wrong = hashlib.sha256(DATA).hexdigest(), "0" * 64
    url = web.put("/v.txt", DATA)
    for source in (url, GLOVE, str(GLOVE)):
        assert len(vec2emb.read_vectors(source, sha256=right.upper())) == 250
        assert vec2emb.inspect(source, sha256=right).facts["rows"]
        for call in (
            lambda source=source: vec2emb.convert(source, tmp_path / "b", sha256=wrong),
            lambda source=source: vec2emb.convert(source, tmp_path / "b", sha256=wrong, limit=3),
            lambda source=source: vec2emb.inspect(source, sha256=wrong),
        ):
            error = refusal(call)
            assert (type(error), error.code, error.exit_code) == (CheckError, "source-sha256", 3)
            assert f"expected sha256 {wrong}, found {right}" in str(error)
    assert list(tmp_path.iterdir()) == []
    assert refusal(lambda: vec2emb.inspect(url, sha256="12")).code == "sha256-form"


def test_pinned_archives_and_files(web: Web) -> None:
    data = packed("zip")
    right = hashlib.sha256(data).hexdigest()
    for ranges in (True, False):
        url = web.put("/v.zip", data, ranges=ranges)
        assert len(vec2emb.read_vectors(url, member=NAME, sha256=right)) == 250
        assert refusal(lambda url=url: vec2emb.inspect(url, member=NAME, sha256="0" * 64)).code == "source-sha256"
    assert len(vec2emb.read_vectors(io.BytesIO(data), member=NAME, sha256=right)) == 250


def test_pinned_on_the_command_line(tmp_path: Path) -> None:
    right = hashlib.sha256(DATA).hexdigest()
    assert run("inspect", "-", "--sha256", right, stdin=DATA).returncode == 0
    done = run("convert", "-", "-o", tmp_path / "b", "--sha256", "1" * 64, stdin=DATA)
    assert done.returncode == 3
    assert b"error[source-sha256]: <stdin>: the source is not the one expected" in done.stderr
    assert not (tmp_path / "b").exists()


# Other file systems, and what a URL is.


def test_memory_and_file_urls(local: Path, tmp_path: Path) -> None:
    fsspec.filesystem("memory").pipe_file(f"/remote/{NAME}", DATA)
    vec2emb.convert(f"memory://remote/{NAME}", tmp_path / "a")
    vec2emb.convert(GLOVE.as_uri(), tmp_path / "b")
    vec2emb.convert(f"memory://remote/{NAME}", (tmp_path / "c d").as_uri())
    assert all(same(tmp_path / name, local) for name in ("a", "b", "c d"))
    assert refusal(lambda: vec2emb.inspect("memory://remote/")).code == "not-a-bundle"


def test_a_file_of_such_a_name_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memory:").mkdir()
    (tmp_path / "memory:" / "v.txt").write_bytes(DATA)
    (tmp_path / "a:b.txt").write_bytes(DATA)
    for name in ("memory://v.txt", "a:b.txt"):
        assert len(vec2emb.read_vectors(name)) == 250
    error = refusal(lambda: vec2emb.inspect(Path("https://host/v.txt")))
    assert str(error).endswith("a URL is given as a string, as a Path has but one slash")


class Hub(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """The part of huggingface_hub's file system that reading needs: `open` in ranges, and facts of large files."""

    protocol = "hf"
    sha256 = hashlib.sha256(DATA).hexdigest()

    def info(self, path: str, **_: object) -> dict[str, Any]:
        if not path.endswith(NAME):
            raise FileNotFoundError(path)
        return {"name": path, "type": "file", "size": len(DATA), "lfs": {"sha256": self.sha256}, "blob_id": "1"}

    def _open(self, path: str, mode: str = "rb", **_: object) -> Any:
        return io.BytesIO(DATA)


def test_hub(local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules["fsspec.registry"]._registry, "hf", Hub)
    vec2emb.convert(f"hf://org/repo@main/{NAME}", tmp_path / "b")
    assert same(tmp_path / "b", local)
    assert refusal(lambda: vec2emb.inspect("hf://org/repo/gone.txt")).code == "not-found"
    monkeypatch.setattr(Hub, "sha256", "0" * 64)
    assert refusal(lambda: vec2emb.read_vectors(f"hf://org/repo/{NAME}")).code == "checksum-differs"


class Flaky(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """Fails now and then, and may change."""

    protocol = "flaky"
    failures: list[Exception | int] = []  # noqa: RUF012 - set by the test
    mtime = 1

    def info(self, path: str, **_: object) -> dict[str, Any]:
        return {"name": path, "type": "file", "size": len(DATA), "mtime": Flaky.mtime}

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: object) -> bytes:
        failure = Flaky.failures.pop(0) if Flaky.failures else None
        if isinstance(failure, Exception):
            raise failure
        return DATA[start:end][:failure]


@pytest.fixture
def flaky(monkeypatch: pytest.MonkeyPatch) -> type[Flaky]:
    monkeypatch.setitem(sys.modules["fsspec.registry"]._registry, "flaky", Flaky)
    monkeypatch.setattr(Flaky, "mtime", 1)
    return Flaky


def test_ranges_that_fail(flaky: type[Flaky], local: Path, tmp_path: Path) -> None:
    flaky.failures = [OSError("reset"), 17, TimeoutError()]
    vec2emb.convert(f"flaky://x/{NAME}", tmp_path / "b")
    assert same(tmp_path / "b", local)
    flaky.failures = [OSError("see https://user:hunter2@host/x?sig=SIGNED")] * 9
    error = refusal(lambda: vec2emb.read_vectors("flaky://x/v.txt"))
    assert (error.code, error.exit_code) == ("network", 4)
    assert "(OSError: see https://host/x?..; tried 5 times)" in str(error)
    flaky.failures = [PermissionError("no")]
    assert refusal(lambda: vec2emb.read_vectors("flaky://x/v.txt")).code == "access-denied"


def test_a_file_that_changes(flaky: type[Flaky], monkeypatch: pytest.MonkeyPatch) -> None:
    flaky.failures = []
    with open_remote("flaky://x/v.txt") as file:
        assert file.read() == DATA
        file.check_unchanged()
        monkeypatch.setattr(Flaky, "mtime", 2)
        assert refusal(file.check_unchanged).code == "download-changed"


# Words, corpora, and what is no source.


def test_word_lists(web: Web, tmp_path: Path) -> None:
    words = secret(web.put("/lists/words.txt", b"of\nthe\nzyzzyva\n", cuts=[3]))
    tokens = web.put("/lists/words.json", b'["of", "the"]')
    report, _ = collected(lambda: vec2emb.convert(GLOVE, tmp_path / "a", vocab=words))
    assert report.first_missing == ["zyzzyva"]
    assert report.manifest.to_dict()["replay"]["vocab"]["name"] == "words.txt"
    vec2emb.convert(GLOVE, tmp_path / "b", only=tokens, train_rows=tokens)
    assert (tmp_path / "b" / "vocab.txt").read_bytes() == b"<pad>\n<unk>\nthe\nof\n"
    assert vec2emb.Vocabulary.from_file(words).tokens[:] == ["of", "the", "zyzzyva"]
    gone = web.root + "/gone.txt?sig=SIGNED"
    assert refusal(lambda: vec2emb.convert(GLOVE, tmp_path / "c", vocab=gone)).path == f"{web.root}/gone.txt?.."


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "whole"])
def test_corpora(ranges: bool, web: Web, tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    table = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": ["the of the", "of zyzzyva"]}), table)
    urls = [
        secret(web.put("/c.txt", b"the of the\nof zyzzyva\n", ranges=ranges, cuts=[5])),
        secret(web.put("/c.jsonl.gz", gzip.compress(b'{"text": "the of the of zyzzyva"}\n'), ranges=ranges, cuts=[9])),
        secret(web.put("/c.parquet", table.getvalue(), ranges=ranges)),
    ]
    for url in urls:
        assert vec2emb.count_tokens(url).most_common(3) == [("of", 2), ("the", 2), ("zyzzyva", 1)]
    report, _ = collected(lambda: vec2emb.convert(GLOVE, tmp_path / "a", corpus=urls))
    text = (tmp_path / "a" / "vec2emb.json").read_text()
    assert report.manifest.to_dict()["replay"]["vocab"]["corpus"]["names"] == ["c.txt", "c.jsonl.gz", "c.parquet"]
    assert not [word for word in SECRETS if word in text]
    audit = vec2emb.audit(web.put("/v.txt", DATA), corpus=urls[0])
    assert audit.sources[0].coverage is not None
    assert audit.sources[0].coverage.tokens == pytest.approx(4 / 5)
    assert not [word for word in SECRETS if word in str(audit.to_dict())]
    assert refusal(lambda: vec2emb.count_tokens(web.root + "/gone.txt?a=SIGNED")).code == "not-found"


def test_what_stays_on_this_machine(tmp_path: Path, local: Path) -> None:
    url = "s3://bucket/out.txt"
    for call in (
        lambda: vec2emb.export(local, "glove", url),
        lambda: vec2emb.convert(GLOVE, tmp_path / "a", row_report=url),
        lambda: vec2emb.build_vocab(GLOVE, url),
        lambda: vec2emb.count_tokens(GLOVE).save("s3://bucket/c.tsv"),
        lambda: vec2emb.load(local).vocab.to_file(url),
    ):
        error = refusal(call)
        assert (type(error), error.code) == (UsageError, "local-only")
        assert str(error).endswith("name a file of this machine")
    assert refusal(lambda: vec2emb.convert(GLOVE, "https://user:hunter2@host/a")).code == "output-to-web"


def test_a_local_conversion_loads_no_fsspec(tmp_path: Path) -> None:
    code = (
        "import sys, vec2emb; vec2emb.convert(sys.argv[1], sys.argv[2]); vec2emb.load(sys.argv[2]);"
        "print(*sorted({'fsspec', 'asyncio', 'urllib.parse', 'vec2emb.io.remote'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, GLOVE, tmp_path / "a"], capture_output=True, check=True)
    assert done.stdout.strip() == b""


def test_secrets_on_the_command_line(web: Web, tmp_path: Path) -> None:
    url = secret(web.put(f"/{NAME}", DATA))
    done = run("convert", url, "-o", tmp_path / "a", "--source-url", url, "--json")
    assert done.returncode == 0, done.stderr
    written = done.stdout + done.stderr + (tmp_path / "a" / "vec2emb.json").read_bytes()
    done = run("inspect", secret(web.root + "/gone"))
    assert done.returncode == 1
    written += done.stdout + done.stderr
    assert not [word for word in SECRETS if word.encode() in written]


@pytest.mark.parametrize(
    ("url", "label", "name", "recorded"),
    [
        ("https://a.org/x/v%20w.txt", "https://a.org/x/v%20w.txt", "v w.txt", "https://a.org/x/v%20w.txt"),
        ("https://u:p@a.org/v.txt?download=1", "https://a.org/v.txt?..", "v.txt", "https://a.org/v.txt?download=1"),
        ("https://a.org/v.txt?X-Amz-Signature=1&a=2", "https://a.org/v.txt?..", "v.txt", "https://a.org/v.txt"),
        ("https://a.org/v.txt?sv=1&sig=2", "https://a.org/v.txt?..", "v.txt", "https://a.org/v.txt"),
        ("https://a.org/v.txt#part", "https://a.org/v.txt?..", "v.txt", "https://a.org/v.txt#part"),
        ("https://a.org/v.txt#access_token=1", "https://a.org/v.txt?..", "v.txt", "https://a.org/v.txt"),
        ("https://a.org/v.txt?a=1#id_token=1", "https://a.org/v.txt?..", "v.txt", "https://a.org/v.txt"),
        ("https://a.org/v.txt?pwd=1", "https://a.org/v.txt?..", "v.txt", "https://a.org/v.txt"),
        ("https://a.org/v.txt?user=a;pass=1", "https://a.org/v.txt?..", "v.txt", "https://a.org/v.txt"),
        ("https://a.org/v.txt?SESSION_ID=1", "https://a.org/v.txt?..", "v.txt", "https://a.org/v.txt"),
        ("https://a.org/v.txt?v=2#key", "https://a.org/v.txt?..", "v.txt", "https://a.org/v.txt?v=2#key"),
        ("memory://s/v.txt?sig=1", "memory://s/v.txt?..", "v.txt", "memory://s/v.txt"),
        ("s3://bucket/what?.txt", "s3://bucket/what?..", "what?.txt", "s3://bucket/what?.txt"),
        ("https://a.org", "https://a.org", "a.org", "https://a.org"),
        ("s3://bucket/a/v.txt", "s3://bucket/a/v.txt", "v.txt", "s3://bucket/a/v.txt"),
        ("hf://org/repo@main/v.txt", "hf://org/repo@main/v.txt", "v.txt", "hf://org/repo@main/v.txt"),
        ("sftp://u:p@host/v.txt", "sftp://host/v.txt", "v.txt", "sftp://host/v.txt"),
        ("simplecache::https://u:p@a.org/v.txt", "simplecache::https://a.org/v.txt", "v.txt",
         "simplecache::https://a.org/v.txt"),
    ],
)  # fmt: skip
def test_what_is_shown_and_recorded(url: str, label: str, name: str, recorded: str) -> None:
    assert urls.is_url(url)
    assert (urls.label_of(url), urls.name_of(url), urls.without_secrets(url)) == (label, name, recorded)
    assert urls.cleaned(f"vec2emb audit '{url}'") == f"vec2emb audit '{label}{chr(39) if '?' not in label else ''}"


@pytest.mark.parametrize("path", ["C:/v.txt", "C:\\v.txt", "a:b", "v.txt", "-", "a b://c", "file:///v.txt", "x://y"])
def test_no_url(path: str) -> None:
    assert not urls.is_url(path)
