"""Failure classes: `failure_classes/<id>.md`, frontmatter of `FailureClass` and prose."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from harness_cli.errors import BadFile
from harness_cli.harness import frontmatter
from harness_cli.harness.findings import Finding, of_error
from harness_cli.harness.parts import CLASSES
from harness_cli.harness.reading import read_value
from harness_cli.records.diagnosis import FailureClass
from harness_cli.store.tree import GITLINK, SYMLINK, Entry


def check_classes(files: Mapping[str, Entry]) -> Iterator[Finding]:
    """What is wrong with the failure classes among the files of a harness."""
    for path, entry in files.items():
        if path.startswith(f"{CLASSES}/"):
            if entry.mode in (SYMLINK, GITLINK):
                message = "a link, which is never followed"
                yield Finding(path=path, rule="file/link", message=message)
            elif path.endswith(".md") and not path.endswith("README.md"):
                yield from _findings(entry.data, path)


@lru_cache(maxsize=512)
def _findings(data: bytes, path: str) -> tuple[Finding, ...]:
    """What is wrong with one file; harnesses of one base share most of them."""
    return tuple(read_class(data, path)[1])


def read_class(data: bytes, path: str) -> tuple[FailureClass | None, list[Finding]]:
    """The failure class of a file, or None with what is wrong."""
    try:
        parts = frontmatter.split(data, path)
    except BadFile as exc:
        return None, [of_error(exc, path, "class/frontmatter")]
    fields: dict[str, Any] = {"body": parts.body, **parts.fields}
    source = "\n" * (parts.first_line - 1) + parts.source
    made, findings = read_value(fields, FailureClass, path, "class/file", source)
    stem = PurePosixPath(path).stem
    if made is not None and made.id != stem:
        message = f"the id `{made.id}` differs from its file `{stem}.md`"
        findings.append(Finding(path=path, rule="class/id", message=message, fix=f"`id: {stem}`"))
    return (None if findings else made), findings
