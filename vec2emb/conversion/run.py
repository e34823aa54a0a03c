"""One conversion, its options checked: rehearsed without numbers, or carried out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..bundle.model_layout import ModelLayout, ModelPlan
from ..bundle.publication import Target
from ..bundle.reader import compare_with_existing, table_sha256
from ..bundle.training import TrainRows
from ..bundle.writer import BundleWriter, check_folder
from ..errors import InputError, Vec2embWarning, VocabularyError, shown
from ..io.sources import SourceLike
from .engine import Tally
from .expectations import Expectations
from .parsed_rows import discard
from .planning import Plan
from .reading_pass import Pass, ReadOptions, open_pass
from .report import FEW, Report, announce
from .row_report import RowReport
from .row_writer import RowWriter, planned_inits
from .selection import Selection


class Conversion(NamedTuple):
    """What a conversion is to do.

    Attributes:
        read: how the source is read.
        plan: which rows there are to be.
        missing, seed: how rows of words are set that the source lacks.
        model: names of tensors, positions, scale.
        train: which rows are to train.
        expected: what must come out, or nothing is written.
        strict: whether warnings are errors.
        license, source_url: recorded of the source.
        recorded: further options that change what comes out, as vec2emb.json has them.
        shard_size: of a table that is cut into shards, the bytes of one at most; None for one file.
    """

    read: ReadOptions
    plan: Plan
    missing: str
    seed: int
    model: ModelPlan
    train: TrainRows
    expected: Expectations
    strict: bool
    license: str | None
    source_url: str | None
    recorded: dict[str, Any]
    shard_size: int | None = None

    def dry_run(self, source: SourceLike) -> Report:
        """Detect, scan and select: what a conversion would give, as far as that can be told without numbers."""
        with open_pass(source, self.read) as opened:
            _settle(opened, self.plan, self.missing)
            selection = self.plan.selection(opened.expected_rows)
            counts, found = opened.run(selection, discard, fill=False)
            _refuse_missing(selection, self.missing, opened.source.label)
            report = Report(opened.source, opened.detected, counts, selection)
        report.describe_plan(self.read.dtype, self.missing, planned_inits(selection))
        report.describe_model(self.model.make_table(report.dim, report.padding_idx), self.train)
        report.describe_shards(self.shard_size)
        for _ in report.spelled(selection.vocabulary()):
            pass
        report.warnings, report.dry_run = [*found, *filter(None, [_left_behind(opened)])], True
        self.expected.check(report, None)
        announce(report.warnings, self.strict)
        return report

    def execute(
        self, source: SourceLike, target: Target, if_exists: str, row_report: str | os.PathLike[str] | None
    ) -> Report:
        """Scan, select, fill, and publish."""
        check_folder(target, self.shard_size)
        with (
            target.publication(if_exists) as publication,
            open_pass(source, self.read) as opened,
            RowReport(row_report, target) as row_lines,
            BundleWriter(publication, opened.detected.dim, self.read.dtype, shard_size=self.shard_size) as writer,
        ):
            selection, report, layout = self._fill(opened, writer, row_lines, target.label)
            self.expected.check(report, None)
            announce(report.warnings, self.strict)
            options = {**self.read.recorded(), **self.plan.recorded(), "missing": self.missing, "seed": self.seed}
            writer.write_vocabulary(report.spelled(selection.vocabulary()))
            details = report.details(*_provenance(opened, self.license, self.source_url))
            config = {**details, "options": {**options, **self.recorded}}
            report.config = writer.finish(len(selection), report.facts(), config, layout.tensors())
            self.expected.check(report, table_sha256(report.config))
            if if_exists == "keep" and not target.is_free():
                compare_with_existing(target, report.config)
                report.kept_existing = True
            else:
                publication.publish()
            row_lines.conclude(report)
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
        row_writer = RowWriter(writer.rows, selection, staging, opened.reader.policy.limit)
        counts, found = opened.run(selection, row_writer.take)
        _refuse_missing(selection, self.missing, opened.source.label)
        compose, lacking = opened.composer() if self.missing == "subword" else (None, None)
        with _explained(selection, opened.source.label):
            inits = row_writer.finish(self.seed, self.missing, compose)
        report = Report(opened.source, opened.detected, counts, selection)
        report.describe_plan(self.read.dtype, self.missing, inits)
        layout = self.model.make_table(report.dim, report.padding_idx)
        rows = (block for start, stop in report.rows_of_file() for block in writer.rows.blocks(start, stop))
        layout = layout.measure(rows, report.dim)
        report.describe_model(layout, self.train)
        report.describe_shards(self.shard_size)
        odd = [layout.warning(label), _left_behind(opened), _without_subwords(opened, lacking)]
        report.warnings = [*found, *filter(None, odd)]
        return selection, report, layout


def _settle(opened: Pass, plan: Plan, missing: str) -> None:
    """Let the plan follow what the source says of itself."""
    opened.check_missing(missing)
    if opened.matrix is not None:
        plan.adopt(opened.matrix.pad, opened.matrix.unk)


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


def _provenance(opened: Pass, license: str | None, url: str | None) -> tuple[str | None, str | None]:
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
