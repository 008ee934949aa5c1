"""A verdict for a terminal: grades, findings, then every vote with what it rests on."""

from collections.abc import Iterator

from harness_cli.records.journal import VerdictRecord
from harness_cli.records.verdict import Finding, Verdict, Vote


def verdict_lines(record: VerdictRecord | None, *, votes: bool = True) -> Iterator[str]:
    """The lines of one verdict; none where no judge was asked."""
    if record is None:
        return
    verdict = record.verdict
    if verdict is None:
        if record.error:
            yield f"judge: {record.error}"
        return
    cached = " (cached)" if verdict.cached else ""
    yield f"judge {verdict.judge}{cached}: {_grades(verdict.scores)}"
    if verdict.unscored_reason:
        yield f"  unscored: {verdict.unscored_reason}"
    yield from (f"  {_finding(f)}" for f in verdict.findings)
    yield from (
        f"  rubric {_passed(a.passed)}: {a.rubric}{f' ({a.reason})' if a.reason else ''}"
        for a in verdict.assertions
        if a.rubric
    )
    if votes:
        yield from _votes(verdict)


def _votes(verdict: Verdict) -> Iterator[str]:
    for vote in verdict.votes:
        yield from (f"  {said}" for said in _vote(vote))


def _vote(vote: Vote) -> Iterator[str]:
    cached = ", cached" if vote.cached else ""
    about = f"vote of {vote.voter} ({vote.policy}{cached})"
    if vote.unscored is not None:
        yield f"{about}: unscored, {vote.unscored}"
        return
    yield f"{about}: {_grades(vote.scores)}"
    yield from (f"  {metric}: {why}" for metric, why in vote.reasons.items() if why)
    yield from (f"  looked up {call}" for call in vote.looked_up)
    yield from (
        f"  evidence {e.ref}{f': {e.says}' if e.says else ''}" for e in vote.evidence if e.ref
    )


def _grades(scores: dict[str, float | None]) -> str:
    shown = [f"{name} {'–' if value is None else f'{value:g}'}" for name, value in scores.items()]
    return ", ".join(shown) or "no score"


def _finding(finding: Finding) -> str:
    quote = f" `{finding.quote}`" if finding.quote else ""
    return f"{finding.kind}{quote}: {finding.detail}".rstrip(": ")


def _passed(passed: bool | None) -> str:
    return "undecided" if passed is None else "passed" if passed else "not passed"
