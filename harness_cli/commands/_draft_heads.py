"""What `harness mtp` shows of a draft head."""

from pathlib import Path

from harness_cli.commands._show import emit_json, line, note
from harness_cli.errors import HarnessError
from harness_cli.records.mtp import HeadReport
from harness_cli.store.checkpoints import find_checkpoint
from harness_cli.store.project import Project


def found_checkpoint(directory: Path, name: str) -> Path:
    """A folder as it is named, else a checkpoint of the project."""
    folder = directory / name
    if folder.is_dir():
        return folder
    try:
        root = Project.find(directory).root
    except HarnessError:
        # Outside of a project only folders can be meant, and this is none.
        root = directory
    return find_checkpoint(root, name)


def show_report(report: HeadReport, *, as_json: bool, quiet: bool) -> None:
    """The findings, errors first, then what the head is."""
    if as_json:
        emit_json({"report": report, "ok": report.ok})
        return
    for found in report.findings:
        line(f"{found.level}: {found.trouble}: {found.message}")
        if not quiet:
            line(f"  fix: {found.fix}")
    if quiet or not report.tensors:
        return
    experts = "" if report.experts == "none" else f", experts {report.experts}"
    line(
        f"{report.checkpoint}: {report.tensors} tensors, {report.parameters:,} parameters, "
        f"{'/'.join(report.dtypes)}{experts}"
    )
    if report.head_digest:
        line(f"  head {report.head_digest[:16]}")
    if report.provenance is not None:
        made = report.provenance
        line(f"  {made.origin}, from {made.source} ({made.by}, {made.made})")
    if report.ok:
        note("the head is whole" + ("; see the warnings" if report.findings else ""))
