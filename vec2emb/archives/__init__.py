"""Members of zip and tar archives, read where they lie: nothing is unpacked, so no name of a member can do harm.

`zip` and `tar` are imported when there is such an archive: what they need of the standard library takes its time.
"""

from .choice import Choice, Probe
from .members import HEAD, Entry, Member, kind_of

__all__ = ["HEAD", "Choice", "Entry", "Member", "Probe", "kind_of"]
