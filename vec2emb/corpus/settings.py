"""What is counted in a corpus: the settings that change what comes out, small enough to be sent to every worker."""

from __future__ import annotations

import os
from typing import NamedTuple

from ..errors import InputError, UsageError
from ..io.urls import is_url, label_of, name_of
from ..options.choices import ENCODING_ERRORS
from ..words.vocabulary_file import read

FIELD = "text"  # of JSON lines and Parquet files, where no other is named


class Settings(NamedTuple):
    """What a token is and where text stands.

    Attributes:
        tokenizer: `whitespace`, `bert`, `regex:PATTERN` or `hf:NAME`.
        lowercase: whether tokens are lower-cased, after splitting.
        field: of JSON lines the key, of Parquet files the column that holds text.
        encoding_errors: what is done at a token that is not UTF-8: `error`, `replace` or `escape`.
        content: of `hf:NAME` the tokenizer.json itself, so that a worker needs no file of this machine.
    """

    tokenizer: str = "whitespace"
    lowercase: bool = False
    field: str | None = None
    encoding_errors: str = "error"
    content: str = ""

    @classmethod
    def of(cls, tokenizer: str, lowercase: bool, field: str | None, encoding_errors: str) -> Settings:
        """Settings as a caller names them; the file of `hf:FILE` is read here.

        Raises:
            UsageError: there is no such tokenizer.
            InputError: the file of `hf:FILE` cannot be read.
        """
        kind, colon, rest = tokenizer.partition(":")
        if kind not in (("regex", "hf") if colon else ("whitespace", "bert")) or (colon and not rest):
            raise UsageError(
                "unknown-tokenizer",
                "there is no such tokenizer",
                expected="whitespace, bert, regex:PATTERN or hf:FILE",
                found=repr(tokenizer),
            )
        if kind != "hf":
            return cls(tokenizer, lowercase, field, encoding_errors)
        try:
            content = read(rest, lines=False).decode()
        except UnicodeDecodeError as error:
            raise InputError("cannot-open", f"the tokenizer cannot be read ({error})", path=label_of(rest)) from error
        # The base name is what gets recorded: where the file lay says nothing about the counts.
        return cls(
            f"hf:{name_of(rest) if is_url(rest) else os.path.basename(rest)}",
            lowercase,
            field,
            encoding_errors,
            content,
        )

    @property
    def handler(self) -> str:
        """The policy for bytes that are no UTF-8, as Python's codecs name it."""
        return ENCODING_ERRORS[self.encoding_errors]
