"""One conversion, its options checked: rehearsed without numbers, or carried out."""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..bundle.model_layout import ModelLayout, ModelPlan
from ..bundle.publication import Target
from ..bundle.reader import publish_or_keep
from ..bundle.training import TrainRows
from ..bundle.writer import BundleWriter, check_folder
from ..errors import InputError, Vec2embWarning, VocabularyError, shown
from ..io.sources import SourceLike
from ..safetensors_files.rows import RowFile
from .engine import Counts, Tally
from .expectations import Expectations
from .parsed_rows import discard
from .planning import Plan
from .reading_pass import Pass, ReadOptions, open_pass
from .report import FEW, Report, announce
from .row_report import RowReport
from .row_writer import RowWriter, planned_inits
from .selection import Selection

if TYPE_CHECKING:
    from ..bundle.manifest import Scalar
    from ..formats.matrix.source import MatrixSource


class Conversion(NamedTuple):
    """What a conversion is to do.

    Attributes:
        read: how the source is read.
        plan: which rows there are to be.
        missing, seed: how rows of words are set that the source lacks.
        model: names of tensors, positions, scale.
        train: which rows are to train; None for those that the source records, or all.
        expected: what must come out, or nothing is written.
        strict: whether warnings are errors.
        license, source_url: recorded of the source.
        recorded: further options that change what comes out, under the names of a replay record.
        shard_size: of a table that is cut into shards, the bytes of one at most; None for one file.
    """

    read: ReadOptions
    plan: Plan
    missing: str
    seed: int
    model: ModelPlan
    train: TrainRows | None
    expected: Expectations
    strict: bool
    license: str | None
    source_url: str | None
    recorded: "Mapping[str, Scalar]"
    shard_size: int | None = None

    def dry_run(self, source: "SourceLike | MatrixSource") -> Report:
        """Detect, scan and select: what a conversion would give, as far as that can be told without numbers."""
        with open_pass(source, self.read) as opened:
            _settle(opened, self.plan, self.missing)
            selection = self.plan.selection(opened.expected_rows)
            counts, found = opened.run(selection, discard, fill=False)
            _refuse_missing(selection, self.missing, opened.source.label)
            report = self._described(opened, counts, selection, planned_inits(selection), None)[0]
        for _ in report.spelled(selection.vocabulary()):
            pass
        report.warnings, report.dry_run = [*self._unasked(opened, found), *filter(None, [_left_behind(opened)])], True
        self.expected.check(report)
        announce(report.warnings, self.strict)
        return report

    def execute(
        self,
        source: "SourceLike | MatrixSource",
        target: Target,
        if_exists: str,
        row_report: str | os.PathLike[str] | None,
    ) -> Report:
        """Scan, select, fill, and publish."""
        check_folder(target, self.shard_size)
        with (
            target.publication(if_exists) as publication,
            open_pass(source, self.read) as opened,
            RowReport(row_report, target) as row_lines,
            BundleWriter(
                publication, opened.detected.dim, self.read.dtype, shard_size=self.shard_size, threads=self.read.threads
            ) as writer,
        ):
            selection, report, layout = self._fill(opened, writer, row_lines, target.label)
            self.expected.check(report)
            announce(report.warnings, self.strict)
            writer.write_vocabulary(report.spelled(selection.vocabulary()))
            manifest = report.manifest._replace(all_lowercase=report.all_lowercase)
            report.manifest = writer.finish(manifest, layout.table)
            sums = {"digest": report.manifest.table_digest()}
            if self.expected.needs_sha256:
                sums["sha256"] = writer.table_sha256(report.manifest)
            self.expected.check(report, sums)
            report.kept_existing = publish_or_keep(publication, report.manifest)
            row_lines.conclude(report.manifest.provenance, selection.vocabulary())
        report.path, report.model_path = target.label, None if self.shard_size else target.model_label
        return report

    def _fill(
        self, opened: Pass, writer: BundleWriter, row_lines: RowReport, label: str
    ) -> tuple[Selection, Report, ModelLayout]:
        """All rows at their place; what was selected, what was done, and how the table enters a model."""
        _settle(opened, self.plan, self.missing)
        self.model.check(opened.detected.dim, any(special.role == "padding" for special in self.plan.specials))
        selection = self.plan.selection(opened.expected_rows)
        row_lines.follow(selection)
        staging = writer.staging_rows() if selection.indirect else None
        limit = opened.reader.policy.limit
        row_writer = RowWriter(writer.rows, selection, staging, limit, from_scratch=opened.from_scratch)
        counts, found = opened.run(selection, row_writer.take)
        _refuse_missing(selection, self.missing, opened.source.label)
        compose, lacking = opened.composer() if self.missing == "subword" else (None, None)
        with _explained(selection, opened.source.label):
            inits = row_writer.finish(self.seed, self.missing, compose)
        report, layout = self._described(opened, counts, selection, inits, writer.rows)
        odd = [layout.warning(label), _left_behind(opened), _without_subwords(opened, lacking)]
        report.warnings = [*self._unasked(opened, found), *filter(None, odd)]
        return selection, report, layout

    def _unasked(self, opened: Pass, found: Sequence[Vec2embWarning]) -> list[Vec2embWarning]:
        """The warnings without those of words whose absence the caller's own option provides for."""
        provided = {"absent-words"}
        if self.missing != "normal" or opened.from_scratch:
            provided.add("missing-words")
        if self.missing == "subword" or opened.from_scratch:
            provided.add("all-words-missing")
        return [warning for warning in found if warning.code not in provided]

    def _described(
        self, opened: Pass, counts: Counts, selection: Selection, inits: Sequence[str], table: RowFile | None
    ) -> tuple[Report, ModelLayout]:
        """What is recorded and reported of the table; without `table`, lengths are not measured."""
        from ..bundle import manifest as records  # late: nothing of it is needed before the rows are there
        from . import recording

        dim, dtype = opened.detected.dim, self.read.dtype
        scratch = opened.from_scratch
        provenance = recording.provenance_of(selection, inits, self.missing, self.seed, from_scratch=scratch)
        padding_idx = provenance.token_of_role("padding")
        layout = self.model.make_table(dim, padding_idx)
        if table is not None:
            pairs = provenance.rows_of_file() or provenance.new_rows()
            layout = layout.measure((block for start, stop in pairs for block in table.blocks(start, stop)), dim)
        find, train = recording.row_finder(selection), self.train or TrainRows("all")
        trained = train.ranges(len(selection), padding_idx, provenance.new_rows(), find)
        license, url = _terms(opened, self.license, self.source_url)
        source = recording.source_record(opened.source, opened.detected, counts, selection, self.read)
        manifest = records.Manifest(
            provenance, dim, dtype, layout.names.word, layout.names.style, layout.names.tied_head,
            layout.recorded_positions(), layout.scale.recorded(), records.Training(train.kind, trained),
            selection.lookup,
            tokenizer=recording.tokenizer_record(self.plan.words),
            source=None if scratch else source._replace(license=license, url=url),
            replay=recording.replay_of(
                self.read, self.plan, {"missing": self.missing, "seed": self.seed, **self.recorded}
            ),
        )  # fmt: skip
        manifest = recording.with_records_of(opened.matrix, manifest, selection, keep_training=self.train is None)
        report = Report(opened.source, opened.detected, counts, selection, manifest, layout)
        report.describe_files(self.shard_size)
        return report, layout


def _settle(opened: Pass, plan: Plan, missing: str) -> None:
    """Let the plan follow what the source says of itself."""
    if not opened.from_scratch:
        opened.check_missing(missing)
    if opened.matrix is not None:
        plan.adopt(opened.matrix.pad, opened.matrix.unk, opened.matrix.keeps_padding)
    if opened.from_scratch:
        plan.generate(missing)


def _left_behind(opened: Pass) -> Vec2embWarning | None:
    """The warning that a bundle holds more than rows."""
    notes = [] if opened.matrix is None else opened.matrix.notes
    if not notes:
        return None
    text = f"{opened.source.label}: what the bundle records beside its rows does not come along: {', '.join(notes)}"
    return Vec2embWarning("left-behind", text, count=len(notes), path=opened.source.label)


def _without_subwords(opened: Pass, lacking: Tally | None) -> Vec2embWarning | None:
    """The warning that some words could not be composed."""
    if lacking is None or not lacking.count:
        return None
    text = f"{opened.source.label}: {lacking.count} missing words are too short to have subwords; their rows are zero"
    return Vec2embWarning("words-without-subwords", text, count=lacking.count, path=opened.source.label)


def _terms(opened: Pass, license: str | None, url: str | None) -> tuple[str | None, str | None]:
    """Licence and place of the vectors, as the caller says, or else as a bundle records."""
    matrix = opened.matrix
    return (license, url) if matrix is None else (license or matrix.license, url or matrix.url)


def _refuse_missing(selection: Selection, missing: str, label: str) -> None:
    rows = selection.missing() if missing == "error" else []
    if rows:
        raise VocabularyError(
            "missing-words",
            f"the file lacks {len(rows)} of the words",
            path=label,
            found=_few(selection.names(rows[: FEW + 1])),
            hint="--missing normal, mean, uniform or zeros makes rows for them",
        )


@contextlib.contextmanager
def _explained(selection: Selection, label: str) -> Iterator[None]:
    """Say of a row that cannot be made in which file, and whether that has none of the words that are wanted."""
    try:
        yield
    except InputError as error:
        error.path = label
        lacking = selection.names(selection.missing()) or [token.decode() for token in selection.absent]
        if error.code == "nothing-to-fit" and lacking:
            error.expected, error.found = "words of the file", _few(lacking)
            error.hint = f"is that the right list of words? If so, {error.hint}"
        raise


def _few(names: list[str]) -> str:
    return ", ".join(shown(name) for name in names[:FEW]) + (", .." if len(names) > FEW else "")
