"""Which words are rows: vocabularies, corpora, missing words and special tokens."""

from __future__ import annotations

from .choices import ENCODING_ERRORS, ENGINES, MAX_DIM, MISSING, NEW_MISSING, PIECES, SPECIALS_AT
from .definition import BOOL, COUNTS, MANY, NONE, PATH, REQUIRED, TEXT, TOKEN, Option, checked_within, whole
from .definition import TOKENIZER_OBJECT as TOKENIZERS
from .definition import USUAL as USUAL_TOKEN

WORDS, CORPUS, SPECIALS = "Words", "Corpus", "Special tokens"

WORDS_LIKE = (PATH | MANY | TOKENIZERS).named("WordsLike")

VOCAB = Option(
    "vocab", WORDS_LIKE | NONE,
    "Words in row order: one per line, or with ids (vocab.json, tokenizer.json), which stay. If lines hold neither a "
    "padding nor an unknown token, both are added in front.",
    heading=WORDS, metavar="FILE", recorded="vocab",
)  # fmt: skip
FROM_SCRATCH = Option(
    "from_scratch", whole(1, MAX_DIM) | NONE,
    "Generate all rows, with DIM values each, without SOURCE; needs --vocab or --corpus. --missing normal (default) "
    "draws from N(0, 1) as nn.Embedding does, uniform evenly with the same mean and deviation, or zeros. The unknown "
    "token is set as a word is.",
    code="dim-range", heading=WORDS, metavar="DIM", recorded="from_scratch",
)  # fmt: skip
FILL_GAPS = Option(
    "fill_gaps", BOOL, "Give ids that no token of --vocab has a placeholder token with a random row.",
    False, heading=WORDS,
)  # fmt: skip
ONLY = Option(
    "only", WORDS_LIKE | NONE, "Keep only the words of FILE, in the order of SOURCE.",
    heading=WORDS, metavar="FILE", recorded="only",
)  # fmt: skip
MISSING_WORDS = Option(
    "missing", TEXT,
    "Row of a word of --vocab or --corpus that SOURCE lacks; subword composes it of its n-grams (fastText .bin).",
    "normal", MISSING, "missing-policy", WORDS, recorded="missing",
)  # fmt: skip
NEW_WORDS_MISSING = MISSING_WORDS.but(
    type=TEXT | NONE, help="Row of a word that SOURCE lacks; required without SOURCE.", default=None,
    choices=NEW_MISSING, usual="normal",
)  # fmt: skip
SUBWORD_PIECES = Option(
    "pieces", TEXT,
    "Style of the subword tokens of --vocab: wordpiece (##ing), metaspace (▁the) or byte-level (Ġthe). A token that "
    "stands for a word takes its row; --missing is for the others.",
    "none", PIECES, "pieces", WORDS, recorded="pieces",
)  # fmt: skip
CASE_FALLBACK = Option(
    "case_fallback", BOOL,
    "A word that SOURCE lacks takes the row of its lower-case, capitalised or upper-case spelling.",
    False, heading=WORDS, recorded="case_fallback",
)  # fmt: skip
LOWERCASE = Option(
    "lowercase", BOOL, "Lower-case the tokens of SOURCE and --corpus; the lower-case row of SOURCE wins.",
    False, heading=WORDS, recorded="lowercase",
)  # fmt: skip

CORPUS_WORDS = Option(
    "corpus", (PATH | MANY | COUNTS).named("CorpusLike") | NONE,
    "Take the words from a text instead of --vocab, the most frequent first. A file (text, .jsonl, Parquet), folder, "
    "quoted pattern or URL; may be repeated.",
    heading=CORPUS, metavar="PATH", repeated=True,
)  # fmt: skip
PATHS = Option("paths", (PATH | MANY).named("PathsLike"), default=REQUIRED, kind="positional", only="python")
TOKENIZER = Option(
    "tokenizer", TEXT,
    "How text is split: whitespace (ASCII), bert (also at Unicode white space and around punctuation), regex:PATTERN "
    "(its matches) or hf:FILE (a tokenizer.json).",
    "whitespace", heading=CORPUS, metavar="NAME",
)  # fmt: skip
CORPUS_LOWERCASE = LOWERCASE.but(help="Lower-case the tokens of the corpus.", heading=CORPUS)
FIELD = Option(
    "field", TEXT | NONE, "Key (JSON lines) or column (Parquet) that holds the text.",
    usual="text", heading=CORPUS, metavar="NAME",
)  # fmt: skip
CORPUS_ENCODING_ERRORS = Option(
    "encoding_errors", TEXT, "What to do if a token of the corpus is not UTF-8.",
    "error", tuple(ENCODING_ERRORS), "encoding-errors", CORPUS,
)  # fmt: skip
MIN_COUNT = Option(
    "min_count", whole(1), "Leave out tokens of the corpus with a lower count.",
    1, code="min-count-range", heading=CORPUS, metavar="N",
)  # fmt: skip
MAX_SIZE = Option(
    "max_size", whole(1) | NONE, "Keep at most N tokens of the corpus.",
    code="max-size-range", heading=CORPUS, metavar="N",
)  # fmt: skip
ENGINE = Option(
    "engine",
    TEXT,
    "Count with threads on this machine, or as Dask tasks.",
    "local",
    ENGINES,
    "unknown-engine",
    "Machine",
)
MEMORY = Option(
    "memory", checked_within("int | str"), "About how much memory counting may use; the rest goes to temporary files.",
    "1GB", heading="Machine", metavar="SIZE",
)  # fmt: skip
SCHEDULER = Option(
    "scheduler", checked_within("Any"), "Dask scheduler: the address of a cluster, or synchronous, threads, processes.",
    usual="threads", heading="Machine", metavar="NAME",
)  # fmt: skip
PARTS = Option(
    "parts", PATH | NONE, "Folder or URL for intermediate counts of Dask; all workers must see it.",
    usual="a temporary folder", heading="Machine", metavar="FOLDER",
)  # fmt: skip

PAD = Option(
    "pad", TOKEN | USUAL_TOKEN | NONE, "Padding token; its row is zero.", ...,
    usual="that of --vocab or of a model, else <pad>", heading=SPECIALS, metavar="TOKEN", recorded="pad",
)  # fmt: skip
NO_PAD = Option("no_pad", BOOL, "No padding token.", False, heading=SPECIALS, only="cli")
UNK = Option(
    "unk", TOKEN | USUAL_TOKEN | NONE, "Unknown token.", ...,
    usual="that of --vocab or of a model, else <unk>", heading=SPECIALS, metavar="TOKEN", recorded="unk",
)  # fmt: skip
NO_UNK = Option("no_unk", BOOL, "No unknown token.", False, heading=SPECIALS, only="cli")
ZERO_PADDING = Option(
    "zero_padding", BOOL, "Make the padding row zero also if a model has other values there.",
    False, heading=SPECIALS, recorded="zero_padding",
)  # fmt: skip
UNK_INIT = Option(
    "unk_init", TOKEN | NONE, "Row of the unknown token: zeros, mean, normal, uniform or token:WORD.",
    usual="the file's own, else mean", heading=SPECIALS, metavar="INIT", recorded="unk_init",
)  # fmt: skip
SPECIAL = Option(
    "specials", MANY.named("Iterable[SpecialLike]")._replace(parse="token"),
    "Another special token; may be repeated. INIT as for --unk-init; without it the file's own row, else normal.",
    (), heading=SPECIALS, metavar="TOKEN[=INIT]", flags=("--special",), repeated=True, recorded="specials",
)  # fmt: skip
SPECIALS_PLACE = Option(
    "specials_at",
    TEXT,
    "Where the special tokens go.",
    "start",
    SPECIALS_AT,
    "specials-at",
    SPECIALS,
    recorded="specials_at",
)
SEED = Option(
    "seed", whole(), "Seed of the random rows.", 0, code="seed-range", heading=SPECIALS, metavar="N", recorded="seed"
)

COUNTING = (TOKENIZER, FIELD, MIN_COUNT, MAX_SIZE)
WORD_OPTIONS = (
    VOCAB, FILL_GAPS, CORPUS_WORDS, *COUNTING, MISSING_WORDS, SUBWORD_PIECES, ONLY, CASE_FALLBACK, LOWERCASE,
)  # fmt: skip
SPECIAL_OPTIONS = (PAD, NO_PAD, ZERO_PADDING, UNK, NO_UNK, UNK_INIT, SPECIAL, SPECIALS_PLACE, SEED)
