"""From a file of vectors to a bundle: scan, select, fill."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from ..bundle.model_layout import ModelPlan, ScaleLike
from ..bundle.target import target_of
from ..bundle.training import TrainLike, TrainRows
from ..errors import UsageError
from ..io.progress import ProgressLike
from ..io.sources import SourceLike
from ..io.urls import without_secrets
from ..options.conversion import CONVERT, OF_SOURCE
from ..options.definition import check
from ..options.sizes import parse_size
from ..positions.plan import PositionPlan
from ..words.special_tokens import SpecialLike
from ..words.word_list import WordsLike
from .expectations import Expectations, ExpectLike
from .planning import Plan, WordOptions, check_missing
from .reading_pass import ReadOptions
from .report import Report
from .run import Conversion

if TYPE_CHECKING:
    from ..corpus.words import CorpusLike
    from ..formats.matrix.source import MatrixSource


def convert(
    source: SourceLike | None = None,
    output: str | os.PathLike[str] | None = None,
    *,
    member: str | None = None,
    sha256: str | None = None,
    allow_pickle: bool = False,
    format: str = "auto",
    dim: int | None = None,
    limit: int | None = None,
    encoding: str = "utf-8",
    encoding_errors: str = "error",
    binary_dtype: str | None = None,
    byte_order: str | None = None,
    from_scratch: int | None = None,
    vocab: WordsLike | None = None,
    fill_gaps: bool = False,
    corpus: CorpusLike | None = None,
    tokenizer: str = "whitespace",
    field: str | None = None,
    min_count: int = 1,
    max_size: int | None = None,
    missing: str = "normal",
    pieces: str = "none",
    only: WordsLike | None = None,
    case_fallback: bool = False,
    lowercase: bool = False,
    duplicates: str = "first",
    bad_rows: str = "error",
    nonfinite: str = "error",
    unit_norm: bool = False,
    pad: str | EllipsisType | None = ...,
    zero_padding: bool = False,
    unk: str | EllipsisType | None = ...,
    unk_init: str | None = None,
    specials: Iterable[SpecialLike] = (),
    specials_at: str = "start",
    seed: int = 0,
    positions: str = "none",
    max_positions: int | None = None,
    position_preset: str | None = None,
    train_positions: bool | None = None,
    scale: ScaleLike = "none",
    train_rows: TrainLike | None = None,
    freeze: bool = False,
    dtype: str = "float32",
    shard_size: int | str | None = None,
    key_style: str = "plain",
    word_key: str | None = None,
    position_key: str | None = None,
    tied_head: str | None = None,
    license: str | None = None,
    source_url: str | None = None,
    if_exists: str = "error",
    expect: ExpectLike | None = None,
    row_report: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    strict: bool = False,
    threads: int | None = None,
    progress: ProgressLike = False,
) -> Report:
    """Turn a file of word vectors into a bundle: safetensors, vocabulary and settings, row for row.

    Args:
        source: a path, a URL, `-` for standard input, or an open binary file; compression is seen through. Also the
            path of a bundle, of a fastText model (`.bin`), an `.npz` or a folder of sentence-transformers or model2vec;
            and in memory `(vectors, words)`, where vectors are an array, a tensor or an `nn.Embedding`, a `Table`, and
            gensim's `KeyedVectors` and `FastText`. None only with `from_scratch`.
        member: of a zip or tar archive, the member to read. None takes the only one that may be a table; of several,
            the one of dimension `dim`. Of an `.npz`, the array of vectors.
        sha256: what the source must have, as it lies there, compressed and archived; else nothing is written.
        allow_pickle: open a file that gensim saved (`.kv`, `.model`). It is a pickle, and can run any code.
        output: a folder, or NAME.safetensors for three files of that stem; also a URL of an object store. None only
            with `dry_run`.
        format: `auto`, `word2vec` (a header, then rows; also fastText `.vec`), `glove` (rows only) or
            `word2vec-binary`.
        dim: values a row, where there is no header to say so.
        limit: read only this many rows of the file; special tokens are extra.
        encoding: of the tokens: UTF-8, or any other that holds ASCII as it is.
        encoding_errors: at a token that is not in the encoding raise an `error`, or take it with U+FFFD (`replace`) or
            with the bytes written out (`escape`).
        binary_dtype: of the values of Word2Vec binary: `float16`, `float32`, `float64`. Saying it switches off the
            check whether the values are plausible.
        byte_order: of the same: `little`, `big`; likewise.
        from_scratch: make a table of this dimension without a source: every row is generated, as `missing` says.
            `normal` draws from N(0, 1), as `torch.nn.Embedding` does, `uniform` from [-sqrt(3), sqrt(3)], which has the
            same mean and deviation, and `zeros` is zeros. The unknown token is set as a word is, the padding row is
            zero. `source` must be None, and `vocab` or `corpus` must be given.
        vocab: words whose rows are the table's rows: a text file or a list, or a vocabulary with ids: a mapping
            {token: id}, vocab.json, tokenizer.json, a tokenizer of `transformers` or `tokenizers`, or a `Vocabulary`.
            Ids always stay. Lines keep their numbers as ids if they hold padding and unknown, or [PAD] or [UNK]; if
            they hold neither, padding and unknown go in front.
        fill_gaps: give ids of `vocab` without a token a row: a placeholder token, `<no token 7>`, drawn as `normal`.
        corpus: instead of `vocab`, text whose tokens are the words, the most frequent first: files, folders, patterns,
            URLs, as `count_tokens` takes them, or the counts that it gives. Special tokens among them are left out.
        tokenizer, field: how the corpus is read, as in `count_tokens`.
        min_count: of the corpus, leave out tokens that come less often.
        max_size: of the corpus, keep at most so many tokens.
        missing: the row of a word of `vocab` that the file lacks: `normal`, `mean`, `zeros`, `uniform`, or `error`; of
            a fastText model, `subword` composes it of its character n-grams.
        pieces: style of the subword tokens of `vocab`: `wordpiece` (`##ing`), `metaspace` (`▁the`), `byte-level`
            (`Ġthe`) or `none`. A token that stands for a word takes the row of that word; pieces from inside a word are
            set as `missing` says, and `subword` composes them without their mark.
        only: words to keep, in the order of the file; the others are left out.
        case_fallback: a word of `vocab` or `only` that the file lacks takes the row of its lower-case, capitalised or
            upper-case spelling.
        lowercase: lower-case the tokens of the file and of the corpus; of the file's that become the same the one that
            was lower-case wins, else the first.
        duplicates: of rows with the same token take the `first`, the place of the first and the vector of the `last`,
            or raise an `error`.
        bad_rows: raise an `error` at a faulty row, or `skip` and count it.
        nonfinite: raise an `error` at `nan` and `inf`, `keep` them, or write `zero`.
        unit_norm: scale the file's rows to length 1; rows of zeros stay.
        pad: the padding token, whose row is zero; None for none. `...` takes the token that `vocab` or the source
            names, or that has a usual name ([PAD], <pad>); else `<pad>`, but none if the ids of `vocab` stay. A token
            that is not in such a vocabulary gets a row at the end. A folder of a static model keeps its padding row.
        zero_padding: make the padding row zero also if such a folder has other values there.
        unk: the unknown token; None for none, `...` as for `pad`, with the names [UNK] and <unk>.
        unk_init: how the unknown token's row is set: `zeros`, `mean`, `normal`, `uniform` or `token:WORD`. None takes
            the file's own vector of that token, or `mean` where it has none.
        specials: further special tokens, each `TOKEN`, `TOKEN=INIT` or a pair (token, init). Without an INIT a token
            takes the file's vector, or is drawn as `normal`. Padding or unknown named here takes its place in this
            order.
        specials_at: put the special tokens at the `start` or at the `end`.
        seed: of the random rows.
        dtype: `float32`, `float16` or `bfloat16`.
        shard_size: cut the table into shards of at most so many bytes each, as a number or as `5GB`, in the convention
            of PyTorch's distributed checkpoint; the output is a folder then.
        positions: add a table of positions: `none`, `learned` or `sinusoidal`.
        max_positions: how many positions a text may use.
        position_preset: whose sinusoids: `vaswani`, `xlm`, `marian`, `t2t`, `fairseq`, `whisper` or `musicgen`.
        train_positions: whether the positions train; by default a learned table does and a sinusoidal one does not.
        scale: what words are to be multiplied by before positions are added, recorded and applied by the module:
            `none`, `sqrt-dim`, `unit-rms` (their mean square becomes 1), `match-positions` (as long as these), or a
            number.
        train_rows: the rows that are to train, recorded and applied by the module: `all`, `new` (special tokens
            that were set, and missing words), a file of words, words, or ids. The padding row never trains. By default
            all train, and of a bundle those that it records.
        freeze: record that no row trains.
        key_style: whose names the tensors have: `plain`, `bert`, `roberta`, `gpt2`, `bart`, `fairseq` or `clip`. It
            also says how many rows of the position table stand in front of the first position, and for what.
        word_key, position_key: other names for the two.
        tied_head: name of the output head that shares the word table, recorded; by default that of the style.
        license: SPDX identifier of the vectors' licence, recorded.
        source_url: where the file came from, recorded.
        if_exists: what to do about a bundle that stands there: `error`, `replace` it, or `keep` it if this
            conversion gives the same, else raise.
        expect: what must come out, or nothing is written: `rows`, `dim`, of model.safetensors its `digest` (as
            vec2emb.json has it) or plain `sha256` (of shards, what `sha256sum shard-* | sha256sum` prints), which takes
            another pass over the file, and at most so many words that the source lacks: `missing` of `vocab` or
            `corpus`, `absent` of `only`. A mapping, or `rows=N,dim=N,digest=H,missing<=N,absent<=N`.
        row_report: a file for JSON lines, one for each row that is not simply the file's own; an earlier row report
            is replaced, any other file is kept.
        dry_run: read and select, write nothing; numbers are not checked.
        strict: make warnings errors, except those of absent words, which `expect` bounds.
        threads: how many workers; as many as there are cores by default. The result is the same.
        progress: True for the usual display, or a function of (bytes done, bytes in all or None).

    Returns:
        What was done, with all warnings; each is also given to `warnings.warn`.

    Raises:
        InputError: the source is at fault; the error says where and how.
        OutputError: the target is.
        UsageError: an argument is.
        CheckError: the source or what came out is not what was expected.
        TryAgainError: the network fails, or another run is writing there.
    """
    given = check(CONVERT, locals())
    read_from = _source(given)
    begun = time.monotonic()
    read = ReadOptions.of(given)
    if row_report is not None:
        from ..bundle.outputs import check_outputs  # late: few conversions write a report

        check_outputs({"row_report": row_report}, [source, vocab, only, corpus])
    if corpus is not None:
        from ..corpus.words import refuse_early, words_of

        if vocab is not None or only is not None:
            raise UsageError("two-word-lists", "rows follow a corpus, a vocabulary, or a list of words to keep")
        refuse_early(None if dry_run else output, if_exists)
        specials = list(specials)
        given["specials"] = specials
        given["vocab"] = vocab = words_of(corpus, given)
    elif (tokenizer, field, min_count, max_size) != ("whitespace", None, 1, None):
        raise UsageError("corpus-missing", "only a corpus is counted", hint="add corpus= or --corpus PATH")
    plan = Plan(WordOptions.of(given), note_events=row_report is not None)
    check_missing(missing, given=vocab is not None)
    shard_bytes = None if shard_size is None else parse_size("shard_size", shard_size)
    position_plan = PositionPlan.asked(positions, max_positions, position_preset, train_positions, seed)
    model = ModelPlan.parse(position_plan, scale, key_style, word_key, position_key, tied_head)
    train = TrainRows.parse(train_rows, True if freeze else None)
    conversion = Conversion(
        read, plan, missing, seed, model, train, Expectations.parse(expect), strict,
        license, without_secrets(source_url),
        recorded={
            "positions": positions, "max_positions": max_positions, "position_preset": position_preset,
            "train_positions": train_positions, "scale": model.scale.asked,
            "train_rows": None if train is None else train.kind,
            "key_style": key_style, "word_key": word_key, "position_key": position_key, "tied_head": tied_head,
            "from_scratch": from_scratch,
        },
        shard_size=shard_bytes,
    )  # fmt: skip
    if dry_run:
        report = conversion.dry_run(read_from)
    elif output is None:
        raise UsageError("output-missing", "no output given", hint="name a folder or NAME.safetensors")
    else:
        report = conversion.execute(read_from, target_of(output), if_exists, row_report)
    report.seconds = time.monotonic() - begun
    return report


def _source(given: Mapping[str, Any]) -> SourceLike | MatrixSource:
    """Return the source among the arguments of `convert`; one without rows for a table from scratch.

    Raises:
        UsageError: there is none, or an option does not go with a table from scratch.
    """
    source: SourceLike | None = given["source"]
    dim: int | None = given["from_scratch"]
    if dim is None:
        if source is None:
            raise UsageError(
                "source-missing", "no SOURCE given",
                hint="name a file of word vectors, or use --from-scratch DIM with --vocab or --corpus",
            )  # fmt: skip
        return source
    if source is not None:
        raise UsageError(
            "from-scratch-source", "--from-scratch and SOURCE exclude each other", hint="leave one of the two out"
        )
    if given["vocab"] is None and given["corpus"] is None:
        raise UsageError("from-scratch-words", "--from-scratch needs words", hint="add --vocab FILE or --corpus PATH")
    for option in OF_SOURCE:
        if given[option.name] != option.default:
            raise UsageError(
                "from-scratch-option", f"--{option.name.replace('_', '-')} needs a SOURCE, and --from-scratch has none",
                hint="leave one of the two out",
            )  # fmt: skip
    from ..formats.matrix.scratch import ScratchSource  # late: few tables are made from scratch

    return ScratchSource(dim)
