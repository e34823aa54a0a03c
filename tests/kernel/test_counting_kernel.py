"""Counting in the kernel, in plain Python and in C++. The oracle is `collections.Counter(data.split())`."""

from __future__ import annotations

import importlib.util
import threading
import zlib
from array import array
from collections import Counter
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vec2emb._kernel import reference

HAS_NATIVE = importlib.util.find_spec("vec2emb._kernel._native") is not None
ENGINES = ["reference", "native"] if HAS_NATIVE else ["reference"]

# Pieces of which texts are drawn: all that separates, some that only looks so, and tokens around 64 bytes and 8.
PIECES = [
    b" ", b" ", b"\n", b"\t", b"\v", b"\f", b"\r", b"\x1c", b"\x85", b"\xa0", b"\0", b"\x08", b"\x0e", b"!", b"a",
    b"the", b"of", "naïve".encode(), "\u3000".encode(), b"\xff", b"\xc3", b"12345678", b"123456789", b"x" * 63,
    b"x" * 64, b"y" * 65, b"z" * 200,
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=60).map(b"".join)


def kernel(name: str) -> Any:
    return reference if name == "reference" else import_module("vec2emb._kernel._native")


@pytest.fixture(params=ENGINES)
def new(request: pytest.FixtureRequest) -> Any:
    """What makes a counter."""
    return kernel(request.param).TokenCounter


def counted(new: Any, *texts: bytes) -> Any:
    counter = new()
    for text in texts:
        counter.add_text(text, 0, len(text))
    return counter


def pairs(blob: bytes, counts: bytes) -> list[tuple[bytes, int]]:
    return list(zip(blob.split(b"\n")[:-1], array("q", counts), strict=True))


def by_count(counts: Counter[bytes]) -> list[tuple[bytes, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def test_by_hand(new: Any) -> None:
    counter = counted(new, b"b a\tb\n\n c\v\f\ra b")
    assert (len(counter), counter.total, counter.nbytes) == (3, 6, 6)
    assert pairs(*counter.by_count()) == [(b"b", 3), (b"a", 2), (b"c", 1)]
    assert counter.memory > 0


def test_empty(new: Any) -> None:
    for text in (b"", b" ", b"\n\n \t"):
        counter = counted(new, text)
        assert (len(counter), counter.total, counter.nbytes) == (0, 0, 0)
        assert counter.by_count() == (b"", b"")
        assert counter.by_bucket(3) == (b"", b"", [0, 0, 0])


def test_only_ascii_white_space_separates(new: Any) -> None:
    """As bytes.split() has it: neither 0x1C to 0x1F nor any white space of Unicode."""
    for byte in range(256):
        text = b"a" + bytes([byte]) + b"b"
        assert pairs(*counted(new, text).by_count()) == by_count(Counter(text.split())), byte


def test_ends_of_the_range_separate(new: Any) -> None:
    counter = new()
    data = bytearray(b"xxab cdxx")
    assert counter.add_text(data, 2, 7) == -1
    assert counter.add_text(memoryview(data), 3, 3) == -1
    assert pairs(*counter.by_count()) == [(b"ab", 1), (b"cd", 1)]


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 4), (2, 1), (4, 4)])
def test_a_range_lies_within_its_buffer(new: Any, start: int, stop: int) -> None:
    with pytest.raises(ValueError, match="the text must lie within its buffer"):
        new().add_text(b"abc", start, stop)


def test_equal_counts_stand_by_their_bytes(new: Any) -> None:
    """Also where the first eight bytes are the same, or NUL is among them; bytes have no sign."""
    tokens = [
        b"a",
        b"a\0",
        b"a\0\0",
        b"ab",
        b"abcdefgh",
        b"abcdefgh\0",
        b"abcdefgha",
        b"abcdefghb",
        b"\x7f",
        b"\x80",
        b"\xff",
    ]
    counter = counted(new, b" ".join(reversed(tokens)))
    assert pairs(*counter.by_count()) == [(token, 1) for token in sorted(tokens)]


def test_buckets_are_the_checksum(new: Any) -> None:
    text = " ".join(str(i) for i in range(500)).encode()
    for buckets in (1, 7, 64):
        blob, counts, sizes = counted(new, text).by_bucket(buckets)
        expected = sorted(text.split(), key=lambda token: (zlib.crc32(token) % buckets, token))
        assert pairs(blob, counts) == [(token, 1) for token in expected]
        assert sizes == [sum(zlib.crc32(token) % buckets == b for token in expected) for b in range(buckets)]


@pytest.mark.parametrize("buckets", [0, -1, (1 << 16) + 1])
def test_a_wrong_number_of_buckets(new: Any, buckets: int) -> None:
    with pytest.raises(ValueError, match=f"{buckets} buckets, expected 1 to 65536"):
        new().by_bucket(buckets)


def test_the_first_new_token_that_is_not_utf8(new: Any) -> None:
    counter = new()
    assert counter.add_text(b"..a \xc3\xa9 b\xff c\xfe", 2, 11) == 7
    assert counter.add_text(b"b\xff a", 0, 4) == -1, "it came before"
    assert counter.add_text(b"a \xe2\x82\xac \xe2\x82 \xff", 0, 10) == 6
    assert counter.total == 10
    for bad in (b"\x80", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf0\x80\x80\x80"):
        assert new().add_text(b"ok " + bad, 0, 3 + len(bad)) == 3


def test_add(new: Any) -> None:
    counter = new()
    counter.add(b"x y", 5)
    counter.add(b"x y")
    counter.add(b"")
    assert pairs(*counter.by_count()) == [(b"x y", 6), (b"", 1)]
    with pytest.raises(ValueError, match="a token cannot hold LF"):
        counter.add(b"a\nb", 1)
    for count in (0, -3):
        with pytest.raises(ValueError, match=f"a count is {count}, expected at least 1"):
            counter.add(b"z", count)
    assert (len(counter), counter.total) == (2, 7)


def test_add_lines(new: Any) -> None:
    counter = counted(new, b"b b")
    counter.add_lines(b"a b\nb\n\n", array("q", [3, 4, 1 << 40]))
    counter.add_lines(memoryview(b"b\n"), np.array([2], np.int64))
    counter.add_lines(b"", array("q"))
    assert pairs(*counter.by_count()) == [(b"", 1 << 40), (b"b", 8), (b"a b", 3)]


@pytest.mark.parametrize(
    ("blob", "counts", "text"),
    [
        (b"a", [1], "the last line does not end with LF"),
        (b"a\nb\n", [1], "1 counts for 2 tokens"),
        (b"a\n", [1, 2], "2 counts for 1 tokens"),
        (b"a\nb\n", [1, 0], "a count is 0, expected at least 1"),
    ],
)
def test_lines_that_are_refused_change_nothing(new: Any, blob: bytes, counts: list[int], text: str) -> None:
    counter = new()
    with pytest.raises(ValueError, match=text):
        counter.add_lines(blob, array("q", counts))
    assert (len(counter), counter.total) == (0, 0)


def test_merge(new: Any) -> None:
    one, other = counted(new, b"a b b"), counted(new, b"b c")
    one.merge(other)
    assert pairs(*one.by_count()) == [(b"b", 3), (b"a", 1), (b"c", 1)]
    assert pairs(*other.by_count()) == [(b"b", 1), (b"c", 1)]
    one.merge(one)
    assert pairs(*one.by_count()) == [(b"b", 6), (b"a", 2), (b"c", 2)]
    assert one.total == 10


def test_long_tokens(new: Any) -> None:
    """Longer than a page of the arena, and than a length that an index writes down."""
    long = [b"x" * (1 << 19), b"x" * ((1 << 19) - 1), b"y" * (3 << 20), b"short"]
    counter = counted(new, b" ".join(long * 2))
    assert pairs(*counter.by_count()) == [(token, 2) for token in sorted(long)]


@pytest.mark.parametrize("name", ENGINES)
@settings(deadline=None, max_examples=150)
@given(texts=st.lists(TEXTS, max_size=4))
def test_equals_counter(name: str, texts: list[bytes]) -> None:
    expected = Counter(token for text in texts for token in text.split())
    counter = counted(kernel(name).TokenCounter, *texts)
    assert pairs(*counter.by_count()) == by_count(expected)
    assert (len(counter), counter.total) == (len(expected), expected.total())
    assert counter.nbytes == sum(len(token) + 1 for token in expected)


@settings(deadline=None, max_examples=100)
@given(text=TEXTS, at=st.integers(0, 200))
@pytest.mark.skipif(not HAS_NATIVE, reason="there is no native kernel")
def test_kernels_agree_on_what_is_not_utf8(text: bytes, at: int) -> None:
    start = min(at, len(text))
    found = []
    for name in ENGINES:
        counter = kernel(name).TokenCounter()
        found.append((counter.add_text(text, 0, start), counter.add_text(text, start, len(text)), counter.by_count()))
    assert found[0] == found[1]


def test_many_tokens(new: Any) -> None:
    """So many that the table grows several times, a batch of look-ups under way."""
    rng = np.random.default_rng(0)
    numbers = rng.zipf(1.3, 200_000) % 50_000
    text = b" ".join(b"%d" % number for number in numbers.tolist())
    assert pairs(*counted(new, text).by_count()) == by_count(Counter(text.split()))


@pytest.mark.skipif(not HAS_NATIVE, reason="the twin knows no threads")
def test_threads_take_turns() -> None:
    counter = kernel("native").TokenCounter()
    text = b" ".join(b"%d" % (i % 1000) for i in range(50_000))
    threads = [threading.Thread(target=counter.add_text, args=(text, 0, len(text))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(counter), counter.total) == (1000, 200_000)
    assert set(array("q", counter.by_count()[1])) == {200}
