"""Going on with a run: is it the same question, and what has been answered already."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness_cli.errors import Stale, UsageError
from harness_cli.evaluation.calls import Recorded
from harness_cli.records.journal import ModelRecord, ToolRecord, VerdictRecord
from harness_cli.records.run import RESPONSES, RunConfig
from harness_cli.store.journal import cut_torn_tail, scan
from harness_cli.store.runs import RunFolder

FREE = (
    "id", "started", "command", "harness_ref", "harness_commit", "dirty", "policy_settings",
    "roles", "judge_dirty",
)  # fmt: skip
"""Fields that a resume may differ in: they name the run, or (settings) how an answer travels;
what decides the answers is in the policy's id."""


class _Judging(msgspec.Struct):
    failed: int = 0


class _State(msgspec.Struct):
    state: str
    judging: _Judging | None = None

    @property
    def done(self) -> bool:
        """Not for what broke, nor where a judge's provider failed and nothing was scored."""
        silent = self.judging is not None and self.judging.failed and self.state == "unscored"
        return self.state != "errored" and not silent


class _Item(msgspec.Struct):
    item: str
    result: _State
    repeat: int = 0


@dataclass(slots=True)
class Standing:
    """What a journal holds of a run that did not end."""

    done: set[tuple[str, int]] = field(default_factory=set)
    recorded: dict[tuple[str, int], Recorded] = field(default_factory=dict)

    def of(self, item: str, repeat: int) -> Recorded | None:
        """The calls of one unfinished rollout, taken out."""
        return self.recorded.pop((item, repeat), None)


def read_standing(folder: RunFolder, *, measured: bool = False) -> Standing:
    """Cut a torn tail, then read what is done and what is half done.

    An errored item is not done: a resume asks again from the call that failed. Neither is one that
    is unscored since calls of its judge failed: those votes are asked for again. Of what is
    `measured` every finished rollout is done, and none that was under way has a past.
    """
    standing = Standing()
    if not folder.journal.exists():
        return standing
    cut_torn_tail(folder.journal)
    for line in scan(folder.journal):
        if line.kind in _KEEP:
            record = msgspec.json.decode(line.data, type=_KEEP[line.kind])
            _keep(standing.recorded.setdefault((record.item, record.repeat), Recorded()), record)
        elif line.kind == "item":
            _finish(standing, msgspec.json.decode(line.data, type=_Item), measured)
    if measured:
        standing.recorded.clear()
    return standing


def refuse_other_source(old: RunConfig) -> None:
    """Raise `UsageError` for a run that no policy answered: it cannot go on by asking one."""
    if old.rescored_of is not None:
        raise UsageError(
            f"run `{old.id}` was scored again from `{old.rescored_of}`: it makes no rollouts",
            hint=f"harness eval --resume {old.rescored_of}, then --rescore {old.rescored_of}",
        )
    if old.imported is not None:
        raise UsageError(
            f"run `{old.id}` was imported from `{old.imported.file}`: nothing of it is made here",
            hint="import the whole file, or start a new run",
        )
    if not old.fresh:
        option = "--responses" if old.policy == RESPONSES else "--replay"
        raise UsageError(
            f"run `{old.id}` took its answers from a file", hint=f"name it again: {option} FILE"
        )


def refuse_difference(old: RunConfig, new: RunConfig) -> None:
    """Raise `Stale` naming every field in which a resumed run would be another one."""
    before, now = _comparable(old), _comparable(new)
    different = [
        f"  {name}: was {_shown(before.get(name))}, is {_shown(now.get(name))}"
        for name in sorted(before | now)
        if before.get(name) != now.get(name)
    ]
    if different:
        raise Stale(
            f"run `{old.id}` cannot be resumed, it would no longer be the same run:\n"
            + "\n".join(different),
            hint="start a new run, or bring these back to what they were",
        )


_KEEP: dict[str, Any] = {"model": ModelRecord, "tool": ToolRecord, "verdict": VerdictRecord}


def _keep(recorded: Recorded, record: ModelRecord | ToolRecord | VerdictRecord) -> None:
    if not isinstance(record, VerdictRecord) and record.judge:
        recorded = recorded.votes.setdefault(record.judge, Recorded())
    match record:
        case ModelRecord():
            recorded.models[record.index] = record
        case ToolRecord():
            recorded.tools[record.index] = record
        case VerdictRecord():
            recorded.verdict = record.verdict


def _finish(standing: Standing, record: _Item, measured: bool) -> None:
    key = (record.item, record.repeat)
    if record.result.done or measured:
        standing.recorded.pop(key, None)
        standing.done.add(key)
        return
    standing.done.discard(key)
    recorded = standing.recorded.get(key)
    if recorded is not None:
        recorded.verdict = None
        for calls in (recorded, *recorded.votes.values()):
            calls.models = {i: m for i, m in calls.models.items() if m.error is None}


def _comparable(config: RunConfig) -> dict[str, Any]:
    plain = {k: v for k, v in msgspec.to_builtins(config).items() if k not in FREE}
    plain["versions"] = {"harness": plain["versions"].get("harness")}
    flat: dict[str, Any] = {}
    for name, value in plain.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{key}": inner for key, inner in value.items()})
        else:
            flat[name] = value
    return flat


def _shown(value: Any) -> str:
    text = str(value)
    return f"`{text[:12]}…`" if len(text) > 40 else f"`{text}`"
