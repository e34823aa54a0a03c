"""The options of every public function and every command, in the order of signatures; `convert` has `conversion.py`.

What a command line cannot say is `only="python"`, what a function has no argument for is `only="cli"`. Arguments
without a dash (SOURCE, BUNDLE) are declared by the commands themselves.
"""

from __future__ import annotations

from types import MappingProxyType

from ..positions.key_styles import MAX_ROWS
from . import model, output, positions, reading, words
from .choices import EXPORTS
from .conversion import CONVERT, ITER_VECTORS, READ_VECTORS
from .definition import BOOL, MANY, MAPPING, NONE, NUMBER, PATH, REQUIRED, TEXT, TOKEN, Option, checked_within, whole
from .output import BUNDLE, IF_BUNDLE_EXISTS, IF_FILE_EXISTS, JSON, OUT, PROGRESS, QUIET, RUNNING, STRICT, THREADS
from .reading import SOURCE, without

INSPECT = (
    SOURCE.but(name="path"),
    *without(reading.INPUT_OPTIONS, "limit"),
    Option(
        "count", BOOL, "Read all of a file of vectors, to count rows and find odd ones.", False, heading=reading.INPUT
    ),
    PROGRESS,
    JSON,
    QUIET,
)
VERIFY = (
    BUNDLE,
    Option("source", checked_within("SourceLike | None"), "Compare each row with what its word has in FILE.",
           heading=reading.INPUT, metavar="FILE", kind="positional"),
    Option("rebuild", PATH | BOOL | NONE,
           "Convert FILE again with the recorded options, and compare bytes; without FILE for a table from scratch.",
           heading=reading.INPUT, metavar="FILE", kind="positional", bare=""),
    reading.ALLOW_PICKLE,
    Option("sha256", BOOL, "Also print the plain SHA-256 of each file, as sha256sum does.", False,
           heading=output.OUTPUT),
    *RUNNING,
)  # fmt: skip
EXPORT = (
    BUNDLE,
    Option(
        "to", TEXT,
        "A file of vectors: word2vec (text with a header), word2vec-binary, glove (text without one) or fasttext-vec. "
        "A list of words: vocab-json. Arrays of numpy: npz. A folder: huggingface, for sentence-transformers, "
        "model2vec and transformers at once, or model2vec, that one's own. shards: a bundle cut into files, as "
        "PyTorch's distributed checkpoint has them.",
        REQUIRED, EXPORTS, "export-format", output.OUTPUT, "FORMAT", kind="positional",
    ),
    OUT.but(name="path", help="The file, which .gz, .bz2, .xz and .zst compress, or the folder."),
    Option("specials", TEXT, "What to do with the special tokens; folders need them.", "keep", ("keep", "drop"),
           "specials", output.OUTPUT),
    Option("normalize_module", BOOL, "Scale texts to length 1 at the end.", False, heading="Folders"),
    Option("model_card", BOOL, "Write README.md from the recorded source and licence.", False, heading="Folders"),
    output.SHARD_SIZE.but(help="Maximum size of a shard of words (only with --to shards).", usual="5GB"),
    IF_FILE_EXISTS,
    PROGRESS,
    JSON,
    QUIET,
)  # fmt: skip
_TRAIN_FROM_NOW = model.TRAIN_ROWS.but(
    type=model.TRAIN_LIKE, default="added", usual=None,
    help="Record which rows train from now on: added, keep (as before), all, new, or a FILE of words.",
)  # fmt: skip
EXTEND = (
    BUNDLE,
    OUT,
    Option("tokens", (MANY.named("Iterable[str]") | NONE)._replace(parse="token"),
           "The new words, separated by commas (instead of --vocab).", heading=words.WORDS, metavar="A,B,.."),
    words.VOCAB.but(help="The new words: a text file, vocab.json or tokenizer.json. Words of BUNDLE keep their rows."),
    words.SPECIAL.but(heading=words.WORDS, help="A new special token; may be repeated. INIT is zeros, mean, normal, "
                      "uniform or token:WORD.  [default INIT: normal]"),
    words.PAD.but(heading=words.WORDS, type=TOKEN | NONE, default=None, usual=None,
                  help="A padding token, for a bundle that has none."),
    words.UNK.but(heading=words.WORDS, type=TOKEN | NONE, default=None, usual=None,
                  help="An unknown token, for a bundle that has none."),
    words.UNK_INIT.but(heading=words.WORDS, help="Row of the unknown token.", usual="mean"),
    words.NEW_WORDS_MISSING,
    words.SEED.but(heading=words.WORDS),
    Option("source", checked_within("SourceLike | None"),
           "A file of vectors with rows of the new words, from the same space as BUNDLE's.",
           heading=reading.INPUT, metavar="SOURCE", flags=("--from",)),
    *without(reading.INPUT_OPTIONS, "sha256", "dim", "limit"),
    *without(reading.ROW_OPTIONS, "unit_norm"),
    reading.UNIT_NORM.but(type=BOOL | NONE, default=None, help="Scale rows of SOURCE to length 1.",
                          flags=("--unit-norm/--no-unit-norm",), usual="as those of BUNDLE were"),
    _TRAIN_FROM_NOW,
    model.FREEZE,
    IF_BUNDLE_EXISTS,
    STRICT,
    *RUNNING,
)  # fmt: skip

_SCALE_OR_KEPT = model.SCALE.but(type=model.SCALE_LIKE | NONE, default=None, usual="as recorded")
ATTACH = (
    BUNDLE,
    positions.KIND,
    model.MAX_POSITIONS.but(type=whole(1, MAX_ROWS), default=REQUIRED, kind="positional"),
    model.PRESET.but(heading=positions.SINUSOIDAL),
    *positions.TABLE_OPTIONS,
    model.TRAIN_POSITIONS,
    _SCALE_OR_KEPT,
    model.STYLE.but(type=TEXT | NONE, default=None, usual="as recorded"),
    model.WORD_KEY.but(usual="as recorded"),
    model.POSITION_KEY,
    OUT.but(type=PATH | NONE, default=None, kind="keyword", usual="in place of BUNDLE", help="Where to write."),
    IF_BUNDLE_EXISTS,
    JSON,
    QUIET,
)
RESIZE = (
    BUNDLE.but(name="path"),
    OUT.but(help="Where to write."),
    positions.TO,
    *positions.RESIZING,
    IF_BUNDLE_EXISTS.but(help="What to do if OUT exists; keep is for bundles."),
    JSON,
    QUIET,
)
DESCRIBE = (
    BUNDLE.but(name="path"),
    positions.RESIZING[1].but(help="Show only this table.", kind="positional"),
    JSON,
)

SIMILAR = (
    BUNDLE,
    Option("words", TOKEN, default=REQUIRED, kind="variadic", only="python"),
    Option("top", whole(1), "Number of neighbours per word.", 10, code="top-range", heading=output.OUTPUT, metavar="N"),
    JSON,
)
EXPLAIN = (JSON,)
EVALUATE = (
    BUNDLE,
    Option("sets", (PATH | MANY).named("str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"),
           "wordsim353, simlex999, questions-words (minutes), or a file of that form; may be repeated.",
           ("wordsim353", "simlex999"), heading=reading.INPUT, metavar="NAME", flags=("--set",), kind="positional",
           repeated=True),
    Option("restrict", whole(1), "Use only the first N tokens.", 300_000, code="restrict-range",
           heading=reading.INPUT, metavar="N"),
    JSON,
)  # fmt: skip

COUNT_TOKENS = (
    words.PATHS,
    words.TOKENIZER,
    words.CORPUS_LOWERCASE,
    words.FIELD,
    words.CORPUS_ENCODING_ERRORS,
    words.ENGINE,
    words.MEMORY,
    THREADS,
    words.SCHEDULER,
    words.PARTS,
    PROGRESS,
)
BUILD_VOCAB = (
    words.PATHS,
    OUT.but(help="One token per line.", metavar="FILE"),
    words.MIN_COUNT,
    words.MAX_SIZE,
    Option("save_counts", PATH | NONE, "Write the counts of all tokens: .parquet or .tsv.", heading=output.OUTPUT,
           metavar="FILE"),
    IF_FILE_EXISTS,
)  # fmt: skip
VOCAB = (*BUILD_VOCAB, *COUNT_TOKENS[1:], JSON, QUIET)

_BOUNDS = (MAPPING | MANY).named("Bounds")
_GATES = "Gates"
AUDIT = (
    SOURCE.but(name="sources", kind="variadic"),
    Option("corpus", (PATH | MANY).named("Paths") | NONE,
           "A file, folder or quoted pattern of text whose words are looked up; may be repeated.",
           heading=words.CORPUS, metavar="PATH", repeated=True),
    Option("counts", checked_within("str | os.PathLike[str] | Mapping[str, int] | TokenCounts | None"),
           "Counts that `vec2emb vocab --save-counts` wrote, instead of --corpus.", heading=words.CORPUS,
           metavar="FILE"),
    words.TOKENIZER,
    words.CORPUS_LOWERCASE,
    words.FIELD,
    Option("examples", whole(0), "Show N lines of the corpus for each of the most frequent missing words.", 0,
           code="examples-range", heading=words.CORPUS, metavar="N"),
    Option("min", _BOUNDS, "Minimum for a metric of the JSON report, such as coverage.tokens=0.95; may be repeated.",
           (), heading=_GATES, metavar="PATH=NUMBER", repeated=True),
    Option("max", _BOUNDS, "Maximum for a metric, such as health.duplicates=0; may be repeated.",
           (), heading=_GATES, metavar="PATH=NUMBER", repeated=True),
    *without(reading.INPUT_OPTIONS, "sha256", "encoding_errors"),
    reading.ENCODING_ERROR.but(help="What to do if a token of SOURCE or of the corpus cannot be decoded."),
    Option("html", TEXT, "Write an HTML page that needs no other file.", None, heading=output.OUTPUT, metavar="FILE",
           only="cli"),
    Option("passed", TEXT, "Write FILE if all gates pass; it is removed first.", None, heading=_GATES, metavar="FILE",
           only="cli"),
    Option("missing_words", TEXT, "Write all missing words: token, count, best remedy (TSV).", None,
           heading=output.OUTPUT, metavar="FILE", only="cli"),
    output.IF_FILE_EXISTS.but(help="What to do if another file is there; an earlier page or list is replaced.",
                              only="cli"),
    *RUNNING,
)  # fmt: skip

_TOKENS, _PROOF = "Tokens", "Proof"
TRIM = (
    BUNDLE.but(name="model"),
    OUT.but(help="Folder to write."),
    words.PATHS.but(
        name="corpus", type=words.PATHS.type | NONE, default=None, kind="keyword", only=None, repeated=True,
        help="A file, folder or quoted pattern of texts whose tokens are kept; may be repeated.",
        heading=_TOKENS, metavar="PATH",
    ),
    Option("counts", PATH | NONE,
           "Counts of the model's tokens instead, from `vec2emb vocab --tokenizer hf:MODEL/tokenizer.json "
           "--save-counts FILE`. A corpus then serves for the proof alone.", heading=_TOKENS, metavar="FILE"),
    Option("keep", (PATH | MANY).named("str | os.PathLike[str] | Iterable[str]") | NONE,
           "Tokens to keep in any case, one per line, as the vocabulary writes them.", heading=_TOKENS, metavar="FILE"),
    words.MIN_COUNT.but(help="Drop tokens that are used less often.", heading=_TOKENS),
    words.MAX_SIZE.but(help="Keep at most N tokens, all included; the most frequent first.", heading=_TOKENS),
    Option("pad_to_multiple_of", whole(1), "Round the rows of the table up to a multiple of N.", 1,
           code="pad-to-multiple-of-range", heading=output.OUTPUT, metavar="N"),
    words.FIELD.but(heading=_TOKENS),
    words.CORPUS_ENCODING_ERRORS.but(help="What to do at text that is not UTF-8.", heading=_TOKENS),
    Option("sample", whole(1), "Number of texts of the corpus to encode with both tokenizers.", 10_000,
           code="sample-range", heading=_PROOF, metavar="N"),
    Option("min", _BOUNDS,
           "Minimum for a figure: identical (share of sampled texts with the same tokens as before) or coverage (share "
           "of the corpus's tokens that are kept); may be repeated.",
           (), code="gate-form", heading=_PROOF, metavar="FIGURE=NUMBER", repeated=True),
    IF_FILE_EXISTS,
    *RUNNING,
)  # fmt: skip

SCHEMA = Option("schema", BOOL, "Print the JSON Schema of --json.", False, heading=output.OUTPUT, only="cli")

LOAD = (BUNDLE, Option("lazy", BOOL, default=False))
SAVE = (
    BUNDLE.but(name="path"),
    Option("tokens", MANY.named("Iterable[str]"), kind="positional", default=REQUIRED),
    Option("vectors", checked_within("ArrayLike | np.ndarray[Any, Any]"), kind="positional", default=REQUIRED),
    Option("pad_token", TEXT | NONE),
    Option("unk_token", TEXT | NONE),
    output.DTYPE,
    model.FREEZE,
    IF_BUNDLE_EXISTS,
)
_TABLE = Option("bundle", checked_within("BundleLike"), default=REQUIRED, kind="positional", only="python")
_DTYPE = Option("dtype", checked_within("torch.dtype | None"))
_DEVICE = Option("device", checked_within("torch.device | str | None"))
_SPARSE = Option("sparse", BOOL, default=False)
_FREEZE = model.FREEZE.but(type=BOOL | NONE, default=None)
_MODULE = (_DTYPE, _DEVICE, _SPARSE)
LOAD_EMBEDDING = (
    _TABLE,
    Option("rows", checked_within("tuple[int, int] | None")),
    _FREEZE,
    model.TRAIN_ROWS,
    *_MODULE,
    Option("max_norm", NUMBER | NONE),
)
LOAD_TEXT_EMBEDDING = (
    _TABLE,
    _FREEZE,
    model.TRAIN_ROWS,
    model.TRAIN_POSITIONS,
    *_MODULE,
    Option("layer_norm", BOOL, default=False),
    Option("eps", NUMBER, default=1e-12),
    Option("dropout", NUMBER, default=0.0),
)
EMBEDDING_BAG = (
    _TABLE,
    Option("mode", TEXT, "", "mean", ("mean", "sum", "max"), "bag-mode"),
    _FREEZE,
    *_MODULE,
)
SAVE_EMBEDDING = (
    Option("module", checked_within("nn.Module"), kind="positional", default=REQUIRED),
    OUT,
    Option("like", checked_within("BundleLike | Vocabulary | None")),
    IF_BUNDLE_EXISTS,
)

# The options of each public function, by where it is defined.
FUNCTIONS = MappingProxyType({
    "auditing.auditor.audit": AUDIT,
    "bundle.table.load": LOAD,
    "bundle.table.save": SAVE,
    "checking.inspection.inspect": INSPECT,
    "checking.verification.verify": VERIFY,
    "conversion.pipeline.convert": CONVERT,
    "conversion.reading.iter_vectors": ITER_VECTORS,
    "conversion.reading.read_vectors": READ_VECTORS,
    "corpus.building.build_vocab": BUILD_VOCAB,
    "corpus.counting.count_tokens": COUNT_TOKENS,
    "editing.attaching.attach_positions": ATTACH,
    "editing.attaching.describe_positions": DESCRIBE,
    "editing.attaching.resize_positions": RESIZE,
    "editing.extending.extend": EXTEND,
    "exporting.exporter.export": EXPORT,
    "querying.evaluation.evaluate": EVALUATE,
    "querying.neighbours.similar": SIMILAR,
    "torch.loading.embedding_bag": EMBEDDING_BAG,
    "torch.loading.load_embedding": LOAD_EMBEDDING,
    "torch.loading.load_text_embedding": LOAD_TEXT_EMBEDDING,
    "torch.saving.save_embedding": SAVE_EMBEDDING,
    "trimming.trimmer.trim": TRIM,
})  # fmt: skip
