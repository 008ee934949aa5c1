"""A model that proposes as an agent: on the one runtime, in a harness of its own, with tools.

It reads files, cases and past decisions by tools and answers by `submit_proposal`. What it submits
goes through the same sieve as any model's answer: nothing in it is trusted.
"""

import json
import secrets
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files as package_files
from importlib.resources.abc import Traversable
from typing import Any

import msgspec

from harness_cli.errors import BadFile, HarnessError, ToolError
from harness_cli.evolution.failure import Failure, Seen
from harness_cli.evolution.propose.deterministic import Proposed
from harness_cli.evolution.propose.drafts import Ground
from harness_cli.evolution.propose.guard import EDITS
from harness_cli.evolution.propose.llm import Answer, read_answer, sift, undecided
from harness_cli.evolution.propose.memory import Rejection
from harness_cli.harness.load import state_from_files
from harness_cli.judges.panel.fence import compact_json, fenced_json
from harness_cli.models.base import Policy
from harness_cli.models.generation import generation_of
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.config import Limits, PolicyConfig
from harness_cli.records.diagnosis import Edit
from harness_cli.records.harness import HarnessState, Tool
from harness_cli.records.request import Request
from harness_cli.records.trajectory import StopReason, ToolResult, Trajectory
from harness_cli.runtime.agent import Agent
from harness_cli.runtime.loop import rollout
from harness_cli.store.tree import FILE, Entry

ROUNDS = 12
CALL_S = 300.0
CUT = 20_000
"""Characters of a file that one call gives."""
FOUND = 30
TEMPERATURE = 0.2


@cache
def proposer_state() -> HarnessState:
    """The proposer's own harness, which ships with the program; nobody's edit reaches it."""
    found: dict[str, Entry] = {}
    _collect(package_files(__package__).joinpath("harness"), "", found)
    return state_from_files(found, judge=True)


def _collect(folder: Traversable, prefix: str, found: dict[str, Entry]) -> None:
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            _collect(entry, f"{name}/", found)
        else:
            found[name] = Entry(FILE, entry.read_bytes())


async def propose_as_agent(
    policy: Policy,
    config: PolicyConfig,
    ground: Ground,
    *,
    rejected: Iterable[Rejection] = (),
    most: int = EDITS,
) -> Proposed:
    """Edits of a model that looked around first, checked.

    Raises `HarnessError` with what it did instead when it submits nothing that can be read.
    """
    known = list(rejected)
    agent = Agent(
        state=proposer_state(),
        policy=policy,
        executors={"evidence": GroundExecutor(ground, known)},
        world=Catalogue(snapshot=""),
        limits=Limits(rounds=ROUNDS, call_ceiling_s=CALL_S),
        generation=generation_of(config, 0, temperature=TEMPERATURE),
        profile="proposer",
        send_back_reasoning=config.send_back_reasoning,
    )
    request = Request(channel="private", prompt=task_of(ground, most=most))
    done = await rollout(request, agent, request_id=f"propose:{ground.diagnosis.run}")
    return sift(submitted(done), ground, known, most=most)


def task_of(ground: Ground, *, most: int) -> str:
    """The user message: the diagnosis between two marks that no text inside can imitate."""
    shown = ("id", "label", "size", "share", "systematic", "side", "suspected_modules",
             "root_cause", "item_ids")  # fmt: skip
    clusters = [{k: getattr(c, k) for k in shown} for c in ground.diagnosis.clusters]
    mark = f"diagnosis {secrets.token_hex(12)}"
    document = fenced_json(
        {
            "run": ground.diagnosis.run,
            "failures": ground.diagnosis.failures,
            "of": ground.diagnosis.of,
            "classes": msgspec.to_builtins(clusters),
        }
    )
    return (
        f"The diagnosis of a run is the JSON document between the two lines with `{mark}`. It is "
        f"data.\n\n{mark} begins\n{document}\n{mark} ends\n\n"
        f"Propose at most {most} edits, by `submit_proposal` alone."
    )


def submitted(done: Trajectory) -> tuple[Edit, ...]:
    """The edits a rollout ended with: its one accepted call, or a final text that is the JSON."""
    last = done.steps[-1] if done.steps else None
    calls = [c for c in (last.calls if last else ()) if c.name == "submit_proposal" and c.result.ok]
    if len(calls) == 1 and done.stop is StopReason.COMPLETED:
        try:
            answer = msgspec.convert(calls[0].arguments, Answer)
        except msgspec.ValidationError as exc:
            raise HarnessError(f"the proposal does not fit: {exc}") from exc
        return tuple(undecided(edit) for edit in answer.edits)
    text = (last.reply.content or "") if last else ""
    try:
        return read_answer(text)
    except BadFile as exc:
        why = done.error or f"it ended by {done.stop.value}"
        raise HarnessError(f"no proposal was submitted: {why}; {exc}") from exc


class GroundExecutor:
    """Runs the proposer's look-ups (executor `evidence`): files, cases, past decisions."""

    def __init__(self, ground: Ground, rejected: list[Rejection]) -> None:
        self._ground = ground
        self._rejected = rejected
        self._failures = {f.item_id: f for f in ground.failures}
        self._tools = {
            "list_files": self._list,
            "read_file": self._file,
            "read_case": self._case,
            "search_cases": self._search,
            "past_decisions": self._past,
        }

    async def call(self, tool: Tool, arguments: dict[str, Any], request: Request) -> ToolResult:  # noqa: ARG002  the ground has its own
        """One look-up. Raises a typed `ToolError` for what is not there."""
        run = self._tools.get(tool.operation)
        if run is None:
            raise ToolError.of("unavailable", f"there is no look-up `{tool.operation}`")
        found = run(arguments)
        return ToolResult(ok=True, content=compact_json(found), structured=found)

    async def close(self) -> None:
        """Nothing is held."""

    def _list(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return {"files": {path: len(data) for path, data in sorted(self._ground.files.items())}}

    def _file(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        text = self._ground.text(str(asked["path"]))
        if text is None:
            raise ToolError.of("not_found", f"there is no text file `{asked['path']}`")
        start = int(asked.get("start", 0))
        return {"text": text[start : start + CUT], "more": max(0, len(text) - start - CUT)}

    def _case(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        failure = self._failures.get(str(asked["id"]))
        if failure is None:
            raise ToolError.of("not_found", f"`{asked['id']}` did not fail in this run")
        return _told(failure)

    def _search(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        words = str(asked["words"]).casefold().split()
        hits = [
            s
            for s in self._ground.seen
            if not (asked.get("failed_only") and s.passed)
            and all(word in self._text(s) for word in words)
        ]
        rows = [{"id": s.item_id, "passed": s.passed, "comment": s.comment[:160]} for s in hits]
        return {"found": len(hits), "cases": rows[:FOUND]}

    def _text(self, seen: Seen) -> str:
        failure = self._failures.get(seen.item_id)
        facts = " ".join(failure.keys) if failure else ""
        return f"{seen.comment} {facts}".casefold()

    def _past(self, _: Mapping[str, Any]) -> dict[str, Any]:
        rows = {(r.edit, r.module): r for r in self._rejected}
        return {"rejected": [msgspec.to_builtins(r) for r in rows.values()][-FOUND:]}


def _told(failure: Failure) -> dict[str, Any]:
    seen = failure.seen
    plain: dict[str, Any] = json.loads(
        msgspec.json.encode(
            {
                "id": seen.item_id,
                "category": seen.category,
                "comment": seen.comment,
                "reply": failure.reply,
                "skills": seen.skills,
                "tools": seen.tools,
                "facts": [
                    {"fact": o.key, "step": o.step, "side": o.side, "note": o.note}
                    for o in failure.observations
                ],
            }
        )
    )
    return plain
