"""Command hooks: one JSON on stdin, one JSON with an explicit decision on stdout.

An exit code never decides. A hook that does not start, runs out of time, or answers anything but
such a JSON is a *failed* hook, and its `on_failure` says what follows.
"""

import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness_cli.errors import HookError
from harness_cli.records.harness import Hook
from harness_cli.runtime.hooks.moment import Moment
from harness_cli.runtime.process import Finished, run_process


@dataclass(slots=True)
class Decision:
    """What one check or one command decided."""

    outcome: Literal["allow", "rewrite", "retry", "deny", "fallback", "suppress", "failed"]
    reason: str = ""
    check: str | None = None
    calls: tuple[int, ...] | None = None
    open: bool = False
    reply: str | None = None
    tool_input: dict[str, Any] | None = None
    tool_response: str | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON a command hook writes."""

    decision: Literal["allow", "rewrite", "retry", "deny", "fallback", "suppress"]
    reason: str = ""
    reply: str | None = None
    """With `rewrite` at `before_reply`: what is said instead."""
    tool_input: dict[str, Any] | None = None
    """With `rewrite` at `before_tool`: the arguments instead."""
    tool_response: str | None = None
    """With `rewrite` at `after_tool`: what the policy is shown instead."""


class Workshop:
    """A folder with the harness's files for its commands, made on first use."""

    def __init__(self, files: Mapping[str, bytes], under: tuple[str, ...] = ("hooks/",)) -> None:
        self._files = {p: d for p, d in files.items() if p.startswith(under)}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def folder(self) -> Path:
        """Where the files lie; removed with this object."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(
                prefix="harness-", ignore_cleanup_errors=True
            )
            for name, data in self._files.items():
                path = Path(self._folder.name, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                path.chmod(0o755)
        return Path(self._folder.name)

    def close(self) -> None:
        """Remove the folder now; a later use makes it again."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def holds(self, path: str) -> bool:
        """Whether the harness has this file."""
        return path in self._files

    def argv(self, command: tuple[str, ...]) -> list[str]:
        """A command with `{python}` and files of the harness filled in."""
        folder = self.folder()
        words = [w.replace("{python}", sys.executable) for w in command]
        return [str(folder / w) if w in self._files else w for w in words]


async def run_command(hook: Hook, moment: Moment, seconds: float, workshop: Workshop) -> Decision:
    """What a command hook decides; `HookError` when it fails to."""
    if seconds <= 0:
        raise HookError("no time is left for it")
    finished = await run_process(
        workshop.argv(hook.command),
        json.dumps(stdin_of(moment), ensure_ascii=False).encode(),
        seconds=seconds,
        folder=workshop.folder(),
    )
    return _read(finished)


def stdin_of(moment: Moment) -> dict[str, Any]:
    """The JSON a command hook is given."""
    call, result = moment.call, moment.result
    given: dict[str, Any] = {
        "hook_event_name": moment.event,
        "session_id": moment.session_id,
        "harness_id": moment.harness_id,
        "request": msgspec.to_builtins(moment.request),
        "skills_loaded": moment.skills,
        "calls": [
            {"tool_name": c.name, "tool_input": c.arguments, "ok": c.result.ok}
            for c in moment.calls
        ],
    }
    if call is not None:
        given |= {"tool_name": call.name, "tool_input": call.arguments}
    if result is not None:
        given["tool_response"] = msgspec.to_builtins(result)
    if moment.answer is not None:
        given["answer"] = {
            "content": moment.answer.content,
            "tool_calls": [{"tool_name": a.name, "tool_input": a.arguments} for a in moment.asked],
            "finish_reason": moment.answer.finish_reason,
        }
    if moment.event in ("before_reply", "after_reply"):
        given["reply"] = moment.reply
    return given


def _read(finished: Finished) -> Decision:
    ended = f"exit code {finished.code}"
    if finished.problem:
        raise HookError(finished.problem)
    text = finished.stdout.strip()
    if not text:
        last = finished.stderr.strip().rsplit("\n", 1)[-1][:200]
        raise HookError(f"it wrote no decision ({ended}{': ' + last if last else ''})")
    try:
        answer = msgspec.json.decode(text, type=Answer)
    except (msgspec.ValidationError, msgspec.DecodeError) as exc:
        raise HookError(f"its output is no decision: {exc} ({ended})") from exc
    rewritten = (answer.reply, answer.tool_input, answer.tool_response)
    if answer.decision == "rewrite" and rewritten == (None, None, None):
        raise HookError("it decided `rewrite` and gave nothing to put in the place")
    return Decision(
        answer.decision,
        answer.reason,
        reply=answer.reply if answer.decision == "rewrite" else None,
        tool_input=answer.tool_input if answer.decision == "rewrite" else None,
        tool_response=answer.tool_response if answer.decision == "rewrite" else None,
    )
