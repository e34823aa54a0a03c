"""Vocabularies in files, in pickles and in other processes; both kernels."""

from __future__ import annotations

import os
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from vocabularies import ODD, SMALL, VOCABULARIES, fast, refused

from vec2emb.errors import BundleError, InputError, OutputError, Vec2embWarning, VocabularyError
from vec2emb.words.vocabulary import Vocabulary

pytestmark = pytest.mark.usefixtures("kernel")


@pytest.fixture
def vocab() -> Vocabulary:
    return Vocabulary(SMALL, pad_token="<pad>", unk_token="<unk>")


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_read_and_write(vocab: Vocabulary, tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    vocab.to_file(path)
    assert path.read_bytes() == b"<pad>\n<unk>\nthe\nof\nNew York\n"
    assert Vocabulary.from_file(str(path)) == Vocabulary.from_file(os.fsencode(path)) == vocab  # type: ignore[arg-type]
    bare = Vocabulary.from_file(path, pad_token=None, unk_token=None)
    assert (bare.padding_idx, bare.unk_idx, bare.to_list()) == (None, None, SMALL)
    named = Vocabulary.from_file(path, pad_token="of", unk_token="the", lookup="lower")
    assert (named.padding_idx, named.unk_idx, named.lookup) == (3, 2, "lower")
    text = f"{path}: the special token '[UNK]' is not among the tokens; add it, name another, or pass None for none"
    with refused(VocabularyError, "missing-special", text):
        Vocabulary.from_file(path, unk_token="[UNK]")
    plain = Vocabulary.from_file(write(path, b"a\nb\n"))
    assert (plain.padding_idx, plain.unk_idx, plain.to_list()) == (None, None, ["a", "b"])


def test_files_are_never_replaced_unasked(vocab: Vocabulary, tmp_path: Path) -> None:
    path = write(tmp_path / "vocab.txt", b"old\n")
    with refused(OutputError, "target-exists", f"{path}: the file is there already; pass replace=True to replace it"):
        vocab.to_file(path)
    assert path.read_bytes() == b"old\n"
    vocab.to_file(path, replace=True)
    assert Vocabulary.from_file(path) == vocab
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    with refused(OutputError, "target-is-a-folder", f"{tmp_path}: this is a folder; name a file"):
        vocab.to_file(tmp_path, replace=True)
    with refused(
        OutputError,
        "cannot-write",
        f"{tmp_path}/no/v.txt: the file cannot be written (No such file or directory); nothing was left behind",
    ):
        vocab.to_file(tmp_path / "no" / "v.txt")
    assert os.listdir(tmp_path) == ["vocab.txt"]


def test_a_write_that_fails_leaves_nothing(vocab: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = write(tmp_path / "vocab.txt", b"old\n")
    monkeypatch.setattr(os, "fsync", full)
    with refused(
        OutputError,
        "disk-full",
        f"{path}: the file cannot be written (No space left on device); nothing was left behind",
    ):
        vocab.to_file(path, replace=True)
    assert path.read_bytes() == b"old\n"
    assert os.listdir(tmp_path) == ["vocab.txt"]


def test_writing_without_hard_links(vocab: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", no_links)
    vocab.to_file(tmp_path / "vocab.txt")
    with pytest.raises(OutputError, match="is there already"):
        vocab.to_file(tmp_path / "vocab.txt")
    assert os.listdir(tmp_path) == ["vocab.txt"]


EMPTY_LINE = 'the line is empty: expected one token a line; remove it; if the empty token pads, pass pad_token=""'


@pytest.mark.parametrize(
    ("content", "code", "text"),
    [
        (b"", "empty-vocabulary", ": the file is empty: expected one token a line"),
        (
            b"a\r\nb\r\n",
            "crlf-lines",
            ": every line ends with CR LF: expected lines that end with LF, since CR may be part of a token; "
            "remove the CRs, as with: tr -d '\\r' <FILE >NEW",
        ),
        (
            b"a\r\nb",
            "crlf-lines",
            ": every line ends with CR LF: expected lines that end with LF, since CR may be part of a token; "
            "remove the CRs, as with: tr -d '\\r' <FILE >NEW",
        ),
        (
            b"caf\xe9\n",
            "invalid-utf8",
            ", line 1: the token is not UTF-8: found bytes e9; convert the file, as with: iconv -f latin1 -t utf-8",
        ),
        (
            b"the\nof\na\nof\n",
            "duplicate-token",
            ", line 4: the token 'of' stands twice: expected each token once, found lines 2 and 4; "
            "remove one of the two, and its row where there are vectors",
        ),
        (
            b"a\n\nb\n",
            "empty-line",
            ", line 2: " + EMPTY_LINE,
        ),
        (
            b"\na\n",
            "empty-line",
            ", line 1: " + EMPTY_LINE,
        ),
        (
            b"a\nb\n\n",
            "empty-line",
            ", line 3: " + EMPTY_LINE,
        ),
    ],
)
def test_files_that_are_refused(content: bytes, code: str, text: str, tmp_path: Path) -> None:
    path = write(tmp_path / "vocab.txt", content)
    with refused(VocabularyError, code, f"{path}{text}"):
        Vocabulary.from_file(path)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with refused(InputError, "not-found", f"{tmp_path}/v.txt: there is no such file"):
        Vocabulary.from_file(tmp_path / "v.txt")
    with refused(InputError, "not-found", f"{tmp_path}/v.txt: there is no such file"):
        Vocabulary.map_file(tmp_path / "v.txt", padding_idx=None, unk_idx=None)
    with refused(InputError, "cannot-open", f"{tmp_path}: the file cannot be opened (Is a directory)"):
        Vocabulary.from_file(tmp_path)


def test_cr_is_part_of_a_token_unless_all_have_it(tmp_path: Path) -> None:
    path = write(tmp_path / "vocab.txt", b"a\r\n\r\nb\n")
    assert Vocabulary.from_file(path).to_list() == ["a\r", "\r", "b"]


def test_byte_order_marks(tmp_path: Path) -> None:
    path = write(tmp_path / "vocab.txt", b"\xef\xbb\xbf<pad>\nb\n")
    vocab = Vocabulary.from_file(path)
    assert vocab.to_list() == ["<pad>", "b"]
    assert vocab.padding_idx == 0
    assert pickle.loads(pickle.dumps(vocab)) == vocab
    write(path, b"\xef\xbb\xbf\n\xef\xbb\xbfa\n")
    assert Vocabulary.from_file(path).to_list() == ["\ufeff", "\ufeffa"]
    mapped = Vocabulary.map_file(write(path, b"\xef\xbb\xbfa\r\n"), padding_idx=None, unk_idx=None)
    assert mapped.to_list() == ["\ufeffa\r"]


def test_a_missing_last_lf_is_supplied(tmp_path: Path) -> None:
    path = write(tmp_path / "vocab.txt", b"a\nb")
    with pytest.warns(
        Vec2embWarning, match=f"^{path}, line 2: the last line does not end with LF; was the file cut"
    ) as seen:
        vocab = Vocabulary.from_file(path)
    assert seen[0].filename == __file__
    assert isinstance(seen[0].message, Vec2embWarning)
    assert (seen[0].message.code, seen[0].message.line) == ("missing-last-lf", 2)
    assert vocab == Vocabulary(["a", "b"])
    assert pickle.loads(pickle.dumps(vocab)) == vocab
    assert path.read_bytes() == b"a\nb"


@pytest.mark.parametrize(
    ("tokens", "found"),
    [
        ([], "the file is empty"),
        (["a", ""], "the line is empty"),
        (["\ufeffa"], "a byte order mark is in front"),
        (["a\r", "b\r"], "every line ends with CR LF"),
    ],
)
def test_what_would_not_be_read_back_is_not_written(tokens: list[str], found: str, tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    text = f"{path}: the file would not be read back as it is: found {found}"
    with refused(OutputError, "unreadable-vocabulary", text):
        Vocabulary(tokens).to_file(path)
    assert os.listdir(tmp_path) == []


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"a\nb\n",))
    writer.start()
    vocab = Vocabulary.from_file(path)
    writer.join()
    assert vocab.to_list() == ["a", "b"]
    assert pickle.loads(pickle.dumps(vocab)) == vocab


def test_pickle_by_bytes() -> None:
    vocab = Vocabulary(ODD, pad_token="", unk_token=" ", lookup="lower")
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(vocab, protocol))
        assert again == vocab
        assert again.to_list() == ODD


@pytest.mark.parametrize("mapped", [True, False])
def test_pickle_by_path(mapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = ["<unk>", *(f"word{i}" for i in range(5000))]
    path = tmp_path / "vocab.txt"
    Vocabulary(tokens).to_file(path)
    monkeypatch.chdir(tmp_path)
    sha256 = Vocabulary(tokens).sha256
    if mapped:
        vocab = Vocabulary.map_file("vocab.txt", padding_idx=None, unk_idx=0, sha256=sha256, lookup="lower")
    else:
        vocab = Vocabulary.from_file("vocab.txt", lookup="lower")
    data = pickle.dumps(vocab)
    assert len(data) < 500
    monkeypatch.chdir("/")
    again = pickle.loads(data)
    assert again == vocab
    assert pickle.dumps(again) == data
    assert again["Word77"] == 78

    path.rename(tmp_path / "old.txt")
    assert vocab["word1"] == 2  # whoever holds it still has it
    with refused(InputError, "not-found", f"{path}: there is no such file"):
        pickle.loads(data)
    write(path, b"other\n")
    with pytest.raises(BundleError, match="the vocabulary is not the one that belongs here: expected sha256") as caught:
        pickle.loads(data)
    assert caught.value.code == "vocabulary-changed"
    assert caught.value.expected == f"sha256 {sha256}"


def test_a_mapped_file_has_to_be_the_one(tmp_path: Path) -> None:
    path = write(tmp_path / "vocab.txt", b"a\nb\n")
    vocab = Vocabulary.map_file(path, padding_idx=0, unk_idx=None)
    assert vocab.to_list() == ["a", "b"]
    assert Vocabulary.map_file(path, padding_idx=0, unk_idx=None, sha256=vocab.sha256) == vocab
    with pytest.raises(BundleError, match=f"^{path}: the vocabulary is not the one"):
        Vocabulary.map_file(path, padding_idx=0, unk_idx=None, sha256="0" * 64)
    cut = write(tmp_path / "cut.txt", b"a\nb")
    with refused(VocabularyError, "missing-last-lf", f"{cut}: the last token is not followed by LF"):
        Vocabulary.map_file(cut, padding_idx=0, unk_idx=None)
    assert Vocabulary.map_file(write(tmp_path / "empty.txt", b""), padding_idx=None, unk_idx=None).to_list() == []


@fast
@given(VOCABULARIES)
def test_read_after_write(tmp_path_factory: pytest.TempPathFactory, tokens: list[str]) -> None:
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    vocab = Vocabulary(tokens)
    if tokens and "" not in tokens and tokens[0][:1] != "\ufeff" and not all(t.endswith("\r") for t in tokens):
        vocab.to_file(path)
        assert Vocabulary.from_file(path, pad_token=None, unk_token=None) == vocab


# --- other processes --------------------------------------------------------------------------------------------------


class Batches(torch.utils.data.Dataset[Any]):
    """Item i is a batch of i + 1 texts."""

    def __init__(self, vocab: Vocabulary) -> None:
        self.vocab = vocab

    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: int) -> Any:
        batch, _ = self.vocab.encode_batch([SMALL[: n + 1] for n in range(i + 1)])
        return torch.from_numpy(batch), self.vocab.decode(batch[-1])


# Workers that are spawned use the index of their own process, so that once is enough.
@pytest.mark.parametrize("kernel", ["reference"], indirect=True)
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_loader_workers(method: str, tmp_path: Path) -> None:
    Vocabulary(SMALL).to_file(tmp_path / "vocab.txt")
    held = [
        Vocabulary(SMALL, pad_token="<pad>", unk_token="<unk>"),
        Vocabulary.from_file(tmp_path / "vocab.txt"),
        Vocabulary.map_file(tmp_path / "vocab.txt", padding_idx=0, unk_idx=1),
    ]
    dataset: torch.utils.data.Dataset[Any] = torch.utils.data.ConcatDataset([Batches(vocab) for vocab in held])
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context=method)
    assert [(batch.tolist(), last) for batch, last in loader] == 3 * [
        ([[0]], ["<pad>"]),
        ([[0, 0], [0, 1]], ["<pad>", "<unk>"]),
        ([[0, 0, 0], [0, 1, 0], [0, 1, 2]], ["<pad>", "<unk>", "the"]),
    ]
