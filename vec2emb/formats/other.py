"""What is plainly no file of vectors, told by its first bytes or by the look of its first row."""

from __future__ import annotations

import re

_LOOK = 4096  # bytes of a row
PRINTED_ARRAY = "printed-array", "printed arrays", "write the numbers themselves, without brackets"
_BOM = b"\xef\xbb\xbf"
_MAGIC: list[tuple[bytes, str, str, str]] = [
    # first bytes, slug, what it is, what to do
    (
        b"\x93NUMPY",
        "numpy",
        "a NumPy array (.npy)",
        "it holds no words: save it with them as .npz, or pass (numpy.load(FILE), words) to vec2emb.convert",
    ),
    (
        b"\xba\x16\x4f\x2f",
        "fasttext-bin",
        "a fastText model (.bin)",
        "give the path of the .bin itself, unpacked and as --format auto; or use the .vec file that belongs to it",
    ),
    (b"PAR1", "parquet", "a Parquet file", "it holds no rows of text; export its columns first"),
    (b"ARROW1", "arrow", "an Arrow file", "it holds no rows of text; export its columns first"),
    # One archive and one compression are seen through before bytes come here: these lie deeper.
    (b"PK\x03\x04", "zip", "a zip archive inside another archive", "unpack the outer one first"),
    (b"PK\x05\x06", "zip", "a zip archive inside another archive", "unpack the outer one first"),
    (b"7z\xbc\xaf\x27\x1c", "7z", "a 7-Zip archive", "unpack it first"),
    (b"Rar!", "rar", "a RAR archive", "unpack it first"),
    (b"\x1f\x8b", "gzip-twice", "compressed twice, inside with gzip", "decompress it once"),
    (b"BZh", "bzip2-twice", "compressed twice, inside with bzip2", "decompress it once"),
    (b"\xfd7zXZ\x00", "xz-twice", "compressed twice, inside with xz", "decompress it once"),
    (b"\x28\xb5\x2f\xfd", "zstd-twice", "compressed twice, inside with Zstandard", "decompress it once"),
    (b"]\0\0", "lzma", "compressed with lzma (.lzma)", "decompress it first"),
    (b"\x1f\x9d", "compress", "compressed with compress (.Z)", "decompress it first"),
    (b"x\x9c", "zlib", "compressed with zlib", "decompress it first"),
    (b"x\xda", "zlib", "compressed with zlib", "decompress it first"),
    (b"\x04\x22\x4d\x18", "lz4", "compressed with LZ4", "decompress it first"),
    (
        b"FiFu",
        "finalfusion",
        "a finalfusion file (.fifu)",
        "convert it first: finalfusion convert -f finalfusion -t word2vec FILE NEW.bin",
    ),
    (
        b"\x89HDF\r\n",
        "hdf5",
        "an HDF5 file",
        "read it with h5py and pass (vectors, words) to vec2emb.convert",
    ),
    (b"GGUF", "gguf", "a GGUF model", "it holds no word vectors in rows"),
    (b"%PDF-", "pdf", "a PDF document", "get the file of vectors itself"),
    (b"version https://git-lfs", "git-lfs", "a Git LFS pointer, not the file itself", "run: git lfs pull"),
    (b"\xff\xfe\0\0", "utf-32", "UTF-32 text", "convert it to UTF-8 first: iconv -f UTF-32 -t UTF-8"),
    (b"\0\0\xfe\xff", "utf-32", "UTF-32 text", "convert it to UTF-8 first: iconv -f UTF-32 -t UTF-8"),
    (b"\xff\xfe", "utf-16", "UTF-16 text", "convert it to UTF-8 first: iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "utf-16", "UTF-16 text", "convert it to UTF-8 first: iconv -f UTF-16 -t UTF-8"),
]
# Patterns are compiled when they are needed, which for most files is never.
# Protocols 2 to 5 say so; 0 and 1 start with an object of a class, a container, or a string.
_PICKLE = (
    rb"\x80[\x02-\x05]"
    rb"|\(?c[A-Za-z_][\w.]*\n[A-Za-z_]\w*\n(?:p[0-9]+\n|q[\x00-\x1f]|[()])"
    rb"|\([dlit]p[0-9]+\n|\(?[VSI][^ \n]*\np[0-9]+\n|[\]})]q[\x00-\x1f]"
)
_COMMENTS = rb"\s*(?:<!--.*?-->\s*)*"
_PAGE = rb"(?is)" + _COMMENTS + rb"<(?:!doctype\s+html|html|head|body|title|script|meta)\b"
_XML = rb"(?i)\s*<\?xml\b"
_JSON = rb"\s*(?:\{\s*[\"}]|\[\s*[\[{\"])"
_FLORET = rb"(?:[0-9]+[ \t]+){6}\S+[ \t]+\S+[ \t]*\r?\n"
_NUMBER = rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_BRACKETED = rb"(?:array\(|tensor\()?[\[(]+" + _NUMBER + rb"[,\])]*|" + _NUMBER + rb",?[\])]+,?"
_ROW = re.compile(rb"[^ \t\r\n\0]+(?:[ \t]+" + _NUMBER + rb"){2,}[ \t]*\r?(?:\n|\Z)")


def recognise(head: bytes) -> tuple[str, str, str] | None:
    """(slug, what it is, what to do) of a file that is plainly something else, told by its first bytes.

    A token may look like the start of anything, but then numbers follow it.
    """
    if head.startswith(_BOM):
        head = head[len(_BOM) :]
    return None if _ROW.match(head) else _recognise_bytes(head) or _recognise_text(head)


def _recognise_bytes(head: bytes) -> tuple[str, str, str] | None:
    for magic, slug, what, advice in _MAGIC:
        if head.startswith(magic):
            return slug, what, advice
    if re.match(_PICKLE, head):
        return (
            "pickle",
            "a Python pickle, which can run any code when it is opened",
            "of a .kv or .model of gensim that you trust, --allow-pickle opens it; of others, export words and vectors",
        )
    if head.startswith(b"SQLite format 3\x00"):
        if b"magnitude" in head:
            return (
                "magnitude",
                "a Magnitude file (.magnitude)",
                "read it with pymagnitude and pass (vectors, words) to vec2emb.convert",
            )
        return "sqlite", "an SQLite database", "export its words and vectors first"
    if head[8:10] == b'{"' and int.from_bytes(head[:8], "little") < 100_000_000:
        return "safetensors", "a safetensors file", "it holds no words; a bundle is named by its folder"
    if head[257:262] == b"ustar":
        return "tar", "a tar archive inside another archive", "unpack the outer one first"
    return _recognise_wide_text(head[:256])


def _recognise_wide_text(head: bytes) -> tuple[str, str, str] | None:
    """UTF-16 without a mark: the digits and separators have NUL for their other byte, always on the same side."""
    sides = head[0::2].count(0), head[1::2].count(0)
    name = "UTF-16LE" if sides[1] else "UTF-16BE"
    if min(sides) == 0 and max(sides) * 4 >= len(head) and head.decode(name, "replace").count(" ") >= 2:
        return "utf-16", f"{name} text", f"convert it to UTF-8 first: iconv -f {name} -t UTF-8"
    return None


def _recognise_text(head: bytes) -> tuple[str, str, str] | None:
    if re.match(_PAGE, head):
        return "html", "an HTML page", "the download answered with a page: get the file itself"
    if re.match(_XML, head):
        return "xml", "an XML document", "the download answered with a document: get the file itself"
    if re.match(_JSON, head):
        return "json", "a JSON document", "write rows of text instead: a token and its values, separated by spaces"
    if head[:14].lower() == b"%%matrixmarket":
        return "matrix-market", "a matrix in the Matrix Market format", "it holds no words"
    if re.match(_FLORET, head):
        return "floret", "a floret table, whose rows are hash buckets and not words", "it cannot become one row a word"
    return None


def explain_row(row: bytes) -> tuple[str, str, str] | None:
    """(slug, what it is, what to do) of a row whose fields are no numerals but look like something known."""
    if len(row) > _LOOK:  # its first fields will do
        row = row[: max(row.rfind(sign, 0, _LOOK) for sign in (b" ", b"\t", b",", b";")) + 1]
    fields = row.replace(b"\t", b" ").split()
    values = fields[1:] or fields
    if any(re.fullmatch(_BRACKETED, field) for field in values):
        return PRINTED_ARRAY
    if values and all(re.fullmatch(rb"[0-9]+:" + _NUMBER, field) for field in values):
        return "sparse", "sparse rows (index:value)", "write all values of each row, zeros too"
    if any(b"," in field for field in values) and all(
        re.fullmatch(rb"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?|" + _NUMBER, field) for field in values
    ):
        return "decimal-comma", "numbers with decimal commas", "write them with points"
    if re.fullmatch(rb"[^ ]*?(?:[,;]\s*" + _NUMBER + rb"){1,}[,;]?", row.strip()):
        slug = "semicolons" if row.count(b";") > row.count(b",") else "commas"
        return slug, f"fields separated by {slug}", "separate them by spaces or tabs"
    return None
