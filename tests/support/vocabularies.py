"""Vocabularies and tokens that several tests use, and the error that one of them must be refused with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from vec2emb.errors import Vec2embError

SMALL = ["<pad>", "<unk>", "the", "of", "New York"]

# What str.split, strip and splitlines take apart, and other oddities; the empty string last.
ODD = [
    "\u00a0", "\u0085", "\u2028", "\u3000", "\ufeff", "\ufeffa", " ", "  ", " a", "a ", "\t", "\r", "a\r", "\rb",
    "\x0b", "\x0c", "\x1c", "\0", "a\0", "é", "e\u0301", "😀", "\U0010ffff", "%s", "'", '"', "\\n", "x" * 10_000, "",
]  # fmt: skip

TOKENS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=6)
VOCABULARIES = st.lists(TOKENS, unique=True, max_size=40)
fast = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@contextmanager
def refused(kind: type[Vec2embError], code: str, text: str) -> Iterator[None]:
    """The error has this code and, word for word, this text."""
    with pytest.raises(kind) as caught:
        yield
    assert (caught.value.code, str(caught.value)) == (code, text)
