"""A policy that writes the viewer's comment of a draft and judges whether the draft is consistent.

What it answers is data: one JSON object with the expected fields, or the draft is thrown away.
"""

import json
from dataclasses import replace
from typing import Any

import msgspec

from harness_cli.errors import HarnessError, ProviderError
from harness_cli.models.base import Deadline, Policy
from harness_cli.records.chat import ChatRequest
from harness_cli.simulator.robustness.drafts import Draft

SECONDS = 120.0
LONGEST = 300
"""Characters of a comment; viewers do not write more."""

WRITE = """
You write comments of viewers in a live shopping room. Below is a seed as JSON. Say what its
`comment` asks in other words, as one viewer would type it, in the same language. Keep every number
and name that stands in `keep`. Do not answer the question.
Answer with one JSON object: {"comment": "…"}
""".strip()
CHECK = """
You check test items of a live shopping room. Below is one as JSON: a viewer's comment, the tool
that serves it with what it returns, the instructions, and the reference reply. Is the comment a
natural question that this tool answers, and does the reply answer it from the return and keep the
instructions? Answer with one JSON object: {"consistent": true or false, "why": "…"}
""".strip()


class NotUsable(Exception):
    """A draft is thrown away for what the policy made of it or said about it."""


class Author:
    """One policy in the role of the task generator."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.policy_id = policy.id

    async def expanded(self, draft: Draft) -> Draft:
        """The draft with a comment in the policy's words. Raises `NotUsable`."""
        comment = draft.item.request.comments[0]
        keep = sorted({str(v) for _, given in draft.calls for v in given.values()})
        keep = [k for k in keep if k in comment.text]
        seed = {"comment": comment.text, "language": _language(draft), "keep": keep}
        words = await self._field(WRITE, seed, "comment", str)
        if not words.strip() or len(words) > LONGEST:
            raise NotUsable("the comment is empty or too long")
        if any(k not in words for k in keep):
            raise NotUsable("the comment lost what the tool needs")
        request = msgspec.structs.replace(
            draft.item.request, comments=(msgspec.structs.replace(comment, text=words.strip()),)
        )
        item = msgspec.structs.replace(draft.item, request=request)
        made = replace(draft, item=item, key=f"{words}/{draft.key}")
        if not await self._field(CHECK, _shown(made), "consistent", bool):
            raise NotUsable("judged inconsistent")
        return made

    async def close(self) -> None:
        """Give the policy's connections back."""
        await self._policy.close()

    async def _field(self, task: str, data: Any, name: str, kind: type[Any]) -> Any:
        text = json.dumps(data, ensure_ascii=False)
        messages = ({"role": "system", "content": task}, {"role": "user", "content": text})
        try:
            answer = await self._policy.complete(
                ChatRequest(messages=messages, max_tokens=1024), Deadline.within(SECONDS)
            )
        except ProviderError as exc:
            raise HarnessError(f"`{self._policy.name}` did not answer: {exc}") from exc
        found = _object(answer.content or "").get(name)
        if not isinstance(found, kind):
            raise NotUsable("the policy's answer could not be read")
        return found


def _shown(draft: Draft) -> dict[str, Any]:
    item = draft.item
    return {
        "comment": item.request.comments[0].text,
        "tool": item.expect.tools[0].name,
        "returns": item.tool_returns,
        "instructions": item.overlay.instructions,
        "reply": draft.reply,
    }


def _language(draft: Draft) -> str:
    return "Chinese" if "zh" in draft.item.tags else "English"


def _object(text: str) -> dict[str, Any]:
    """The JSON object of an answer, a code fence around it allowed; {} when there is none."""
    start, end = text.find("{"), text.rfind("}")
    try:
        found = json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
