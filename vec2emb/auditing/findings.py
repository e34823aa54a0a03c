"""What somebody should act on: figures that are not as they should be, in words, with the option that helps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from ..errors import Vec2embWarning, printable, shown
from .health_figures import Example, Fault, Finding, Health

Level = Literal["fault", "warning", "note"]
ORDER = {"fault": 0, "warning": 1, "note": 2}
_SAID = ("duplicate-tokens", "bad-rows", "special-in-file")  # warnings of reading that findings say better
_FEW = 3

# figure, level, "one" and "many" of what is counted, advice
_ROWS: tuple[tuple[str, Level, str, str, str | None], ...] = (
    ("duplicates", "warning", "row of a token that came before", "rows of tokens that came before",
     "convert takes the first; --duplicates last or error"),
    ("nan_rows", "fault", "row with NaN", "rows with NaN", "--nonfinite zero writes 0, --bad-rows skip leaves it out"),
    ("inf_rows", "fault", "row with infinity", "rows with infinity",
     "--nonfinite zero writes 0, --bad-rows skip leaves it out"),
    ("zero_rows", "warning", "row of zeros", "rows of zeros", "it has no direction: every cosine with it is undefined"),
    ("constant_rows", "warning", "row of one value", "rows of one value", "it was hardly trained: leave the word out"),
    ("identical_vectors", "warning", "row with the vector of another token", "rows with the vector of another token",
     None),
    ("norm_outliers", "note", "row of an odd length", "rows of an odd length", "--unit-norm makes all lengths 1"),
    ("nfkc_twins", "note", "row that NFKC makes one with another", "rows that NFKC makes one with others",
     "normalise the text as the file's makers did"),
    ("nfc_twins", "warning", "row that NFC makes one with another", "rows that NFC makes one with others",
     "the same word in two encodings: normalise the text"),
    ("case_twins", "note", "row that differs from another in case alone", "rows that differ from others in case alone",
     "--lowercase makes one of those that differ in capitals"),
)  # fmt: skip
_KINDS: tuple[tuple[str, Level, str, str, str], ...] = (
    ("control", "warning", "token with control characters", "tokens with control characters",
     "a terminal may act on them; no tokenizer gives them"),
    ("mojibake", "warning", "token that looks like misread UTF-8", "tokens that look like misread UTF-8",
     "no text has them: the file went through a wrong encoding"),
)  # fmt: skip


def find(health: Health, warnings: Iterable[Vec2embWarning], bundle: bool) -> list[Finding]:
    """The findings of a source, the worst first; `health` has none yet."""
    found = [*_of_faults(health.faults), *_of_header(health), *_of_checks(health.checks)]
    examples = health.examples
    for name, level, one, many, advice in _ROWS:
        count: int = getattr(health, name)
        found += _counted(name, level, count, one, many, examples.get(name, ()), None if bundle else advice)
    for name, level, one, many, advice in _KINDS:
        found += _counted(name, level, health.kinds[name], one, many, examples.get(name, ()), advice)
    found += _of_dimensions(health)
    found += _of_direction(health)
    for special in health.near_specials:
        text = f"{shown(special.token)} looks like a special token ({special.role})"
        found.append(Finding("near-special", "note", 1, text, None if bundle else special.advice))
    found += [
        Finding(warning.code, "note", warning.count, _without_place(warning), None)
        for warning in warnings
        if warning.code not in _SAID
    ]
    return sorted(found, key=lambda finding: ORDER[finding.level])


def _counted(
    name: str, level: Level, count: int, one: str, many: str, examples: Iterable[Example], advice: str | None
) -> Iterator[Finding]:
    if count:
        named = [f"{shown(e.token, 30)} ({printable(e.detail)})" for e, _ in zip(examples, range(_FEW), strict=False)]
        more = ", .." if count > len(named) else ""
        text = f"{count:,} {one if count == 1 else many}"
        yield Finding(name.replace("_", "-"), level, count, f"{text}: {', '.join(named)}{more}", advice)


def _of_faults(faults: dict[str, Fault]) -> Iterator[Finding]:
    for code, fault in faults.items():
        if fault.count:
            text = (
                f"{fault.count:,} {'row does' if fault.count == 1 else 'rows do'} not load, the first: {fault.message}"
            )
            yield Finding(
                code, "fault", fault.count, text, "convert ends at such a row, unless an option says otherwise"
            )


def _of_header(health: Health) -> Iterator[Finding]:
    if health.header_agrees is False and health.header_rows is not None:
        text = f"the header promises {health.header_rows:,} rows, there are {health.rows:,}"
        advice = "get the file again" if health.rows < health.header_rows else "correct the header"
        yield Finding("header-rows", "fault", 1, text, advice)


def _of_checks(checks: dict[str, str | None]) -> Iterator[Finding]:
    for name, problem in checks.items():
        if problem is not None:
            yield Finding("check-failed", "fault", 1, f"not so: {name} ({problem})", "convert again, or copy it again")


def _of_dimensions(health: Health) -> Iterator[Finding]:
    dimensions = health.dimensions
    if dimensions.rogue:
        named = ", ".join(
            f"{rogue.dim} ({rogue.share:.0%}, mean {rogue.mean:.3g})" for rogue in dimensions.rogue[:_FEW]
        )
        text = f"{len(dimensions.rogue)} of {health.dim} dimensions carry much of the squared length: {named}"
        advice = "cosines follow them: subtract the mean before comparing words"
        yield Finding("rogue-dims", "warning", len(dimensions.rogue), text, advice)
    if dimensions.constant:
        text = f"{len(dimensions.constant)} dimensions are the same in all rows: {dimensions.constant[:10]}"
        yield Finding("constant-dims", "warning", len(dimensions.constant), text, "they say nothing of any word")


def _of_direction(health: Health) -> Iterator[Finding]:
    cosine = health.mean_cosine
    if cosine is not None and cosine >= 0.2 and health.loaded >= 100:
        text = f"the rows point one way: two of them have a cosine of {cosine:.2f} on average"
        yield Finding("anisotropy", "note", 1, text, "subtract the mean before comparing words by cosine")


def _without_place(warning: Vec2embWarning) -> str:
    text = str(warning)
    prefix = f"{printable(warning.path or '')}, line {warning.line}: "
    return f"line {warning.line}: {text.removeprefix(prefix)}" if text.startswith(prefix) else text
