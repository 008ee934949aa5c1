"""Preference pairs from fail → pass flips between two runs of the same items.

A pair is the first turn in which the two rollouts differ: what came before is the prompt, the turn
of the rollout that passed is chosen, that of the one that failed is rejected. So a completion is
one turn of the policy and never holds a tool's words, which a preference loss would train. Where
the two were made in different augmented states, what was rejected is said in the chosen one's
names.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.errors import HarnessError
from harness_cli.harness.tools import offered
from harness_cli.models.template_messages import REASONING
from harness_cli.records.chat import Message
from harness_cli.records.run import RunConfig
from harness_cli.records.training import DataCard, LeftOut, PreferenceRow, Provenance
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import ItemResult
from harness_cli.store.project import Project
from harness_cli.store.runs import Key, RunFolder
from harness_cli.training.conversation import conversation_of, plain, pruned
from harness_cli.training.data_set import counted_reasons, write_data_set
from harness_cli.training.readings import PREFS
from harness_cli.training.recorded_runs import origin, refuse_other_items, usable
from harness_cli.training.rejection import not_its_own
from harness_cli.training.run_states import RunStates, Under, run_states
from harness_cli.training.students import tools_column

_json = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs."""

    run: RunFolder
    config: RunConfig
    states: RunStates
    results: dict[Key, ItemResult]


@dataclass(slots=True)
class Pairs:
    """What two runs give."""

    rows: list[PreferenceRow] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    candidates: int = 0
    states: dict[str, str] = field(default_factory=dict)
    """Augmented states of the pairs → their ids."""

    def leave(self, key: Key, reason: str, detail: str = "") -> None:
        """No pair of this item, and why."""
        out = LeftOut(item=key.item, candidate=key.repeat, reason=reason, detail=detail)
        self.left_out.append(out)


def write_prefs(
    project: Project, before: RunFolder, after: RunFolder, folder: Path, *, both: bool = False
) -> DataCard:
    """Pairs of two runs as a data set; with `both`, pass → fail gives pairs as well.

    Raises `UsageError` for runs that are no training data or not of the same items, `HarnessError`
    where there is no pair.
    """
    sides = [_side(project, run) for run in (before, after)]
    refuse_other_items([s.config for s in sides], [s.states.digest for s in sides])
    found = pairs_of(*sides, both=both)
    reasons = counted_reasons(found.left_out)
    if not found.rows:
        said = ", ".join(f"{n} × {reason}" for reason, n in reasons.items())
        raise HarnessError(f"no pair in {found.candidates} rollouts: {said}")
    last = sides[1].config
    card = DataCard(
        kind="prefs",
        evalset=last.evalset.name,
        split=str(last.evalset.split),
        evalset_digest=last.evalset.digest,
        catalogue_digest=last.evalset.catalogue_digest,
        harness=last.harness_id,
        states=dict(sorted(found.states.items())),
        policy=last.policy_id,
        judge=last.judge_id,
        runs=(before.id, after.id),
        job={"both": both},
        candidates=found.candidates,
        left_out=reasons,
        notes=_notes(sides, found),
    )
    return write_data_set(folder, card, {"prefs.jsonl": found.rows}, found.left_out, reading=PREFS)


def pairs_of(before: Side, after: Side, *, both: bool = False) -> Pairs:
    """The pairs of two runs, sorted by item; what gives none is counted by its reason."""
    found = Pairs()
    flips: list[tuple[Key, Side, Side]] = []
    for key in sorted(before.results.keys() | after.results.keys()):
        found.candidates += 1
        states = [side.results[key].state for side in (before, after) if key in side.results]
        if states == ["failed", "passed"]:
            flips.append((key, before, after))
        elif states == ["passed", "failed"] and both:
            flips.append((key, after, before))
        else:
            found.leave(key, _why_none(states))
    wanted = {key for key, _, _ in flips}
    shown = {
        side.run.id: {
            Key(str(t.item_id), t.repeat): t for t in side.run.trajectories(wanted.__contains__)
        }
        for side in (before, after)
    }
    for key, worse, better in flips:
        _pair(found, key, worse, better, shown[worse.run.id][key], shown[better.run.id][key])
    return found


def _pair(
    found: Pairs, key: Key, worse: Side, better: Side, failed: Trajectory, passed: Trajectory
) -> None:
    for name, trajectory in (("rejected", failed), ("chosen", passed)):
        why = not_its_own(trajectory)
        if why is not None:
            found.leave(key, f"{name}: {why[0]}", why[1])
            return
    there, here = worse.states.of(key.item), better.states.of(key.item)
    alike = there.map_sha256 == here.map_sha256
    moved = failed if alike else here.from_base(there.in_base(failed))
    one = plain(pruned(conversation_of(moved)).messages)
    other = plain(pruned(conversation_of(passed)).messages)
    at = _first_difference(one, other)
    if at is None:
        found.leave(key, "the same conversation")
        return
    rejected, chosen = one[at], other[at]
    tools = tools_column(offered(here.state))
    missing = {c["function"]["name"] for c in rejected.get("tool_calls", ())}
    missing -= {t["function"]["name"] for t in tools or ()}
    if missing:
        found.leave(key, "a tool that the chosen prompt does not offer", ", ".join(sorted(missing)))
        return
    found.states.update({u.name: u.state.id for u in (there, here) if u.given is not None})
    same = one[:at] == other[:at] and tools == tools_column(offered(there.state))
    found.rows.append(
        PreferenceRow(
            id=f"{key.item}#{key.repeat}",
            prompt=tuple(other[:at]),
            chosen=(chosen,),
            rejected=(rejected,),
            tools=_json(tools).decode() if tools else "",
            same_prompt=same,
            chosen_from=_origin(better, key, here),
            rejected_from=_origin(worse, key, there),
        )
    )


def _origin(side: Side, key: Key, under: Under) -> Provenance:
    return origin(
        side.config,
        side.results[key],
        state=under.name,
        harness=under.state.id,
        map_sha256=under.map_sha256,
    )


def _first_difference(one: Sequence[Message], other: Sequence[Message]) -> int | None:
    """Position of the first assistant turns that differ; what else differs is not compared."""
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a["role"] != b["role"]:
            return None
        if a["role"] == "assistant" and _said(a) != _said(b):
            return at
    return None


def _said(message: Message) -> Any:
    """A turn without what is not said: reasoning, and the ids of calls."""
    made = {k: v for k, v in message.items() if k not in (*REASONING, "tool_calls")}
    return made, [call["function"] for call in message.get("tool_calls", ())]


def _why_none(states: Sequence[str]) -> str:
    if len(states) < 2:
        return "only in one run"
    for broken in ("errored", "unscored"):
        if broken in states:
            return broken
    return f"both {states[0]}" if states[0] == states[1] else "passed, then failed"


def _side(project: Project, run: RunFolder) -> Side:
    config = usable(project, run)
    results = {Key(r.item_id, r.repeat): r for r in run.results()}
    return Side(run, config, run_states(project, config), results)


def _notes(sides: Sequence[Side], found: Pairs) -> tuple[str, ...]:
    notes = []
    if sides[0].config.judge_id != sides[1].config.judge_id:
        notes.append("The two runs were judged by different judges.")
    other = sum(not row.same_prompt for row in found.rows)
    if other:
        notes.append(f"{other} of {len(found.rows)} pairs have `same_prompt: false`.")
    return tuple(notes)
