"""The model card, `README.md`: what a bundle records of its source and licence, and how the folder is loaded.

The Hub takes licences by names of its own, most of them the SPDX identifier in lower case:
https://huggingface.co/docs/hub/repositories-licenses
"""

from __future__ import annotations

import json

from ..bundle.manifest import Manifest
from ..errors import printable
from .part import Part

_LICENSES = {
    name.lower(): name.lower()
    for name in (
        "Apache-2.0", "MIT", "CC0-1.0", "CC-BY-2.0", "CC-BY-2.5", "CC-BY-3.0", "CC-BY-4.0", "CC-BY-SA-3.0",
        "CC-BY-SA-4.0", "CC-BY-NC-2.0", "CC-BY-NC-3.0", "CC-BY-NC-4.0", "CC-BY-ND-4.0", "CC-BY-NC-ND-3.0",
        "CC-BY-NC-ND-4.0", "CC-BY-NC-SA-2.0", "CC-BY-NC-SA-3.0", "CC-BY-NC-SA-4.0", "BSD-2-Clause", "BSD-3-Clause",
        "ISC", "Zlib", "Unlicense", "WTFPL", "MPL-2.0", "EPL-2.0", "ECL-2.0", "AFL-3.0", "Artistic-2.0", "BSL-1.0",
    )
}  # fmt: skip
_LICENSES |= {
    "pddl-1.0": "pddl", "pddl": "pddl", "odbl-1.0": "odbl", "odc-by-1.0": "odc-by",
    "gpl-2.0-only": "gpl-2.0", "gpl-2.0-or-later": "gpl-2.0", "gpl-3.0-only": "gpl-3.0", "gpl-3.0-or-later": "gpl-3.0",
    "lgpl-2.1-only": "lgpl-2.1", "lgpl-2.1-or-later": "lgpl-2.1", "lgpl-3.0-only": "lgpl-3.0",
    "lgpl-3.0-or-later": "lgpl-3.0", "agpl-3.0-only": "agpl-3.0", "agpl-3.0-or-later": "agpl-3.0",
}  # fmt: skip

_TAGS = ("sentence-transformers", "static-embeddings", "word-vectors", "vec2emb")

_LOADING = {
    "huggingface": """\
    from sentence_transformers import SentenceTransformer
    from model2vec import StaticModel
    from transformers import AutoTokenizer

    vectors = SentenceTransformer({0}).encode(texts)
    vectors = StaticModel.from_pretrained({0}).encode(texts)
    tokenizer = AutoTokenizer.from_pretrained({0})
""",
    "model2vec": """\
    from model2vec import StaticModel

    vectors = StaticModel.from_pretrained({0}).encode(texts)
""",
}

_UNKNOWN = {
    "huggingface": "A word without a vector: sentence-transformers takes that of the unknown token, model2vec leaves "
    "the word out. model2vec reads no more than the first 512 words of a text, unless told otherwise.",
    "model2vec": "A word without a vector is left out, and no more than the first 512 words of a text are read, unless "
    "told otherwise.",
}


def card_of(part: Part, layout: str, name: str, lowercase: bool, normalize: bool) -> bytes:
    """The card of an export into a folder called `name`."""
    source = part.manifest.source
    lines = ["---", *_front(None if source is None else source.license, layout), "---", "", f"# {_plain(name)}", ""]
    cut = "split at white space" + (" and made lower-case" if lowercase else "")
    mean = "the mean of the vectors of its words" + (", scaled to length 1" if normalize else "")
    lines += [
        f"{part.rows:,} word vectors of {part.dim} dimensions. A text is {cut}; its vector is {mean}.",
        "",
        _LOADING[layout].format(json.dumps(name)),
        _UNKNOWN[layout],
        "",
        *_table_of_specials(part),
        "## Source",
        "",
        *_origin(part.manifest),
        "",
    ]
    return "\n".join(lines).encode()


def _front(license: str | None, layout: str) -> list[str]:
    """What the Hub reads, in YAML; a string of JSON is one of YAML."""
    library = "model2vec" if layout == "model2vec" else "sentence-transformers"
    lines = [f"library_name: {library}", "pipeline_tag: sentence-similarity"]
    if license:
        known = _LICENSES.get(license.lower())
        lines.append(f"license: {known or 'other'}")
        if known is None:
            lines.append(f"license_name: {json.dumps(license)}")
    return [*lines, "tags:", *(f"- {tag}" for tag in _TAGS)]


def _table_of_specials(part: Part) -> list[str]:
    rows = [f"| {_code(special.token)} | {special.id} | {special.role} |" for special in part.specials]
    return ["| special token | id | role |", "|---|---|---|", *rows, ""]


def _origin(manifest: Manifest) -> list[str]:
    source, lines = manifest.source, []
    if source is not None:
        lines.append(f"- file: {_code(source.name)} ({_plain(source.format)}, {source.rows:,} rows)")
        if source.url:
            lines.append(f"- from: <{_plain(source.url).replace('>', '%3E').replace(' ', '%20')}>")
    elif manifest.from_scratch:
        lines.append("- generated, from no file of vectors")
    else:
        lines.append("- vectors that were in memory")
    lines.append(f"- licence: {_plain((source and source.license) or 'not recorded')}")
    for step, rows in manifest.added():
        origin = f", from {_code(step.source.name)} among others" if step.source else ""
        lines.append(f"- words added since: {len(rows):,}{origin}")
    if manifest.provenance.trained:
        lines.append("- trained since they were converted")
    return [*lines, "- converted with vec2emb"]


def _plain(text: str) -> str:
    """Text of others on one line, in which Markdown and HTML find nothing."""
    text = printable(text).replace("\n", " ").replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{c}" if c in "\\`*_[]|#" else c for c in text)


def _code(text: str) -> str:
    """Text of others as code, in a cell of a table as well."""
    text = printable(text).replace("\n", " ").replace("|", "\\|")
    fence = "`"
    while fence in text:
        fence += "`"
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"
