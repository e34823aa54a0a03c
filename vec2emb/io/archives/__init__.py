"""Members of zip and tar archives, read where they lie: nothing is unpacked, so no name of a member can do harm.

`choice`, `zip` and `tar` are imported when there is such an archive: what they need of the standard library takes its
time.
"""

from .members import HEAD, Entry, Member, kind_of

__all__ = ["HEAD", "Entry", "Member", "kind_of"]
