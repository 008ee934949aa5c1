"""Given answers, scored without a policy: `harness eval EVALSET --responses FILE`."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness_cli.errors import BadFile
from harness_cli.records.canonical import sha256
from harness_cli.records.chat import ChatReply
from harness_cli.records.item import Item
from harness_cli.records.reader import parse_json, read_text
from harness_cli.records.trajectory import Step, StopReason, Trajectory

PROMPT = "prompt:"


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the file: `{"id", "reply"}`, or `{"prompt", "response"}` as IFEval has them."""

    id: str = ""
    """The item's."""
    reply: str | None = None
    repeat: int = 0
    prompt: str | None = None
    """In place of the id: the words of a bare item."""
    response: str | None = None


@dataclass(frozen=True, slots=True)
class Responses:
    """The answers of a file, by item and repeat."""

    id: str
    """`responses@` and 12 hex digits of the file: stands for a policy's id."""
    replies: dict[tuple[str, int], str]
    """By item id, or by `prompt:` and the words of a bare item, and repeat."""

    @classmethod
    def read(cls, path: Path) -> "Responses":
        """JSONL of `Response`s. Raises `BadFile` with the line of what is wrong."""
        text = read_text(path)
        replies: dict[tuple[str, int], str] = {}
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            where = f"{path.name}:{number}"
            response = parse_json(line, Response, name=where)
            key, said = _key_and_reply(response, where)
            if (key, response.repeat) in replies:
                raise BadFile(f"{where}: a second answer to `{key[:80]}`")
            replies[key, response.repeat] = said
        return cls(f"responses@{sha256(text.encode())[:12]}", replies)

    def trajectory(self, item: Item, repeat: int) -> Trajectory:
        """A rollout of which only the reply is known; errored where no answer was given."""
        reply = self.replies.get((item.id, repeat))
        if reply is None and item.request.prompt is not None:
            reply = self.replies.get((PROMPT + item.request.prompt, repeat))
        missing = reply is None
        step = Step(index=0, messages=(), reply=ChatReply(content=reply, cached=True))
        return Trajectory(
            request_id=f"{item.id}#{repeat}",
            item_id=item.id,
            repeat=repeat,
            agent="bare",
            policy_id=self.id,
            steps=() if missing else (step,),
            reply=reply or "",
            channel=item.request.channel,
            stop=StopReason.ERROR if missing else StopReason.COMPLETED,
            error="responses: no answer to this item was given" if missing else None,
        )


def _key_and_reply(response: Response, where: str) -> tuple[str, str]:
    key = response.id or (PROMPT + response.prompt if response.prompt is not None else "")
    said = response.reply if response.reply is not None else response.response
    if not key or said is None:
        raise BadFile(
            f"{where}: neither `id` and `reply` nor `prompt` and `response`",
            hint='{"id": "item-0001", "reply": "…"}',
        )
    return key, said
