"""Seal a split: freeze its digest in `evalset.yaml` and let only the logged way in from then on."""

import re
from typing import Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.evaluation.evalsets import ITEMS, load_header
from harness_cli.evaluation.survey import HEADER, survey_items
from harness_cli.records.canonical import write_atomic
from harness_cli.records.item import EvalsetHeader, Seal
from harness_cli.records.reader import dump_yaml, parse_yaml, read_text
from harness_cli.store.project import Project


def freeze(project: Project, name: str, *, seal: tuple[str, ...] = ()) -> EvalsetHeader:
    """Write the digest of every split into the header, and seal the named ones.

    Nothing else of `evalset.yaml` changes, comments least of all. Raises `BadFile` when the items
    do not hold what the header states.
    """
    header = load_header(project, name)
    path = project.evalsets / name / HEADER
    survey = survey_items(project.evalsets / name / ITEMS, name=f"{name}/{ITEMS}")
    unfrozen = msgspec.structs.replace(header, digests={})
    findings = survey.findings + survey.against(unfrozen)
    if findings:
        raise BadFile("\n".join(findings))
    digests = {split: survey.digests[split] for split in header.splits}
    sealed = tuple(sorted({*header.seal.splits, *seal}))
    wanted = msgspec.structs.replace(header, digests=digests, seal=Seal(splits=sealed))
    text = read_text(path)
    text = with_block(text, "digests", digests)
    if sealed:
        text = with_block(text, "seal", {"splits": list(sealed)})
    if _parsed(text) != wanted:
        raise BadFile(
            f"{name}/{HEADER}: its `digests` or `seal` cannot be rewritten in place",
            hint=f"write them by hand: {dump_yaml({'digests': digests})}",
        )
    write_atomic(path, text.encode())
    return wanted


def _parsed(text: str) -> EvalsetHeader | None:
    try:
        return parse_yaml(text, EvalsetHeader, name=HEADER)
    except BadFile:
        return None


def with_block(text: str, key: str, value: Any) -> str:
    """YAML `text` with the block of one top-level key replaced, or added at its end."""
    block = dump_yaml({key: value})
    pattern = re.compile(rf"^{re.escape(key)}:.*\n?(?:(?:[ \t]+.*|- .*|-)\n?)*", re.MULTILINE)
    if pattern.search(text):
        return pattern.sub(lambda _: block, text, count=1)
    return text + ("" if text.endswith("\n") or not text else "\n") + block
