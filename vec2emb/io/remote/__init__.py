"""Files behind URLs, through fsspec: a cut download is never taken for a whole file, nor half an upload for a bundle.

Nothing here is imported for a path of this machine: fsspec alone takes longer to load than a small conversion.
"""

from .files import RemoteFile, open_remote, read_whole
from .listing import again, is_folder, listed
from .systems import filesystem

__all__ = ["RemoteFile", "again", "filesystem", "is_folder", "listed", "open_remote", "read_whole"]
