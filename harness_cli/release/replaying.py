"""Recorded rollouts checked again: digests, assertions, metrics, and the judge where it is code.

Nothing is asked of a model. What a panel said is taken from the record, which the evidence binds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import msgspec

from harness_cli import __version__
from harness_cli.errors import BadFile, HarnessError
from harness_cli.evaluation.evalsets import Evalset
from harness_cli.evaluation.outline import named
from harness_cli.evaluation.scorer import OldItem, OldResult, scored
from harness_cli.judges.grounded.judge import GroundedJudge
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.clocks import trajectory_digest
from harness_cli.records.counting import counted
from harness_cli.records.item import Item
from harness_cli.records.journal import TextRecord, TrajectoryRecord, VerdictRecord
from harness_cli.records.manifest import Evidence, EvidenceLine, Manifest
from harness_cli.records.trajectory import Trajectory
from harness_cli.release.archiving import Begun
from harness_cli.release.checks import Check
from harness_cli.release.evidence import line_of
from harness_cli.release.replay_parts import Stretch, in_parts
from harness_cli.store.journal import Line, data_of, scan
from harness_cli.store.runs import REF, Key, RunFolder

WHAT = "full trajectories"
SHOWN = 3
ROLLED = ("trajectory", "text")
"""Kinds of records that a run scored again leaves where they were."""
SCORED = ("verdict", "item")
"""Kinds that it writes anew."""
_text = msgspec.json.Decoder(TextRecord).decode
_trajectory = msgspec.json.Decoder(TrajectoryRecord).decode
_verdict = msgspec.json.Decoder(VerdictRecord).decode
Lines = Mapping[str, tuple[EvidenceLine, ...]]
Evalsets = Mapping[tuple[str, str | None], Evalset]
"""Name and split → the evalset of the bound commit."""


class _Result(OldResult, frozen=True):
    """What a result was made of, and the reply: equal ones are best looked at one after another."""

    reply: str = ""


class _Item(OldItem, frozen=True):
    result: _Result


_item = msgspec.json.Decoder(_Item).decode


@dataclass(slots=True)
class _Recorded:
    """What a journal says, the last of each kind by rollout."""

    verdicts: dict[Key, VerdictRecord] = field(default_factory=dict)
    items: dict[Key, _Item] = field(default_factory=dict)
    trajectories: dict[Key, int] = field(default_factory=dict)
    """Where it lies: of thousands none is kept in memory."""
    texts: dict[str, int] = field(default_factory=dict)
    """Where each prompt text lies that trajectories refer to."""

    def take(self, line: Line) -> None:
        if line.kind == "verdict":
            verdict = _verdict(line.data)
            self.verdicts[Key(verdict.item, verdict.repeat)] = verdict
        elif line.kind == "item":
            item = _item(line.data)
            self.items[Key(item.item, item.repeat)] = item
        elif line.kind == "trajectory":
            self.trajectories[Key(*named(line.data))] = line.offset
        elif line.kind == "text":
            text = _text(line.data)
            if blake2b(text.text.encode(), digest_size=16).hexdigest() != text.id:
                raise BadFile(f"the prompt text `{text.id}` is another one")
            self.texts.setdefault(text.id, line.offset)

    def reply(self, key: Key) -> str:
        """What was said, as the item's record has it."""
        return self.items[key].result.reply if key in self.items else ""


class _Tally(msgspec.Struct):
    """What came of one run, or of a stretch of it."""

    rollouts: int = 0
    graded: int = 0
    assertions: int = 0
    changed: list[str] = []
    """Rollouts that are not the bound ones."""
    otherwise: list[str] = []
    """Rollouts that are, and that come to something else."""

    def add(self, other: "_Tally") -> None:
        """What came of the stretch after this one."""
        self.rollouts += other.rollouts
        self.graded += other.graded
        self.assertions += other.assertions
        self.changed += other.changed
        self.otherwise += other.otherwise


def check_rollouts(
    manifest: Manifest, lines: Lines, evalsets: Evalsets, archive: Begun | None
) -> list[Check]:
    """One check a run. `evalsets` are those of the bound commit, `archive` holds the rollouts.

    What is not there is not re-checked, and never called verified.
    """
    if archive is None:
        told = f"no archive of them is here: harness manifest archive {manifest.predicate.id}"
        return [Check(WHAT, "not re-checked", told)]
    bound = {evidence.run: evidence for evidence in manifest.predicate.evidence}
    same = manifest.predicate.versions.get("harness") == __version__
    checks = []
    try:
        runs = archive.runs()
    except HarnessError as exc:
        return [Check(WHAT, "wrong", str(exc))]
    for name, evidence in sorted(bound.items()):
        what = f"rollouts {name}"
        if name not in runs:
            checks.append(Check(what, "not re-checked", f"`{archive.name}` has not this run"))
            continue
        try:
            evalset = evalsets[evidence.evalset, evidence.split]
            done = replayed(runs[name], evidence, lines.get(name, ()), evalset)
        except HarnessError as exc:
            checks.append(Check(what, "wrong", str(exc)))
        else:
            checks.append(_said(what, done, same_version=same))
    return checks


def replayed(
    run: RunFolder, evidence: Evidence, lines: tuple[EvidenceLine, ...], evalset: Evalset
) -> _Tally:
    """Every rollout of a run beside its line of evidence."""
    wanted = {Key(line.item_id, line.repeat): line for line in lines}
    judge = GroundedJudge()
    recorded = _read(run)
    bench = _Bench(
        recorded=recorded,
        wanted=wanted,
        items={item.id: item for item in evalset.items},
        world=evalset.world,
        judge=judge if judge.id == evidence.judge_id else None,
    )
    # One of an item that broke and came again, or that no gate looks at, has no line.
    where = {key: at for key, at in recorded.trajectories.items() if key in wanted}
    # A judge that is code reads equal replies once, where they come one after another.
    order = sorted(where, key=lambda key: (recorded.reply(key), where[key]))
    todo = [(where[key], key.item, key.repeat) for key in order]
    places = {f"{key.item}#{key.repeat}": at for key, at in where.items()}
    tally = _Tally()
    for part in in_parts(todo, lambda some: bench.looked_at(run.rollouts, some)):
        tally.add(part)
    for names in (tally.changed, tally.otherwise):
        names.sort(key=lambda name: places[name])
    missing = wanted.keys() - recorded.trajectories.keys()
    tally.changed += [f"{key.item}#{key.repeat} (missing)" for key in sorted(missing)]
    return tally


@dataclass(slots=True, kw_only=True)
class _Bench:
    """What rollouts are looked at with."""

    recorded: _Recorded
    wanted: Mapping[Key, EvidenceLine]
    items: Mapping[str, Item]
    world: Catalogue
    judge: GroundedJudge | None

    def looked_at(self, journal: Path, some: Stretch) -> _Tally:
        """A stretch of the rollouts, each beside its line."""
        tally = _Tally()
        for key, compact in _rollouts(journal, some, self.recorded.texts):
            tally.rollouts += 1
            line, name = self.wanted[key], f"{key.item}#{key.repeat}"
            digest = trajectory_digest(compact)
            if digest != line.trajectory_sha256 or key.item not in self.items:
                tally.changed.append(name)
                continue
            again = self._again(key, compact, tally, digest)
            if not _alike(line, again, compact):
                tally.otherwise.append(name)
        return tally

    def _again(self, key: Key, compact: Trajectory, tally: _Tally, digest: str) -> EvidenceLine:
        """The line that this rollout comes to now; no score looks at the texts of a prompt."""
        item, recorded = self.items[key.item], self.recorded
        said, old = recorded.verdicts.get(key), recorded.items.get(key)
        verdict = said.verdict if said else None
        if self.judge is not None and verdict is not None and item.state is None:
            verdict = self.judge.verdict(item, compact, self.world)
            tally.graded += 1
        kept = OldResult(digest, old.result.assertions if old else ())
        result = scored(item, compact, verdict, said.error if said else None, kept)
        tally.assertions += len(result.assertions)
        return line_of("", result)


def _alike(line: EvidenceLine, again: EvidenceLine, whole: Trajectory) -> bool:
    """The same but for clocks; a time that was taken is the trajectory's own."""
    ttft = whole.steps[0].reply.ttft_s if whole.steps else None
    timed = line.wall_s in (None, whole.wall_s) and line.ttft_s in (None, ttft)
    plain = msgspec.structs.replace(again, run=line.run, wall_s=line.wall_s, ttft_s=line.ttft_s)
    return timed and plain == line


def _read(run: RunFolder) -> _Recorded:
    found, rollouts, journal = _Recorded(), run.rollouts, run.journal
    for path in dict.fromkeys((rollouts, journal)):
        kinds = {*(ROLLED if path == rollouts else ()), *(SCORED if path == journal else ())}
        for line in scan(path):
            if line.kind in kinds:
                found.take(line)
    return found


def _rollouts(
    journal: Path, some: Stretch, texts: Mapping[str, int]
) -> Iterator[tuple[Key, Trajectory]]:
    """The trajectory at each place, as it is digested: long prompt texts by reference.

    Raises `BadFile` for a text that is not there, or not before what refers to it.
    """
    with journal.open("rb") as file:
        for at, item, repeat in some:
            file.seek(at)
            data = data_of(file.readline())
            if data is None:
                raise BadFile(f"{journal.name}: no whole record at byte {at}")
            trajectory = _trajectory(data).trajectory
            _check_texts(trajectory, texts, at)
            yield Key(item, repeat), trajectory


def _check_texts(trajectory: Trajectory, texts: Mapping[str, int], at: int) -> None:
    for step in trajectory.steps:
        for message in step.messages:
            content = message.get("content")
            if isinstance(content, dict) and REF in content and texts.get(content[REF], at) >= at:
                raise BadFile(f"the journal lacks the text `{content[REF]}` of a message")


def _said(what: str, done: _Tally, *, same_version: bool) -> Check:
    if done.changed:
        told = f"{counted(len(done.changed), 'rollout')} not as bound: "
        return Check(what, "wrong", told + ", ".join(done.changed[:SHOWN]))
    if done.otherwise:
        told = f"{counted(len(done.otherwise), 'rollout')} scored otherwise: "
        told += ", ".join(done.otherwise[:SHOWN])
        if same_version:
            return Check(what, "wrong", told)
        return Check(what, "not re-checked", f"another version recorded them; {told}")
    graded = f"{done.graded} graded again" if done.graded else "grades taken as recorded"
    made = f"{counted(done.assertions, 'assertion')} made again"
    return Check(what, "verified", f"{counted(done.rollouts, 'rollout')}: {graded}, {made}")
