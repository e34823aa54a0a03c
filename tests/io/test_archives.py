"""Members of zip and tar archives: which one is meant, the same bytes out of every archive, and what is refused."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import re
import shlex
import stat
import struct
import subprocess
import sys
import tarfile
import tracemalloc
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from helpers import FIXTURES, run

import vec2emb
from vec2emb.errors import FormatError, InputError, MissingPackageError, SourceError, UsageError, Vec2embError
from vec2emb.formats import ReadAs, why_not_meant
from vec2emb.io.archives import choice
from vec2emb.io.sources import open_source

CASES = FIXTURES / "cases"
SAMPLE = (FIXTURES / "glove.6B.50d.sample.txt").read_bytes()
TWO = b"the 0.5 -1.25\nof 1 0.25\n"
THREE = b"the 0.5 -1.25 2\nof 1 0.25 -0.75\n"

Files = list[tuple[str, bytes]]


class Pipe(io.RawIOBase):
    """A file that can only be read in order, a little at a time."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._file.readinto(memoryview(buffer)[:700])


def zipped(files: Files, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", method) as archive:
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name) if name.endswith("/") else name, data)
    return output.getvalue()


def tarred(files: Files, format: int = tarfile.PAX_FORMAT) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w", format=format) as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return output.getvalue()


# Each makes an archive of files, and opens it in the way that is named.
Opener = Callable[[Files], Any]
OPENERS: dict[str, Opener] = {
    "zip": lambda files: io.BytesIO(zipped(files)),
    "tar": lambda files: io.BytesIO(tarred(files)),
    "tar-pipe": lambda files: Pipe(tarred(files)),
    "tar.gz": lambda files: io.BytesIO(gzip.compress(tarred(files))),
    "tar.xz-pipe": lambda files: Pipe(lzma.compress(tarred(files), preset=1)),
}
openers = pytest.mark.parametrize("opener", OPENERS.values(), ids=OPENERS)


def words(source: Any, **options: Any) -> list[str]:
    return vec2emb.read_vectors(source, **options).vocab.to_list()


def refusal(source: Any, **options: Any) -> Vec2embError:
    with pytest.raises(Vec2embError) as error:
        vec2emb.read_vectors(source, **options)
    return error.value


# Public cases.


def test_case_c02d_a_tar_in_gzip() -> None:
    path = CASES / "C02d" / "cn.vec.tar.gz"
    table = vec2emb.read_vectors(path)
    assert (table.vocab.to_list(), table.dim) == (["the", "of", "and"], 3)


def test_case_c03a_two_tables_and_none_named(tmp_path: Path) -> None:
    path = CASES / "C03a" / "glove.zip"
    with pytest.raises(FormatError) as error:
        vec2emb.convert(path, tmp_path / "out")
    assert (error.value.code, error.value.path) == ("several-tables", str(path))
    assert str(error.value).split("\n")[1:] == [
        f"  vec2emb convert {path} --member glove.2d.txt -o OUT",
        f"  vec2emb convert {path} --member glove.3d.txt -o OUT",
    ]
    assert os.listdir(tmp_path) == []
    assert words(path, dim=3) == ["the", "of"]


def test_case_c03b_a_member_named(tmp_path: Path) -> None:
    path = CASES / "C03b" / "glove.zip"
    report = vec2emb.convert(path, tmp_path / "out", member="glove.3d.txt")
    assert (report.file_rows, report.dim, report.member) == (2, 3, "glove.3d.txt")
    table = vec2emb.read_vectors(path, member="glove.3d.txt")
    assert table.vectors.tolist() == [[0.5, -1.25, 2.0], [1.0, 0.25, -0.75]]


# The same out of everything.

ZSTD = zstandard.ZstdCompressor(write_checksum=True)
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": ZSTD.compress,
    "zip": lambda data: zipped([("README.txt", b"About the vectors.\n"), ("glove.txt", data)]),
    "zip-stored": lambda data: zipped([("glove.txt", data)], zipfile.ZIP_STORED),
    "zip-bzip2": lambda data: zipped([("glove.txt", data)], zipfile.ZIP_BZIP2),
    "zip-lzma": lambda data: zipped([("glove.txt", data)], zipfile.ZIP_LZMA),
    "zip-of-gz": lambda data: zipped([("glove.txt.gz", gzip.compress(data))], zipfile.ZIP_STORED),
    "tar": lambda data: tarred([("README", b"About the vectors.\n"), ("glove.txt", data)]),
    "tar.gz": lambda data: gzip.compress(tarred([("glove.txt", data), ("LICENSE", b"PDDL\n")])),
    "tar.bz2": lambda data: bz2.compress(tarred([("glove.txt", data)])),
    "tar.xz": lambda data: lzma.compress(tarred([("glove.txt", data)])),
    "tar.zst": lambda data: ZSTD.compress(tarred([("glove.txt", data)])),
    "tar-of-zst": lambda data: tarred([("glove.txt.zst", ZSTD.compress(data))]),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    out = tmp_path_factory.mktemp("plain") / "out"
    vec2emb.convert(FIXTURES / "glove.6B.50d.sample.txt", out)
    return (out / "model.safetensors").read_bytes(), (out / "vocab.txt").read_bytes()


@pytest.mark.parametrize("extra", ["fast", "without"])
@pytest.mark.parametrize("packing", PACKED)
def test_the_same_bundle(
    packing: str, extra: str, plain: tuple[bytes, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if extra == "without":
        monkeypatch.setitem(sys.modules, "isal", None)
    path = tmp_path / "vectors"
    path.write_bytes(PACKED[packing](SAMPLE))
    report = vec2emb.convert(path, tmp_path / "out")
    assert ((tmp_path / "out/model.safetensors").read_bytes(), (tmp_path / "out/vocab.txt").read_bytes()) == plain
    assert report.member == (
        None if packing in ("gz", "bz2", "xz", "zst") else report.manifest.to_dict()["source"]["member"]
    )
    assert (report.advice is not None) == (extra == "without" and packing in ("gz", "zip", "tar.gz", "zip-of-gz"))
    for text, _ in vec2emb.iter_vectors(path):
        assert text == "the"
        break


@pytest.mark.parametrize("packing", [name for name in PACKED if not name.startswith("zip")])
def test_the_same_bundle_from_a_pipe(packing: str, plain: tuple[bytes, bytes], tmp_path: Path) -> None:
    done = run("convert", "-", "-o", tmp_path / "out", "--quiet", stdin=PACKED[packing](SAMPLE))
    assert (done.returncode, done.stderr) == (0, b"")
    assert ((tmp_path / "out/model.safetensors").read_bytes(), (tmp_path / "out/vocab.txt").read_bytes()) == plain


def test_a_zip_on_standard_input(plain: tuple[bytes, bytes], tmp_path: Path) -> None:
    """It can be read where standard input is a file, not where it is a pipe."""
    path = tmp_path / "glove.zip"
    path.write_bytes(PACKED["zip"](SAMPLE))
    command = [sys.executable, "-m", "vec2emb", "convert", "-", "-o", str(tmp_path / "out")]
    with open(path, "rb") as file:
        subprocess.run(command, stdin=file, capture_output=True, check=True, timeout=60)
    assert (tmp_path / "out/model.safetensors").read_bytes() == plain[0]
    done = run("convert", "-", "-o", tmp_path / "other", stdin=path.read_bytes())
    assert done.returncode == 1
    assert b"error[zip-in-order]: <stdin>: a zip archive can be read from a file only" in done.stderr
    assert b"found a pipe; save it as a file first" in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["glove.zip", "out"]


# Which member.


@openers
def test_what_is_no_table(opener: Opener) -> None:
    beside = [
        "README", "readme.txt", "docs/README_GloVe.txt", "LICENSE", "Licence.txt", "COPYING", "notes.md", "paper.pdf",
        "__MACOSX/._a.txt", "a/__MACOSX/b.txt", "._a.txt", "x/._b.txt", ".DS_Store", ".git/config.txt/.x", "meta.json",
    ]  # fmt: skip
    files = [(name, THREE) for name in beside]
    assert words(opener([*files, ("vectors/a.txt", TWO)])) == ["the", "of"]
    assert words(opener([("vectors/a.txt", TWO), *files])) == ["the", "of"]
    error = refusal(opener(files))
    assert error.code == "no-table-in-archive"
    assert "found 'README', 'readme.txt'" in str(error)
    assert words(opener([*files, ("a.txt", TWO)]), member="README") == ["the", "of"]


@openers
def test_what_is_plainly_something_else(opener: Opener) -> None:
    """A fastText model beside its vectors, an empty file: by their bytes they are no tables."""
    model = b"\xba\x16\x4f\x2f" + bytes(2000)
    assert words(opener([("wiki.bin", model), ("wiki.vec", b"2 2\n" + TWO), ("empty", b"")])) == ["the", "of"]
    assert words(opener([("wiki.vec", b"2 2\n" + TWO), ("wiki.bin", model), ("empty", b"")])) == ["the", "of"]
    assert refusal(opener([("wiki.bin", model)])).code == "is-fasttext-bin"
    error = refusal(opener([("wiki.bin", model), ("empty", b"")]))
    assert error.code == "no-table-fits"
    assert "'wiki.bin': a fastText model (.bin); 'empty': the file is empty" in str(error)


@openers
def test_several_tables(opener: Opener, tmp_path: Path) -> None:
    files = [("a b.txt", TWO), ("README", b"x\n"), ("it's.txt", THREE)]
    error = refusal(opener(files))
    assert error.code == "several-tables"
    assert "found 2 of 3 members" in str(error)
    assert str(error).split("\n")[1:] == ["  member='a b.txt'", '  member="it\'s.txt"']
    for options in ({"limit": 1}, {"bad_rows": "skip"}):
        assert refusal(opener(files), **options).code == "several-tables"
    with pytest.raises(FormatError):
        vec2emb.inspect(opener(files))
    with pytest.raises(FormatError):
        list(vec2emb.iter_vectors(opener(files)))
    with pytest.raises(FormatError):
        vec2emb.convert(opener(files), tmp_path / "out")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("make", [zipped, tarred, lambda files: gzip.compress(tarred(files))])
def test_the_commands_can_be_copied(make: Callable[[Files], bytes], tmp_path: Path) -> None:
    path = tmp_path / "two tables.archive"
    path.write_bytes(make([("a b.txt", TWO), ("it's.txt", THREE)]))
    done = run("convert", path, "-o", tmp_path / "out")
    assert done.returncode == 1
    commands = [shlex.split(line) for line in done.stderr.decode().splitlines() if line.startswith("  vec2emb")]
    assert [command[:2] + command[3:] for command in commands] == [
        ["vec2emb", "convert", "--member", name, "-o", "OUT"] for name in ("a b.txt", "it's.txt")
    ]
    for dim, command in zip((2, 3), commands, strict=True):
        out = tmp_path / str(dim)
        assert run(*command[1:-1], out).returncode == 0
        assert json.loads((out / "vec2emb.json").read_bytes())["dim"] == dim


def test_a_long_list_is_cut() -> None:
    error = refusal(io.BytesIO(zipped([(f"{i}.txt", TWO) for i in range(50)])))
    assert str(error).count("member=") == 20
    assert str(error).endswith("member='19.txt' and 30 more")
    error = refusal(io.BytesIO(zipped([(f"{i}.txt", TWO) for i in range(50)])), member="x")
    assert str(error).endswith("'19.txt' and 30 more")


@openers
def test_the_dimension_picks(opener: Opener) -> None:
    files = [("2.txt", TWO), ("notes.txt", b"some words\nmore of them here\n"), ("3.txt", THREE)]
    assert vec2emb.read_vectors(opener(files), dim=3).dim == 3
    assert vec2emb.read_vectors(opener(files), dim=2).dim == 2
    assert vec2emb.read_vectors(opener([("2.txt.gz", gzip.compress(TWO)), ("3.txt", THREE)]), dim=2).dim == 2
    assert refusal(opener([*files, ("other.txt", THREE)]), dim=3).code == "several-tables"
    error = refusal(opener(files), dim=4)
    assert error.code == "no-table-fits"
    assert "'2.txt': it has 2 values a row; 'notes.txt': the rows end in no numbers; '3.txt'" in str(error)
    error = refusal(opener([("2.txt", TWO)]), dim=4)
    assert error.code == "dim-mismatch"
    assert "it has 2 values a row: expected 4, as --dim says" in str(error)


@openers
def test_a_member_named(opener: Opener) -> None:
    files = [("README.md", TWO), ("./x/a.txt", THREE), ("b.txt", TWO), ("c.txt", TWO)]
    assert words(opener(files), member="README.md") == ["the", "of"]
    assert vec2emb.read_vectors(opener(files), member="x/a.txt").dim == 3
    assert vec2emb.read_vectors(opener(files), member="./x/a.txt").dim == 3
    assert words(opener(files), member="b.txt", limit=1) == ["the"]
    error = refusal(opener(files), member="a.txt")
    assert error.code == "no-such-member"
    assert "no member 'a.txt': found 'README.md', './x/a.txt', 'b.txt', 'c.txt'" in str(error)
    found = vec2emb.inspect(opener(files), member="c.txt")
    assert found.facts["member"] == "c.txt"
    assert "\n  member: c.txt\n" in str(found)


@openers
def test_two_members_of_one_name(opener: Opener) -> None:
    """As `tar -r` makes them: which is meant is not guessed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # zipfile's own
        assert refusal(opener([("a.txt", TWO), ("a.txt", THREE)])).code == "several-tables"
        error = refusal(opener([("a.txt", TWO), ("b.txt", TWO), ("a.txt", THREE)]), member="a.txt")
    assert error.code == "member-twice"
    assert "the archive has 2 members named 'a.txt'" in str(error)


@openers
@pytest.mark.parametrize(
    "name",
    [
        "../../evil.txt",
        "/etc/evil.txt",
        "a\nb.txt",
        "\x1b[31mred.txt",
        "日本語/ベクトル.vec",
        "x" * 99 + "/" + "y" * 200,
    ],
)
def test_names_are_data(opener: Opener, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    report = vec2emb.convert(opener([(name, TWO)]), "out", member=name)
    assert report.member == report.manifest.to_dict()["source"]["member"] == name
    assert json.loads(Path("out/vec2emb.json").read_bytes())["source"]["member"] == name
    assert (os.listdir(tmp_path), os.listdir(".")) == (["in"], ["out"])
    error = str(refusal(opener([(name, TWO), ("b.txt", TWO)])))
    assert "\x1b" not in error
    assert "\\x1b[31mred.txt" in error or "red" not in name
    assert "\x1b" not in str(vec2emb.inspect(opener([(name, TWO)])))


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    name = b"v\xe9c.txt".decode("utf-8", "surrogateescape")
    vec2emb.convert(io.BytesIO(tarred([(name, TWO)])), tmp_path / "out", member=name)
    config = (tmp_path / "out/vec2emb.json").read_bytes().decode()
    assert '"member": "v\\udce9c.txt"' in config
    assert json.loads(config)["replay"]["options"]["member"] == name


def test_no_archive() -> None:
    for data in (TWO, gzip.compress(TWO)):
        error = refusal(io.BytesIO(data), member="a.txt")
        assert (type(error), error.code) == (UsageError, "member-without-archive")
    done = run("convert", CASES / "T01a" / os.listdir(CASES / "T01a")[0], "--member", "x", "-o", "out")
    assert done.returncode == 2
    assert b"error[member-without-archive]" in done.stderr


def test_a_member_of_a_bundle(tmp_path: Path) -> None:
    vec2emb.convert(io.BytesIO(TWO), tmp_path / "out")
    with pytest.raises(UsageError):
        vec2emb.inspect(tmp_path / "out", member="x")


def test_it_is_said_and_recorded(tmp_path: Path) -> None:
    path = tmp_path / "glove.zip"
    path.write_bytes(zipped([("README", b""), ("a/glove.txt", SAMPLE)]))
    done = run("convert", path, "-o", tmp_path / "out")
    assert f"  from {path}/a/glove.txt: glove, deflate, 250 rows" in done.stdout.decode()
    facts = json.loads((tmp_path / "out/vec2emb.json").read_bytes())
    with zipfile.ZipFile(path) as archive:
        packed = archive.getinfo("a/glove.txt").compress_size
    source = {key: facts["source"][key] for key in ("name", "member", "compression", "bytes")}
    assert source == {"name": "glove.zip", "member": "a/glove.txt", "compression": "deflate", "bytes": packed}
    assert facts["replay"]["options"]["member"] is None
    done = run("inspect", path, "--member", "a/glove.txt", "--json")
    assert json.loads(done.stdout)["member"] == "a/glove.txt"


@pytest.mark.parametrize("packing", ["zip", "zip-stored", "tar", "tar.gz"])
def test_progress_counts_what_the_member_takes(packing: str, tmp_path: Path) -> None:
    path = tmp_path / "in"
    data = b"".join(b"w%d %.6f -0.5\n" % (i, i / 7) for i in range(100_000))
    path.write_bytes(PACKED[packing](data))
    seen: list[tuple[int, int | None]] = []
    vec2emb.convert(path, tmp_path / "out", progress=lambda done, total: seen.append((done, total)))
    with open_source(path) as source:
        while source.read(1 << 20):
            pass
        assert source.consumed == source.size
        assert all(0 <= done <= source.size and total == source.size for done, total in seen)


def test_errors_of_rows_name_the_member(tmp_path: Path) -> None:
    path = tmp_path / "glove.zip"
    path.write_bytes(zipped([("a.txt", TWO + b"and 1\n")]))
    error = refusal(path)
    assert (error.code, error.path, error.line) == ("row-width", f"{path}/a.txt", 3)


# Folders, links, devices; archives in archives; other trades.


def special_tar(type: bytes, name: str = "a.txt", **attributes: Any) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.type = type
        for key, value in attributes.items():
            setattr(info, key, value)
        archive.addfile(info)
        info = tarfile.TarInfo("b.txt")
        info.size = len(TWO)
        archive.addfile(info, io.BytesIO(TWO))
    return output.getvalue()


@pytest.mark.parametrize("pipe", [False, True])
@pytest.mark.parametrize(
    "type", [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_folders_links_and_devices_of_a_tar(type: bytes, pipe: bool) -> None:
    data = special_tar(type, linkname="b.txt")
    opened = Pipe if pipe else io.BytesIO
    assert words(opened(data)) == ["the", "of"]
    error = refusal(opened(data), member="a.txt")
    assert error.code == "member-is-no-file"
    assert "'a.txt' is a folder, a link or a device" in str(error)


def test_folders_and_links_of_a_zip() -> None:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        archive.writestr(zipfile.ZipInfo("vectors/"), b"")
        link = zipfile.ZipInfo("a.txt")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, b"/etc/passwd")
        archive.writestr("b.txt", TWO)
    data = output.getvalue()
    assert words(io.BytesIO(data)) == ["the", "of"]
    for name in ("a.txt", "vectors/"):
        assert refusal(io.BytesIO(data), member=name).code == "member-is-no-file"


def test_sparse_members_of_a_tar_are_refused() -> None:
    pax = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a.txt"}
    data = special_tar(tarfile.REGTYPE, pax_headers=pax)
    assert refusal(io.BytesIO(data)).code == "several-tables"
    for opened in (io.BytesIO, Pipe):
        error = refusal(opened(data), member="a.txt")
        assert error.code == "member-unreadable"
        assert "'a.txt' cannot be read: found a sparse file; unpack it first" in str(error)


@openers
def test_archives_in_archives(opener: Opener) -> None:
    for inner, what in (
        (zipped([("a.txt", TWO)]), "zip"),
        (tarred([("a.txt", TWO)]), "tar"),
        (gzip.compress(tarred([("a.txt", TWO)])), "tar"),
    ):
        for options in ({}, {"member": "inner"}):
            error = refusal(opener([("inner", inner)]), **options)
            assert error.code == f"is-{what}"
            assert f"a {what} archive inside another archive; unpack the outer one first" in str(error)


def test_a_zip_inside_a_compressed_file() -> None:
    error = refusal(io.BytesIO(gzip.compress(zipped([("a.txt", TWO)]))))
    assert error.code == "zip-in-order"
    assert "found one inside gzip; decompress it first" in str(error)


@pytest.mark.parametrize(
    ("files", "code", "text"),
    [
        ([("words.npy", b"x"), ("vectors.npy", b"x")], "is-npz", "NumPy arrays (.npz)"),
        ([("model/data.pkl", b"x"), ("model/data/0", TWO)], "is-torch", "a PyTorch file (.pt)"),
        ([("[Content_Types].xml", b"x"), ("word/a.txt", TWO)], "is-office", "an office document"),
        ([], "no-table-in-archive", "found no file"),
    ],
)
def test_zips_of_another_trade(files: Files, code: str, text: str) -> None:
    error = refusal(io.BytesIO(zipped(files)))
    assert error.code == code
    assert text in str(error)


# Zip in all its ways.


def made_zip(payload: bytes, content: bytes, method: int, flags: int = 0) -> bytes:
    """A zip of one member a.txt, of any method, as the format's definition (APPNOTE 6.3) has it."""
    fields = (20, flags, method, 0, 0x21, zlib.crc32(content), len(payload), len(content), 5, 0)
    local = b"PK\3\4" + struct.pack("<HHHHHIIIHH", *fields) + b"a.txt" + payload
    central = b"PK\1\2" + struct.pack("<H", 20) + struct.pack("<HHHHHIIIHH", *fields) + bytes(14) + b"a.txt"
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0)
    return local + central + end


@pytest.mark.parametrize(
    ("method", "compress"),
    [(0, bytes), (12, bz2.compress), (93, zstandard.compress), (95, lzma.compress)],
    ids=["stored", "bzip2", "zstd", "xz"],
)
def test_zip_methods(method: int, compress: Callable[[bytes], bytes]) -> None:
    assert words(io.BytesIO(made_zip(compress(TWO), TWO, method))) == ["the", "of"]
    for content in (TWO + b"x", TWO[:-1], TWO.replace(b"5", b"6")):
        error = refusal(io.BytesIO(made_zip(compress(content), TWO, method)))
        assert error.code == "archive-corrupt"


def test_zip_of_zstd_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    with pytest.raises(MissingPackageError):
        vec2emb.read_vectors(io.BytesIO(made_zip(zstandard.compress(TWO), TWO, 93)))


@pytest.mark.parametrize(
    ("method", "flags", "found"),
    [
        (8, 1, "encryption"),
        (99, 1, "encryption"),
        (9, 0, "compression with Deflate64"),
        (98, 0, "compression with PPMd"),
        (77, 0, "compression with the unknown method 77"),
    ],
)
def test_zip_members_that_cannot_be_read(method: int, flags: int, found: str, tmp_path: Path) -> None:
    data = made_zip(b"secret", TWO, method, flags)
    for options in ({}, {"member": "a.txt"}, {"dim": 2}):
        error = refusal(io.BytesIO(data), **options)
        assert error.code == "member-unreadable"
        assert f"'a.txt' cannot be read: found {found}; unpack it first" in str(error)


def test_zip64() -> None:
    output = io.BytesIO()
    with (
        zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.txt", "w", force_zip64=True) as f,
    ):
        f.write(TWO)
    assert words(io.BytesIO(output.getvalue())) == ["the", "of"]


def test_an_lzma_member_with_a_huge_dictionary() -> None:
    payload = b"\x09\x04\x05\x00\x5d" + (1 << 30).to_bytes(4, "little") + bytes(20)
    error = refusal(io.BytesIO(made_zip(payload, TWO, 14)))
    assert error.code == "window-too-large"


def test_zip_bombs_end_at_the_size_they_give() -> None:
    bomb = zlib.compressobj(wbits=-15)
    payload = bomb.compress(TWO * 1_000_000) + bomb.flush()
    with pytest.raises(SourceError) as error:
        contents(io.BytesIO(made_zip(payload, TWO, 8)), "a.txt")
    assert error.value.code == "archive-corrupt"


# Tar in all its ways.


@pytest.mark.parametrize("pipe", [False, True])
@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("name", ["a.txt", "d" * 90 + "/" + "e" * 90, "d" * 90 + "/é" + "e" * 90])
def test_tar_formats(name: str, format: int, pipe: bool) -> None:
    data = tarred([("README", b"x" * 513), (name, TWO)], format)
    assert words((Pipe if pipe else io.BytesIO)(data), member=name) == ["the", "of"]


def test_an_old_tar_without_a_magic() -> None:
    """As tars were before 1988: told by the checksum of its first header."""
    data = bytearray(tarred([("a.txt", TWO)], tarfile.USTAR_FORMAT))
    data[257:512] = bytes(255)
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    for opened in (io.BytesIO, Pipe):
        assert words(opened(bytes(data))) == ["the", "of"]


def test_a_row_is_no_tar_header() -> None:
    first = b"w" * 247 + b" 0.5 1.25\n"
    assert len(first) == 257
    assert words(io.BytesIO(first + b"ustar 1 2\n")) == ["w" * 247, "ustar"]


def test_sizes_in_extended_headers() -> None:
    info = tarfile.TarInfo("a.txt")
    info.size = len(TWO)
    info.pax_headers = {"size": str(len(TWO)), "comment": "é=1\n2"}
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w", pax_headers={"path": "global.txt"}) as archive:
        archive.addfile(info, io.BytesIO(TWO))
    with open_source(io.BytesIO(output.getvalue())) as source:
        assert (source.member, source.read(100)) == ("global.txt", TWO)


def header(type: bytes, size: bytes) -> bytes:
    """A header whose size field is anything."""
    block = bytearray(tarfile.TarInfo("a.txt").tobuf(tarfile.USTAR_FORMAT))
    block[156:157] = type
    block[124:136] = size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize("pipe", [False, True])
@pytest.mark.parametrize("type", [b"0", b"x", b"g", b"L", b"K"])
@pytest.mark.parametrize(
    "size", [b"77777777777\0", b"\x80" + b"\xff" * 11, b"\xff" * 12, b"\x80\0\0\x7f" + b"\xff" * 8]
)
def test_sizes_that_cannot_be(size: bytes, type: bytes, pipe: bool) -> None:
    """They take no memory; there is an error, not a crash."""
    data = header(type, size) + TWO * 100
    error = refusal((Pipe if pipe else io.BytesIO)(data))
    assert error.code in ("archive-cut", "archive-corrupt")


@pytest.mark.parametrize("record", [b"x", b"9 path=a", b"99 path=a\n", b"0 path=a\n", b"9 path=ab", b"7 size=\n"])
def test_extended_headers_that_cannot_be(record: bytes) -> None:
    data = header(b"x", b"%011o\0" % len(record)) + record.ljust(512, b"\0") + tarred([("a.txt", TWO)])
    assert refusal(io.BytesIO(data)).code == "archive-corrupt"


def test_two_tars_in_one() -> None:
    data = tarred([("a.txt", TWO)]) + tarred([("b.txt", TWO)])
    for opened in (io.BytesIO(data), Pipe(data), io.BytesIO(gzip.compress(data))):
        error = refusal(opened)
        assert error.code == "archive-corrupt"
        assert "more follows its end; is it two archives in one?" in str(error)


# What is cut or corrupt.


def contents(source: Any, member: str | None = None) -> bytes:
    """The bytes that a source gives."""
    with open_source(source, member, lambda head: why_not_meant(head, ReadAs())) as opened:
        pieces = iter(lambda: opened.read(1000), b"")
        return b"".join(pieces)


@pytest.mark.parametrize("opened", [io.BytesIO, Pipe])
@pytest.mark.parametrize("member", [None, "a.txt"])
def test_a_tar_cut_at_every_byte(opened: Any, member: str | None) -> None:
    data = tarred([("a.txt", TWO), ("README", b"x")], tarfile.USTAR_FORMAT)
    members = 4 * 512  # two headers, two blocks; then a block of zeros
    for size in range(512, members + 512):
        with pytest.raises(InputError):
            contents(opened(data[:size]), member)
    for size in range(members + 512, len(data), 7):
        assert contents(opened(data[:size]), member) == TWO
    for size in range(1, 512, 7):  # not yet known for a tar
        with pytest.raises((InputError, UsageError)):
            words(opened(data[:size]), member=member)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_cut_at_every_byte(method: int) -> None:
    data = zipped([("a.txt", TWO), ("README", b"x")], method)
    for size in range(4, len(data)):
        with pytest.raises(InputError):
            contents(io.BytesIO(data[:size]))


@pytest.mark.parametrize("packing", ["zip", "zip-stored", "zip-bzip2", "zip-lzma", "tar.gz"])
def test_one_flipped_bit(packing: str) -> None:
    """It is found, or stands where it means nothing, such as a date."""
    data = PACKED[packing](TWO)
    for at in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << at % 8
        try:
            found = contents(io.BytesIO(bytes(flipped)))
        except (InputError, MissingPackageError):
            continue
        if found != TWO:  # the flipped bit hides what it is, so the bytes come as they are
            assert found == flipped
            with pytest.raises(InputError):
                words(io.BytesIO(found))


@pytest.mark.parametrize("opened", [io.BytesIO, Pipe])
def test_a_flipped_bit_in_a_tar_header(opened: Any) -> None:
    data = tarred([("a.txt", TWO)], tarfile.USTAR_FORMAT)
    for at in range(512 * 8):
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << at % 8
        try:
            found = contents(opened(bytes(flipped)))
        except InputError:
            continue
        if found == TWO:
            assert 148 <= at // 8 < 156  # how the checksum itself is written
        else:
            assert found == flipped
            with pytest.raises(InputError):
                words(io.BytesIO(found))


@pytest.mark.parametrize("packing", [name for name in PACKED if re.search("zip|tar", name)])
def test_cut_and_corrupt_archives_leave_nothing(packing: str, tmp_path: Path) -> None:
    data = PACKED[packing](SAMPLE)
    path = tmp_path / "in"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(SourceError):
        vec2emb.convert(path, tmp_path / "out")
    if packing != "tar":  # which has no checksum of contents
        corrupt = bytearray(data)
        corrupt[len(data) // 2] ^= 0xFF
        path.write_bytes(corrupt)
        with pytest.raises(InputError):
            vec2emb.convert(path, tmp_path / "out")
    assert os.listdir(tmp_path) == ["in"]


def test_corruption_behind_the_member_is_found() -> None:
    """A checksum of the whole stands at the end of a compressed archive, so it is read to its end."""
    data = bytearray(gzip.compress(tarred([("a.txt", TWO), ("big.pdf", os.urandom(100_000))])))
    data[-8] ^= 1
    for options in ({}, {"member": "a.txt"}):
        assert refusal(io.BytesIO(bytes(data)), **options).code == "compressed-data-corrupt"
    data[-8] ^= 1
    assert refusal(io.BytesIO(bytes(data[:-5000]))).code == "compressed-data-cut"


# Small archives that would cost much.


def overlapping(count: int) -> bytes:
    """A zip archive whose directory lists the same member `count` times, under other names."""
    whole = zipped([("a.txt", TWO * 5000)])
    at = whole.rfind(b"PK\1\2")
    end = whole.rfind(b"PK\5\6")
    entry = whole[at:end]
    name = entry.index(b"a.txt")
    entries = b"".join(entry[:name] + f"{i:05}"[:5].encode() + entry[name + 5 :] for i in range(count))
    record = bytearray(whole[end:])
    struct.pack_into("<HHLL", record, 8, count, count, len(entries), at)
    return whole[:at] + entries + bytes(record)


def test_members_that_share_bytes_are_refused() -> None:
    assert refusal(io.BytesIO(overlapping(1)), dim=9).code == "dim-mismatch"
    error = refusal(io.BytesIO(overlapping(2)))
    assert error.code == "archive-corrupt"
    assert "members overlap" in str(error)


def test_a_directory_of_many_members_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    path.write_bytes(overlapping(30_000))
    assert path.stat().st_size < 2_000_000
    tracemalloc.start()
    try:
        assert refusal(path).code == "too-many-members"
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("packed", [zipped, tarred], ids=["zip", "tar"])
def test_members_that_are_searched_are_bounded(
    packed: Callable[[Files], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [(f"{i}.txt", b"no vectors here\n") for i in range(30)]
    monkeypatch.setattr(choice, "MOST_PROBED", 20)
    error = refusal(io.BytesIO(packed([*files, ("v.txt", TWO)])))
    assert (error.code, error.hint) == ("too-many-members", "name the table with --member")
    assert len(vec2emb.read_vectors(io.BytesIO(packed([*files, ("v.txt", TWO)])), member="v.txt")) > 0
    monkeypatch.setattr(choice, "MOST_PROBED", 100)
    monkeypatch.setattr(choice, "MOST_READ", 100)
    assert refusal(io.BytesIO(packed([*files, ("v.txt", TWO)]))).code == "too-many-members"


@pytest.mark.parametrize("packed", [zipped, tarred], ids=["zip", "tar"])
def test_errors_of_many_members_list_some(packed: Callable[[Files], bytes]) -> None:
    error = refusal(io.BytesIO(packed([(f"{i}.txt", TWO) for i in range(30)])))
    assert (error.code, error.found) == ("several-tables", "30 of 30 members")
    assert str(error.hint).count("member=") == 20
    assert str(error.hint).endswith(" and 10 more")
