"""What is written, where, and how the work is done."""

from __future__ import annotations

from .choices import DTYPES, IF_EXISTS, REPLACE
from .definition import BOOL, FUNCTION, MAPPING, NONE, PATH, REQUIRED, TEXT, Option, checked_within, whole

OUTPUT, MACHINE = "Output", "Machine"

BUNDLE = Option("bundle", PATH, default=REQUIRED, kind="positional", only="python")
OUT = Option(
    "output", PATH, "A folder, or NAME.safetensors.", REQUIRED,
    heading=OUTPUT, metavar="OUT", flags=("-o", "--output"), kind="positional",
)  # fmt: skip
OUT_UNLESS_DRY = OUT.but(
    type=PATH | NONE,
    default=None,
    help="A folder, or NAME.safetensors; also at a URL, as s3://BUCKET/NAME.  [required]",
)
IF_BUNDLE_EXISTS = Option(
    "if_exists", TEXT,
    "What to do if OUT exists; keep: succeed if an identical bundle is already there, else fail.",
    "error", IF_EXISTS, "if-exists", OUTPUT,
)  # fmt: skip
IF_FILE_EXISTS = IF_BUNDLE_EXISTS.but(help="What to do if the output exists.", choices=REPLACE)

DTYPE = Option("dtype", TEXT, "Type of the stored rows.", "float32", DTYPES, "dtype", OUTPUT, recorded="dtype")
SHARD_SIZE = Option(
    "shard_size", checked_within("int | str | None"),
    "Cut the table into shards of at most SIZE, such as 5GB (PyTorch's distributed checkpoint).",
    usual="one file", heading=OUTPUT, metavar="SIZE",
)  # fmt: skip
LICENSE = Option("license", TEXT | NONE, "Licence of the vectors, recorded.", heading=OUTPUT, metavar="SPDX")
SOURCE_URL = Option("source_url", TEXT | NONE, "Where SOURCE came from, recorded.", heading=OUTPUT, metavar="URL")
EXPECT = Option(
    "expect", (TEXT | MAPPING).named("ExpectLike") | NONE,
    "Fail unless the result has these: rows=N,dim=N,digest=H,sha256=H (digest is fast; both of model.safetensors), "
    "missing<=N,absent<=N (words of --vocab or --corpus, and of --only, that SOURCE lacks).",
    heading=OUTPUT, metavar="FACTS",
)  # fmt: skip
ROW_REPORT = Option(
    "row_report", PATH | NONE, "Write JSON lines, one for each row that is not simply the file's own.",
    heading=OUTPUT, metavar="FILE",
)  # fmt: skip
DRY_RUN = Option("dry_run", BOOL, "Read and select, write nothing; numbers are not checked.", False, heading=OUTPUT)
STRICT = Option("strict", BOOL, "Make warnings errors, except of absent words (see --expect).", False, heading=OUTPUT)

THREADS = Option(
    "threads", whole(1) | NONE, "Number of threads.", code="threads-range", usual="one per core",
    heading=MACHINE, metavar="N",
)  # fmt: skip
PROGRESS = Option("progress", (BOOL | FUNCTION).named("ProgressLike"), default=False, only="python")
JSON = Option(
    "with_json", BOOL, "Print the result as one line of JSON.", False, heading=MACHINE, flags=("--json",), only="cli"
)
QUIET = Option("quiet", BOOL, "Print neither progress nor summary.", False, heading=MACHINE, only="cli")
RUNNING = (THREADS, PROGRESS, JSON, QUIET)
