"""All checks of a harness: each file on its own, then what the files say about each other."""

from collections.abc import Iterator, Mapping

import msgspec

from harness_cli.harness.findings import Finding, ordered
from harness_cli.harness.parts import JUDGES, Parts, collect, content, judges
from harness_cli.store.tree import Entry


def check_files(files: Mapping[str, Entry]) -> list[Finding]:
    """Every finding about a harness and its judges, errors and warnings, in order of place."""
    parts = collect(content(files))
    found = [*parts.findings, *check_parts(parts)]
    for name, inside in judges(files).items():
        judge = collect(inside)
        found += [
            msgspec.structs.replace(f, path=f"{JUDGES}/{name}/{f.path}")
            for f in [*judge.findings, *check_parts(judge, judge=True)]
        ]
    return ordered(found)


def check_parts(parts: Parts, *, judge: bool = False) -> Iterator[Finding]:
    """What is wrong between the files of one harness; a judge needs no skills and no replies."""
    del parts, judge
    yield from ()
