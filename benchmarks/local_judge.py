"""`--policy local` as a judge: its votes on replies of the calibration set, as tables.

    make install EXTRA=local
    OMP_NUM_THREADS=1 .venv/bin/python -m benchmarks.local_judge [REPLIES] [FOLDER] [LABELS]

24 replies where no number is said, evenly over the kinds (`harness judge calibrate --limit` takes
the same), or of a file of labels. Every reply is put before `grounded` and `local` in the shipped
judge's harness; what each of them and the panel of both say follows from the two votes. Votes are
kept in FOLDER, so a second start goes on behind the last one. MINUTES=5 asks for no further vote
after five minutes; the tables are then of what was voted, and say of how many.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from benchmarks.process import harness
from harness_cli.evaluation.labelled import Labels, constructed, labels_of, part_of
from harness_cli.judges.agreeing import measure
from harness_cli.judges.label_file import read_label_file
from harness_cli.judges.panel.case import Case
from harness_cli.judges.panel.judge import verdict_of
from harness_cli.judges.panel.opening import open_panel
from harness_cli.judges.panel.tally import Rule
from harness_cli.records.config import JudgeConfig
from harness_cli.records.verdict import Verdict, Vote
from harness_cli.store.project import Project

MEMBERS = ("grounded", "local")
REPLIES = 24


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The votes on one reply, and what they took."""

    id: str
    votes: tuple[Vote, ...]
    wall_s: float
    cpu_s: float


def main(words: Sequence[str]) -> None:
    """Vote, keep, print."""
    most = int(words[0]) if words else REPLIES
    folder = Path(words[1] if len(words) > 1 else tempfile.mkdtemp(prefix="harness-judge-"))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("XDG_STATE_HOME", str(folder / "state"))
    if not (folder / "x").is_dir():
        harness(folder, "init", "x")
    project = Project.read(folder / "x")
    labels = _evenly(part_of(_labels(project, words[2] if len(words) > 2 else None), most))
    kept = asyncio.run(_votes(project, labels, folder / "votes.jsonl"))
    voted = replace(labels, replies=tuple(r for r in labels.replies if r.id in kept))
    print(f"{len(voted.replies)} of {len(labels.replies)} replies were voted on.\n")
    if voted.replies:
        _show(voted, kept)
    print(f"\nVotes: {folder / 'votes.jsonl'}")


def _labels(project: Project, file: str | None) -> Labels:
    if file is None:
        return constructed(project)
    return labels_of(project, read_label_file(Path(file)), "live_stream_qa", None, "team")


def _evenly(labels: Labels) -> Labels:
    """The replies in an order in which every beginning is even over the kinds."""
    first: dict[str, int] = {}
    for most in range(1, len(labels.replies) + 1):
        first |= {r.id: most for r in part_of(labels, most).replies if r.id not in first}
    return replace(labels, replies=tuple(sorted(labels.replies, key=lambda r: first[r.id])))


async def _votes(project: Project, labels: Labels, file: Path) -> dict[str, Kept]:
    until = time.monotonic() + 60 * float(os.environ.get("MINUTES", "inf"))
    lines = file.read_bytes().splitlines() if file.exists() else []
    kept = {k.id: k for k in (msgspec.json.decode(line, type=Kept) for line in lines)}
    panel = open_panel("both", JudgeConfig(panel=MEMBERS), project)
    try:
        with file.open("ab") as out:
            for reply, (item, trajectory) in zip(labels.replies, labels.cases, strict=True):
                if reply.id in kept or time.monotonic() > until:
                    continue
                wall, cpu = time.perf_counter(), time.process_time()
                verdict = await panel.judge(item, trajectory, labels.world)
                kept[reply.id] = Kept(
                    id=reply.id,
                    votes=verdict.votes,
                    wall_s=time.perf_counter() - wall,
                    cpu_s=time.process_time() - cpu,
                )
                out.write(msgspec.json.encode(kept[reply.id]) + b"\n")
                out.flush()
    finally:
        await panel.close()
    return kept


def _show(labels: Labels, kept: dict[str, Kept]) -> None:
    judges = {name: (name,) for name in MEMBERS} | {"both": MEMBERS}
    print("| judge | scored | Accuracy raw, κ | Effectiveness raw, κ | corrupted marked down |")
    print("| --- | --- | --- | --- | --- |")
    for name, members in judges.items():
        print(_row(name, labels, _verdicts(name, members, labels, kept)))
    print("\n| what was done to the reply | label A, E | vote of `local` |\n| --- | --- | --- |")
    for reply in sorted(labels.replies, key=lambda r: r.corruption):
        label = reply.labels[0]
        grades = f"{label.accuracy:g}, {label.effectiveness:g}"
        print(f"| {reply.corruption or 'nothing'} | {grades} | {_said(_vote(kept[reply.id]))} |")
    of = [kept[r.id] for r in labels.replies]
    votes = [_vote(k) for k in of]
    silent = Counter(_cause(v.unscored) for v in votes if v.unscored is not None)
    print(f"\n`local`: {sum(v.unscored is None for v in votes)} verdicts of {len(votes)}.")
    for cause, n in silent.most_common():
        print(f"- unscored {n} x {cause}")
    cpu, wall = sum(k.cpu_s for k in of) / 60, sum(k.wall_s for k in of) / 60
    calls = sum(v.calls for v in votes)
    print(f"{calls} model calls, {cpu:.1f} CPU minutes, {wall:.1f} wall minutes.")


def _verdicts(
    name: str, members: tuple[str, ...], labels: Labels, kept: dict[str, Kept]
) -> list[Verdict]:
    """The verdicts of a panel of these members, with the rule that a panel has by default."""
    made = []
    for reply, (item, trajectory) in zip(labels.replies, labels.cases, strict=True):
        votes = tuple(v for v in kept[reply.id].votes if v.voter in members)
        made.append(verdict_of(name, votes, Rule(), Case(item, trajectory, labels.world)))
    return made


def _row(name: str, labels: Labels, verdicts: list[Verdict]) -> str:
    report = measure(name, labels.replies, verdicts)
    agreed = [
        f"{a.raw:.0%}, {'–' if a.kappa is None else f'{a.kappa:.2f}'}" if a else "–"
        for a in (report.accuracy, report.effectiveness)
    ]
    caught, corrupted = sum(k.caught for k in report.kinds), sum(k.n for k in report.kinds)
    scored = f"{report.n - report.unscored} of {report.n}"
    return f"| {name} | {scored} | {' | '.join(agreed)} | {caught} of {corrupted} |"


def _vote(found: Kept) -> Vote:
    return next(v for v in found.votes if v.voter == MEMBERS[-1])


def _said(vote: Vote) -> str:
    if vote.unscored is not None:
        return f"none: {_cause(vote.unscored)}"
    return ", ".join(f"{vote.scores[m]:g}" for m in ("accuracy", "effectiveness"))


def _cause(reason: str) -> str:
    """What the reasons of one kind have in common: their first words."""
    return reason[:60].replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    main(sys.argv[1:])
