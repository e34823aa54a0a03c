"""Members of zip and tar archives, read where they lie: nothing is unpacked, so no name of a member can do harm."""

from .choice import Choice, Probe
from .members import HEAD, Entry, Member, kind_of
from .tar import open_tar
from .zip import open_zip

__all__ = ["HEAD", "Choice", "Entry", "Member", "Probe", "kind_of", "open_tar", "open_zip"]
