"""Special tokens: which there are, where they stand, and how each gets its vector."""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

from collections.abc import Iterable
from typing import NamedTuple

from ..errors import UsageError, shown

INITS = ("zeros", "mean", "normal", "uniform", "token:WORD")
FITTED = ("mean", "normal", "uniform")  # those that need statistics of the file's rows

SpecialLike = str | tuple[str, str | None]


class Special(NamedTuple):
    """A special token.

    Attributes:
        token: its text.
        init: how it gets its vector (one of INITS); None takes the file's vector, or `default` where there is none.
        default: what None falls back to.
        role: `padding`, `unknown` or `special`.
    """

    token: str
    init: str | None
    default: str
    role: str


def check_init(init: str) -> str:
    """The init itself, if there is one of that name."""
    if not isinstance(init, str) or not _is_init(init):
        raise UsageError("unknown-init", "no such way to set a vector", expected=", ".join(INITS), found=repr(init))
    return init


def _is_init(text: str) -> bool:
    return text in ("zeros", *FITTED) or (text.startswith("token:") and text != "token:")


def parse_special(text: str) -> tuple[str, str | None]:
    """`TOKEN` or `TOKEN=INIT`, split at the last `=`, and only where an INIT follows it."""
    token, sign, init = text.rpartition("=")
    if sign and _is_init(init):
        return token, init
    return text, None


def arrange(pad: str | None, unk: str | None, unk_init: str | None, specials: Iterable[SpecialLike]) -> list[Special]:
    """All special tokens in the order of their rows: padding, unknown, the further ones.

    Padding or unknown that is named among `specials` takes its place there instead.

    Raises:
        UsageError: a token cannot be one, stands twice, or is set in two ways.
    """
    if isinstance(specials, str):
        raise UsageError(
            "specials-type", "specials are a list of tokens", found="one string", hint=f"use [{specials!r}]"
        )
    if unk_init is not None:
        check_init(unk_init)
        if unk is None:
            raise UsageError(
                "unk-init-alone", "there is no unknown token to set", hint="leave out --no-unk or --unk-init"
            )
    named = [_named(item) for item in specials]
    tokens = [token for token, _ in named]
    front: list[tuple[str, str | None]] = []
    if pad is not None and pad not in tokens:
        front.append((pad, None))
    if unk is not None and unk not in tokens and unk != pad:
        front.append((unk, None))
    if pad is not None and pad == unk:
        raise UsageError("special-twice", "padding and unknown cannot be the same token", found=shown(pad))
    arranged = [_special(token, init, pad, unk, unk_init) for token, init in front + named]
    for i, token in enumerate(tokens):
        if token in tokens[:i]:
            raise UsageError("special-twice", "a special token stands twice", found=shown(token))
    return arranged


def _named(item: SpecialLike) -> tuple[str, str | None]:
    if isinstance(item, str):
        return parse_special(item)
    if isinstance(item, tuple) and len(item) == 2:
        return item
    raise UsageError("specials-type", "a special token is TOKEN, TOKEN=INIT or (token, init)", found=repr(item))


def _check_token(token: str) -> None:
    if not isinstance(token, str) or not token or "\n" in token:
        raise UsageError(
            "special-token", "a special token is not empty and holds no line feed", found=shown(str(token))
        )
    try:
        token.encode()
    except UnicodeEncodeError:
        raise UsageError("special-token", "a special token is Unicode text", found=shown(token)) from None


def _special(token: str, init: str | None, pad: str | None, unk: str | None, unk_init: str | None) -> Special:
    _check_token(token)
    if init is not None:
        check_init(init)
    if token == pad:
        if init not in (None, "zeros"):
            raise UsageError(
                "padding-init", "the padding row is always zero", found=f"{token}={init}", hint="leave the INIT out"
            )
        return Special(token, "zeros", "zeros", "padding")
    if token == unk:
        if init is not None and unk_init is not None and init != unk_init:
            raise UsageError("unk-init-twice", "the unknown token is set in two ways", found=f"{init} and {unk_init}")
        return Special(token, init or unk_init, "mean", "unknown")
    return Special(token, init, "normal", "special")
