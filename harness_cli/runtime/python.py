"""Tools written in Python inside the harness: one function, one bounded process a call.

A tool names its code with `_meta: {harness.python: tools/code.py:function}` beside its executor.
The function is called with the arguments by keyword and gives back JSON. It runs apart from this
program: own session, no keys in its environment, bounds on time, memory, files and output.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from harness_cli.errors import ToolError
from harness_cli.records.harness import Tool
from harness_cli.records.request import Request
from harness_cli.records.trajectory import ToolResult
from harness_cli.runtime.hooks.command import Workshop
from harness_cli.runtime.process import Finished, run_process

MARK = "\x1eharness-result\x1e"
"""Stands before the result, so that what a tool prints cannot be taken for it."""
_START = f"""\
import importlib.util, json, os, sys
given = json.load(sys.stdin)
out = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
sys.path.insert(0, os.path.dirname(os.path.abspath(given["file"])))
spec = importlib.util.spec_from_file_location("harness_tool", given["file"])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
result = getattr(module, given["function"])(**given["arguments"])
out.write({MARK!r} + json.dumps(result, ensure_ascii=False, allow_nan=False))
out.close()
"""


class PythonExecutor:
    """Runs the Python tools of a state from its own files."""

    def __init__(self, files: Mapping[str, bytes], *, seconds: float = 30.0) -> None:
        self._workshop = Workshop(files, ("tools/",))
        self._seconds = seconds

    async def call(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        request: Request,  # noqa: ARG002  a function gets its arguments and nothing else
    ) -> ToolResult:
        """The function's result; `ToolError` when it raises, prints no result or takes too long."""
        file, function = self._place(tool)
        given = {"file": file, "function": function, "arguments": arguments}
        finished = await run_process(
            [sys.executable, "-I", "-c", _START],
            json.dumps(given).encode(),
            seconds=self._seconds,
            folder=self._workshop.folder(),
        )
        return _result(tool, finished)

    def _place(self, tool: Tool) -> tuple[str, str]:
        named = str(tool.meta.get("harness.python", ""))
        file, _, function = named.rpartition(":")
        if not file or not function.isidentifier():
            raise ToolError.of(
                "unavailable", f"`{tool.name}` names no `file.py:function` in `harness.python`"
            )
        if not self._workshop.holds(file):
            raise ToolError.of("unavailable", f"`{tool.name}`: no file `{file}` in the harness")
        return file, function

    async def close(self) -> None:
        """Remove the files; every process ended with its call."""
        self._workshop.close()


def _result(tool: Tool, finished: Finished) -> ToolResult:
    if finished.timed_out:
        raise ToolError.of("timeout", f"`{tool.name}`: {finished.problem}")
    if finished.problem:
        raise ToolError.of("unavailable", f"`{tool.name}`: {finished.problem}")
    _, mark, text = finished.stdout.decode(errors="replace").partition(MARK)
    if not mark:
        said = finished.stderr.strip().rsplit("\n", 1)[-1][:200]
        raise ToolError.of("unavailable", f"`{tool.name}` broke: {said or 'it gave no result'}")
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as exc:
        raise ToolError.of("malformed", f"`{tool.name}` gave no JSON: {exc}") from exc
    content = value if isinstance(value, str) else text
    return ToolResult(ok=True, content=content, structured=value)
