"""Targets and publications: stopped at every step, healed by the next run, and never in the way of other files."""

from __future__ import annotations

import contextlib
import errno
import io
import multiprocessing
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import run
from stopping import stopped_at, unsynced

import vec2emb
from vec2emb.bundle.publication import CONFIG, MODEL, VOCAB, Publication, Target
from vec2emb.errors import InputError, OutputError, TryAgainError, UsageError, Vec2embError
from vec2emb.io import filesystem

TOKENS = ["<pad>", "the", "of"]
FOREIGN = {"tokenizer.json": b"{}", "scratch": b"mine", "ready": b"mine", "sub/deep/note.txt": b"note"}


def save(path: Path, tag: int, if_exists: str = "error") -> None:
    """A bundle that tells by its values and by its tokens which it is."""
    vec2emb.save(path, [*TOKENS, f"tag{tag}"], np.full((4, 3), tag, np.float32), if_exists=if_exists)


def tag_of(path: Path) -> int | None:
    """Which bundle stands there, if it is whole; None for none."""
    try:
        table = vec2emb.load(path)
    except InputError:
        return None
    tag = int(table.vectors[0, 0])
    assert (table.vectors == tag).all()
    assert table.vocab.tokens == [*TOKENS, f"tag{tag}"]
    return tag


def put_foreign(folder: Path) -> None:
    for name, data in FOREIGN.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def foreign_of(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in (MODEL, VOCAB, CONFIG)]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def hidden_in(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".")]


__all__ = ["unsynced"]  # a fixture

# Stopped at every step.


@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize("how", ["killed", "interrupted", "fails"])
@pytest.mark.parametrize("able", [True, False], ids=["exchange", "no-exchange"])
@pytest.mark.parametrize("name", ["glove", "glove.safetensors"], ids=["folder", "stem"])
@pytest.mark.parametrize("replacing", [False, True], ids=["fresh", "replace"])
def test_stopped_at_any_step_a_run_leaves_the_old_or_the_new_and_the_next_run_heals(
    tmp_path: Path, replacing: bool, name: str, able: bool, how: str
) -> None:
    before = 1 if replacing else None
    finished, step, seen = False, 0, set()
    while not finished:
        step += 1
        assert step < 200
        place = tmp_path / str(step)
        place.mkdir()
        target = place / name
        kept = {}
        if replacing:
            save(target, 1)
            if name == "glove":
                put_foreign(target)
                kept = FOREIGN
        finished = stopped_at(step, how, able, lambda: save(target, 2, "replace"))  # noqa: B023
        left = tag_of(target)
        assert left in (before, 2, None)  # None: a folder aside, a stem half replaced; both are healed
        if how != "killed" and not hidden_in(place):
            assert left in (before, 2)

        # A run that does not publish heals as well, and never takes a new bundle back that was seen whole.
        with contextlib.suppress(OutputError), Publication(Target(target), "error"):
            pass
        healed = tag_of(target)
        assert healed in (before, 2)
        assert left != 2 or healed == 2
        seen.add(healed)
        assert not hidden_in(place)
        if healed is None:
            assert not os.listdir(place)
        if kept:
            assert foreign_of(target) == kept

        save(target, 3, "replace")
        assert tag_of(target) == 3
        assert not hidden_in(place)
        if kept:
            assert foreign_of(target) == kept
    assert seen == {before, 2}
    assert step > 12  # the calls were counted


@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize("first_stop", range(1, 60, 6))
def test_healing_may_be_stopped_too(tmp_path: Path, first_stop: int) -> None:
    for again in range(1, 30):
        target = tmp_path / str(again) / "glove"
        target.parent.mkdir()
        save(target, 1)
        put_foreign(target)
        able = first_stop % 4 == 1
        stopped_at(first_stop, "killed", able, lambda: save(target, 2, "replace"))  # noqa: B023
        if stopped_at(again, "killed", able, lambda: save(target, 2, "replace")):  # noqa: B023
            break
        with contextlib.suppress(OutputError), Publication(Target(target), "error"):
            pass
        assert tag_of(target) in (1, 2)
        assert foreign_of(target) == FOREIGN
        assert not hidden_in(target.parent)


def test_healing_keeps_the_old_bundle_where_an_empty_folder_was_made_in_its_place(tmp_path: Path) -> None:
    save(tmp_path / "glove", 1)
    os.rename(
        tmp_path / "glove", Publication(Target(tmp_path / "glove")).aside
    )  # what a run without exchange leaves when it is killed there
    (tmp_path / "glove").mkdir()  # and what scripts do before they try again
    with pytest.raises(OutputError) as caught:
        save(tmp_path / "glove", 2)
    assert caught.value.code == "target-exists"
    assert tag_of(tmp_path / "glove") == 1
    assert not hidden_in(tmp_path)


def test_a_file_that_changed_while_its_folder_was_replaced_is_kept_beside_the_older_one(tmp_path: Path) -> None:
    save(tmp_path / "glove", 2)
    (tmp_path / "glove" / "tokenizer.json").write_bytes(b"newer")
    save(tmp_path / "old", 1)
    (tmp_path / "old" / "tokenizer.json").write_bytes(b"older")
    os.rename(tmp_path / "old", Publication(Target(tmp_path / "glove")).hidden)  # as if killed after the exchange
    save(tmp_path / "glove", 3, "replace")
    assert foreign_of(tmp_path / "glove") == {"tokenizer.json": b"newer", "tokenizer.json.old1": b"older"}
    assert sorted(os.listdir(tmp_path)) == ["glove"]


# Who may write where.


def test_error_replace_and_keep(tmp_path: Path) -> None:
    path = tmp_path / "glove"
    save(path, 1)
    with pytest.raises(OutputError, match="a bundle is there already") as caught:
        save(path, 2)
    assert caught.value.code == "target-exists"
    assert caught.value.exit_code == 1
    before = {file: file.stat().st_mtime_ns for file in path.iterdir()}
    save(path, 1, "keep")
    assert {file: file.stat().st_mtime_ns for file in path.iterdir()} == before
    with pytest.raises(OutputError, match=f"differences in .*{VOCAB}") as caught:
        save(path, 2, "keep")
    assert caught.value.code == "target-differs"
    assert tag_of(path) == 1
    save(path, 2, "replace")
    assert tag_of(path) == 2
    with pytest.raises(UsageError, match="error or replace or keep"):
        save(path, 2, "overwrite")
    assert sorted(os.listdir(tmp_path)) == ["glove"]


def test_keep_notices_rows_that_were_changed(tmp_path: Path) -> None:
    save(tmp_path / "glove", 1)
    with open(tmp_path / "glove" / MODEL, "r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(b"\0\0\0\0")
    with pytest.raises(OutputError, match=f"differences in {MODEL}"):
        save(tmp_path / "glove", 1, "keep")


def each(*steps: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda at: [step(at) for step in steps]


def bundle_1(at: Path) -> None:
    save(at / "glove", 1)


@pytest.mark.parametrize("policy", ["error", "replace", "keep"])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (each(lambda at: (at / "glove").mkdir(), lambda at: (at / "glove" / "notes.txt").touch()), "glove"),
        (lambda at: (at / "glove").write_text("a file"), "glove"),
        (lambda at: (at / "glove.safetensors").write_text("another's"), "glove.safetensors"),
        (lambda at: (at / "glove.vocab.txt").touch(), "glove.safetensors"),
        (lambda at: (at / "glove.vec2emb.json").symlink_to("nowhere"), "glove.safetensors"),
        (lambda at: (at / "glove.safetensors").mkdir(), "glove.safetensors"),
        (each(bundle_1, lambda at: (at / "glove" / MODEL).unlink()), "glove"),
        (each(bundle_1, lambda at: (at / "glove" / CONFIG).write_text('["format_version"]')), "glove"),
        (
            each(bundle_1, lambda at: (at / "glove" / VOCAB).unlink(), lambda at: (at / "glove" / VOCAB).mkdir()),
            "glove",
        ),
        (lambda at: (at / "glove").symlink_to("."), "glove"),
    ],
    ids=[
        "files", "file", "other-tensors", "companion", "link-to-nothing", "folder-of-that-name", "no-tensors",
        "odd-settings", "folder-for-vocabulary", "link-to-parent",
    ],
)  # fmt: skip
def test_what_is_no_bundle_is_refused_before_the_source_is_opened(
    tmp_path: Path, make: Callable[[Path], object], name: str, policy: str
) -> None:
    make(tmp_path)
    before = sorted(str(path) for path in tmp_path.rglob("*"))

    class Unread(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise AssertionError("the source is read")

        readinto = read  # type: ignore[assignment]

    with pytest.raises(OutputError) as caught:
        vec2emb.convert(Unread(), tmp_path / name, if_exists=policy)  # type: ignore[arg-type]
    assert caught.value.code == "target-not-a-bundle"
    assert str(tmp_path / name) in str(caught.value)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_an_empty_folder_is_taken_and_a_filled_one_keeps_what_is_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "glove"
    path.mkdir()
    save(path, 1)
    put_foreign(path)
    save(path, 2, "replace")
    assert tag_of(path) == 2
    assert foreign_of(path) == FOREIGN
    assert sorted(os.listdir(tmp_path)) == ["glove"]


def test_files_beside_a_stem_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "glove.json").write_text("{}")
    (tmp_path / "glove").mkdir()
    for tag, policy in ((1, "error"), (2, "replace")):
        save(tmp_path / "glove.safetensors", tag, policy)
        assert tag_of(tmp_path / "glove.safetensors") == tag
    names = ["glove", "glove.json", "glove.safetensors", "glove.vec2emb.json", "glove.vocab.txt"]
    assert sorted(os.listdir(tmp_path)) == names


def test_links(tmp_path: Path) -> None:
    (tmp_path / "v1").mkdir()
    (tmp_path / "current").symlink_to("v1")
    save(tmp_path / "current", 1)
    save(tmp_path / "current", 2, "replace")
    assert (tmp_path / "current").is_symlink()
    assert tag_of(tmp_path / "v1") == tag_of(tmp_path / "current") == 2
    (tmp_path / "later").symlink_to("not/yet/there")
    save(tmp_path / "later", 3)
    assert tag_of(tmp_path / "not" / "yet" / "there") == 3
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OutputError):
        save(tmp_path / "round", 4, "replace")
    # Files of a stem that are links, as in a cache of blobs: the links are replaced, the blobs are not.
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    save(tmp_path / "m.safetensors", 5)
    for path in sorted(tmp_path.glob("m.*")):
        os.rename(path, blobs / path.suffix[1:])
        path.symlink_to(blobs / path.suffix[1:])
    assert tag_of(tmp_path / "m.safetensors") == 5
    before = {path: path.read_bytes() for path in blobs.iterdir()}
    save(tmp_path / "m.safetensors", 6, "replace")
    assert tag_of(tmp_path / "m.safetensors") == 6
    assert {path: path.read_bytes() for path in blobs.iterdir()} == before


@pytest.mark.parametrize("ending", ["", ".safetensors"])
def test_names_up_to_the_longest_the_system_takes(tmp_path: Path, ending: str) -> None:
    longest = 255 - len(".vec2emb.json") if ending else 255
    name = "ä" * (longest // 2) + "x" * (longest % 2)
    save(tmp_path / (name + ending), 1)
    save(tmp_path / (name + ending), 2, "replace")
    assert tag_of(tmp_path / (name + ending)) == 2
    with pytest.raises(OutputError) as caught:  # the source is not opened, or it would be `not-found`
        vec2emb.convert(tmp_path / "no-source", tmp_path / (name + "y" + ending))
    assert caught.value.code == "name-too-long"
    assert not hidden_in(tmp_path)


@pytest.mark.parametrize(
    ("output", "code", "hint"),
    [
        ("", "output-name", "-o FOLDER"),
        ("-", "output-name", "-o FOLDER"),
        ("a\0b", "output-name", "-o FOLDER"),
        (".safetensors", "output-name", "before .safetensors"),
        ("glove.pt", "output-suffix", "-o FOLDER or -o NAME.safetensors"),
        ("glove.TXT", "output-suffix", "-o FOLDER or -o NAME.safetensors"),
    ],
)
def test_names_that_no_bundle_can_have(output: str, code: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint) as caught:
        Target(output)
    assert caught.value.code == code
    assert "\0" not in str(caught.value)


def test_a_mount_point_is_refused_with_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "volume").mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: path == str(tmp_path / "volume"))
    with pytest.raises(OutputError, match=r"name a folder in it: -o .*volume/NAME") as caught:
        save(tmp_path / "volume", 1)
    assert caught.value.code == "target-is-a-mount"
    save(tmp_path / "volume" / "glove", 1)


def test_parents_are_made_and_removed_again_if_nothing_comes_of_it(tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text("a 1 2\nb 1 x\n")
    for name in ("a/b/glove", "a/b/glove.safetensors"):
        with pytest.raises(InputError, match="line 2"):
            vec2emb.convert(bad, tmp_path / name, format="glove", dim=2)
        with pytest.raises(InputError, match="no such file"):
            vec2emb.convert(tmp_path / "absent.txt", tmp_path / name)
        assert os.listdir(tmp_path) == ["bad.txt"]
        save(tmp_path / name, 1)
        assert tag_of(tmp_path / name) == 1
        assert not hidden_in(tmp_path / "a" / "b")
        shutil.rmtree(tmp_path / "a")
    with pytest.raises(OutputError, match="Not a directory") as caught:
        save(bad / "glove", 1)
    assert caught.value.code == "cannot-write"


def test_two_runs_may_make_the_same_parents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir = os.mkdir

    def slower(path: str, *mode: int) -> None:
        if path == str(tmp_path / "out"):
            mkdir(path)  # another run is faster
        mkdir(path, *mode)

    monkeypatch.setattr(os, "mkdir", slower)
    save(tmp_path / "out" / "glove", 1)
    assert tag_of(tmp_path / "out" / "glove") == 1


def test_a_folder_that_cannot_be_written_to(tmp_path_factory: pytest.TempPathFactory) -> None:
    """As an ordinary user: to root every folder is open."""
    place = tmp_path_factory.mktemp("locked")
    (place / "inner").mkdir()
    script = f"""
        import os, numpy, vec2emb
        from vec2emb.bundle import table
        from vec2emb.conversion import pipeline
        from vec2emb.words import vocabulary
        os.chmod({str(place)!r}, 0o555)
        os.chdir({str(place)!r})
        if os.getuid() == 0:
            os.setgroups([]); os.setgid(65534); os.setuid(65534)
        for name in ("glove", "glove.safetensors", "a/b/glove"):
            try:
                vec2emb.save(name, ["a"], numpy.ones((1, 2)))
            except vec2emb.Vec2embError as error:
                print(error.code, error.exit_code, error)
    """
    top = place
    modes = {}
    while top != top.parent:  # so that the ordinary user gets there
        modes[top], top = top.stat().st_mode, top.parent
    try:
        for folder in list(modes)[1:]:
            if os.getuid() == 0:
                folder.chmod(modes[folder] | 0o111)
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    finally:
        for folder, mode in modes.items():
            if folder.stat().st_mode != mode:
                folder.chmod(mode)
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["cannot-write", "1"]] * 3, done.stderr
    assert all("Permission denied" in line for line in lines)
    assert os.listdir(place) == ["inner"]


# Several at once.


@pytest.mark.parametrize("name", ["glove", "glove.safetensors"])
def test_a_target_in_use_is_busy_and_free_again_afterwards(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with Publication(Target(path)) as publication:
        assert os.path.isdir(publication.hidden)
        with pytest.raises(TryAgainError, match="another run is writing this bundle") as caught:
            save(path, 1)
        assert caught.value.code == "target-busy"
        busy = run("convert", "-", "-o", path, "--json", stdin=b"a 1 2\n")
        assert busy.returncode == 4
        assert b'"target-busy"' in busy.stdout
        assert os.path.isdir(publication.hidden)  # a live one is left alone
    assert not os.listdir(tmp_path)
    save(path, 2)
    assert tag_of(path) == 2


def test_a_target_that_is_taken_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    for name, taken in (("glove", "glove/notes.txt"), ("glove.safetensors", "glove.safetensors")):
        place = tmp_path / name.replace(".", "-")
        place.mkdir()
        target = Target(place / name)
        with Publication(target, "replace") as publication:
            for file in (MODEL, VOCAB, CONFIG):
                Path(publication.path(file)).write_bytes(b"new")
            (place / taken).parent.mkdir(exist_ok=True)
            (place / taken).write_bytes(b"theirs")
            with pytest.raises(OutputError) as caught:
                publication.publish()
        assert caught.value.code == "target-not-a-bundle"
        assert [path.read_bytes() for path in place.rglob("*") if path.is_file()] == [b"theirs"]


def test_a_stem_of_which_one_name_is_taken_in_the_last_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def faster(source: str, path: str) -> None:
        if path.endswith(".safetensors"):
            Path(path).write_bytes(b"theirs")
        link(source, path)

    monkeypatch.setattr(os, "link", faster)
    with pytest.raises(OutputError) as caught:
        save(tmp_path / "glove.safetensors", 1)
    assert caught.value.code == "target-exists"
    assert os.listdir(tmp_path) == ["glove.safetensors"]
    assert (tmp_path / "glove.safetensors").read_bytes() == b"theirs"


def _write_often(path: str, tag: int, times: int, pipe: Any) -> None:
    published = busy = 0
    while published < times:
        try:
            save(Path(path), tag, "replace")
            published += 1
        except TryAgainError:
            busy += 1
        except Vec2embError as error:
            pipe.send(repr(error))
            return
    pipe.send((published, busy))


@pytest.mark.parametrize("name", ["glove", "glove.safetensors"])
def test_two_writers_and_a_reader_never_meet_in_a_mixed_bundle(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    save(path, 0)
    if name == "glove":
        put_foreign(path)
    context = multiprocessing.get_context("spawn")
    ends = []
    for tag in (1, 2):
        ours, theirs = context.Pipe()
        process = context.Process(target=_write_often, args=(str(path), tag, 8, theirs))
        process.start()
        ends.append((process, ours))
    seen = set()
    while any(process.is_alive() for process, _ in ends):
        seen.add(tag_of(path))  # asserts that what loads is of one piece
    for process, ours in ends:
        process.join()
        assert ours.poll(10)
        published, _ = ours.recv()
        assert published == 8
    assert {1, 2} & seen
    assert tag_of(path) in (1, 2)
    assert not hidden_in(tmp_path)
    if name == "glove":
        assert foreign_of(path) == FOREIGN


def test_systems_without_locks_still_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    save(tmp_path / "glove", 1)
    assert tag_of(tmp_path / "glove") == 1


def test_exchange_swaps_two_folders_or_says_that_it_cannot(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    swapped = filesystem.exchange(str(tmp_path / "a"), str(tmp_path / "b"))
    assert os.listdir(tmp_path / "a") == (["b"] if swapped else ["a"])
    if swapped:
        with pytest.raises(FileNotFoundError):
            filesystem.exchange(str(tmp_path / "a"), str(tmp_path / "absent"))


@pytest.fixture
def immovable(tmp_path: Path) -> Path:
    """A bundle with a folder in it that cannot be moved out."""
    path = tmp_path / "glove"
    save(path, 1)
    (path / "volume").mkdir()
    return path


def test_what_cannot_be_tidied_up_is_named_and_the_next_run_tries_again(
    immovable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def refuse(source: str, path: str) -> None:
        if source.endswith("volume"):
            raise OSError(errno.EBUSY, "Device or resource busy", source)
        rename(source, path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        with pytest.raises(OutputError, match=r"in its place, but .*volume") as caught:
            save(immovable, 2, "replace")
        assert caught.value.code == "cannot-tidy"
        assert tag_of(immovable) == 2
    save(immovable, 3, "replace")
    assert tag_of(immovable) == 3
    assert (immovable / "volume").is_dir()
    assert not hidden_in(immovable.parent)
