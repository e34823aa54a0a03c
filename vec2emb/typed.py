"""Types that several packages share: what JSON holds, and where a fault is."""

from __future__ import annotations

from typing import Any, TypedDict

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
JsonObject = dict[str, Json]

# A report as `--json` prints it. Its readers index into it by the names that the documentation gives, to any depth,
# which the recursive type does not let them do without a check at each step.
JsonReport = dict[str, Any]

# Settings of a model of another library: read and written by the names that this library gives them.
ModelSettings = dict[str, Any]


class Place(TypedDict, total=False):
    """Where a fault is, as the errors take it: see `Vec2embError`."""

    path: str | None
    line: int | None
    offset: int | None
    record: int | None
