"""Which text of a rendered conversation the policy generated: spans *tool* and *reply*.

What is trained is what a rollout samples (docs/adr/0013): everything behind the generation prompt
up to and with the end token. The newline behind the end token is the environment's, and so is an
empty think block, which the prompt supplies where thinking is off. Everything else is masked.

    P_i   the conversation before turn i, with the generation prompt: what the policy was shown
    R_i   the conversation up to turn i
    marks what the template itself says is generated

A turn begins where P_i ends. It ends with its mark, where the template has marks that can be
trusted; else with R_i, where P_i and R_i are prefixes of the whole (the prefix difference). Where
neither holds there is no answer, and `MaskError` says why. Offsets are characters of the text.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from harness_cli.errors import MaskError
from harness_cli.models.chat_template import ChatTemplate, Mark, Tools
from harness_cli.models.template_messages import reasoning_of
from harness_cli.records.chat import Message
from harness_cli.training.spoken import check_spoken

Kind = Literal["tool", "reply"]
END: Final = re.compile(r"(?:<[|｜][^<>\s]*[|｜]>|</s>|<end_of_turn>|<turn\|>)(\s*)$")
"""An end token, and the white space that a template writes behind it."""
EMPTY_THINK: Final = re.compile(r"\s*(?:<think>)?\s*</think>\s*")
OPENED: Final = re.compile(r"<think>\s*$")
THOUGHT: Final = re.compile(
    r"\s*(?:<think>)?.*?</think>\s*|<\|channel\|>analysis<\|message\|>.*?<\|end\|>", re.DOTALL
)
"""The reasoning at the head of a turn: tags as Qwen, GLM and DeepSeek write them, or harmony's."""


@dataclass(frozen=True, slots=True)
class Span:
    """What one assistant turn generated: `text[start:end]`."""

    start: int
    end: int
    kind: Kind
    message: int
    """Position of the turn in the conversation."""
    thought: int
    """End of its reasoning: `text[start:thought]`; equal to `start` where there is none."""
    closed: bool
    """It ends with an end token, so that whoever learns it learns to stop."""
    same_context: bool
    """The text before it is what a rollout's policy was shown. A template that drops earlier
    reasoning shows another one."""


@dataclass(frozen=True, slots=True)
class Segments:
    """A rendered conversation and its spans, in order; what lies in none is masked."""

    text: str
    spans: tuple[Span, ...]
    method: Literal["marks", "prefix"]
    doubt: str = ""
    """Why the template's own marks were not taken, where it has some."""

    def trained(self) -> list[str]:
        """The text of each span."""
        return [self.text[s.start : s.end] for s in self.spans]


@dataclass(frozen=True, slots=True)
class _Asked:
    template: ChatTemplate
    messages: Sequence[Message]
    tools: Tools | None
    turns: tuple[int, ...]
    """The turns that are to be found."""
    unfinished: bool
    text: str


def segments(
    template: ChatTemplate,
    messages: Sequence[Message],
    tools: Tools | None = None,
    *,
    turns: Collection[int] | None = None,
    unfinished: bool = False,
) -> Segments:
    """The spans of the assistant turns of a conversation, or of those in `turns` alone.

    `unfinished`: the last answer was cut off (finish reason `length`), so the end token that the
    template writes was never sampled. Raises `MaskError` where it is in doubt what was generated.
    """
    spoken = [i for i, m in enumerate(messages) if m.get("role") == "assistant"]
    wanted = tuple(i for i in spoken if turns is None or i in turns)
    if not wanted:
        raise MaskError("the conversation has no assistant turn to train on")
    text = template.render(messages, tools)
    asked = _Asked(template, messages, tools, wanted, unfinished, text)
    doubt = ""
    if template.marked:
        try:
            return Segments(text, _by_marks(asked, spoken), "marks")
        except MaskError as exc:
            doubt = str(exc)
    try:
        return Segments(text, _by_prefix(asked), "prefix", doubt)
    except MaskError as exc:
        marks = f"its marks: {doubt}; " if doubt else "it has no generation marks; "
        raise MaskError(
            f"template `{template.name}`: {marks}prefix difference: {exc}",
            hint="use the model's training template, or drop what the template rewrites",
        ) from exc


def _by_marks(asked: _Asked, spoken: Sequence[int]) -> tuple[Span, ...]:
    text, marks = asked.template.marks(asked.messages, asked.tools)
    if text != asked.text:
        raise MaskError("with marks the template renders another text")
    if len(marks) != len(spoken):
        raise MaskError(f"{len(marks)} marks for {len(spoken)} assistant turns")
    of_turn = dict(zip(spoken, marks, strict=True))
    return tuple(_marked_span(asked, i, of_turn[i]) for i in asked.turns)


def _marked_span(asked: _Asked, turn: int, mark: Mark) -> Span:
    """A turn by its mark: the generation prompt that a mark may hold is taken off its head."""
    start, end = mark
    shown, whole = _prompt_of(asked, turn, asked.text)
    if 0 <= shown <= end:
        between = asked.text[shown:start]
        if between.strip() and not EMPTY_THINK.fullmatch(between):
            raise MaskError(f"the mark of turn {turn} leaves out `{between[:40]}`")
        span = _span(asked, turn, max(shown, start), end, same_context=whole)
    else:
        span = _span(asked, turn, _behind_prompt(asked, turn, mark), end, same_context=False)
    _check_as_sampled(asked, span)
    return span


def _check_as_sampled(asked: _Asked, span: Span) -> None:
    """Raise `MaskError` where a turn reads otherwise than when it was the last one.

    So gpt-oss's thinking before a call is dropped once a final answer follows, and `<|return|>`
    becomes `<|end|>`: text that no rollout samples.
    """
    turn = span.message
    if turn == len(asked.messages) - 1:
        return
    then = asked.template.render(asked.messages[: turn + 1], asked.tools)
    shown, _ = _prompt_of(asked, turn, then)
    words = asked.text[span.start : span.end].strip()
    sampled = then[: _sampled_end(then, max(shown, 0), len(then))]
    if shown >= 0:
        alike = sampled[shown:].strip() == words
    else:  # who speaks first was shown nothing that a template would render
        alike = turn == 0 and sampled.strip().endswith(words)
    if not alike:
        raise MaskError(f"turn {turn} is rendered otherwise once more follows")


def _by_prefix(asked: _Asked) -> tuple[Span, ...]:
    found = []
    for turn in asked.turns:
        start, whole = _prompt_of(asked, turn, asked.text)
        if start < 0:
            raise MaskError(f"what turn {turn} was shown is not how the whole begins")
        upto = asked.template.render(asked.messages[: turn + 1], asked.tools)
        if not asked.text.startswith(upto):
            raise MaskError(f"turn {turn} is rendered otherwise once more follows")
        found.append(_span(asked, turn, start, len(upto), same_context=whole))
    return tuple(found)


def _prompt_of(asked: _Asked, turn: int, text: str) -> tuple[int, bool]:
    """Length of what the policy was shown before a turn, where `text` begins with it.

    -1 where it does not, or where the template cannot render what comes before. False beside it
    where the prompt opens a think block that the history never has (DeepSeek).
    """
    try:
        prompt = asked.template.render(asked.messages[:turn], asked.tools, prompt=True)
    except MaskError:
        return -1, False
    for shown in (prompt + asked.template.empty_think, prompt):
        if text.startswith(shown):
            return len(shown), True
    closed = OPENED.sub("", prompt)
    return (len(closed) if closed != prompt and text.startswith(closed) else -1), False


def _behind_prompt(asked: _Asked, turn: int, mark: Mark) -> int:
    """Where a turn begins when what came before it is rendered otherwise by now.

    The generation prompt (`<|im_start|>assistant\\n`) is looked for at the head of the mark: before
    it, across it, or within.
    """
    added = _generation_prompt(asked, turn)
    for words in (added + asked.template.empty_think, added, OPENED.sub("", added)):
        for inside in range(len(words) + 1):
            at = mark[0] + inside - len(words)
            if (
                words
                and at >= 0
                and asked.text.startswith(words, at)
                and at + len(words) <= mark[1]
            ):
                return at + len(words)
    raise MaskError(f"the mark of turn {turn} does not begin at the generation prompt")


def _generation_prompt(asked: _Asked, turn: int) -> str:
    """What asking for an answer adds to the conversation before a turn."""
    for before in (asked.messages[:turn], [{"role": "user", "content": "?"}]):
        try:
            base = asked.template.render(before, asked.tools)
            prompt = asked.template.render(before, asked.tools, prompt=True)
        except MaskError:
            continue
        if prompt.startswith(base):
            return prompt[len(base) :]
    return ""


def _span(asked: _Asked, turn: int, start: int, end: int, *, same_context: bool) -> Span:
    """A turn's span, trimmed to what is sampled and checked to say what its message says."""
    text, message = asked.text, asked.messages[turn]
    end = _sampled_end(text, start, end)
    if asked.unfinished and turn == len(asked.messages) - 1:
        end = _cut_end(text, start, end, message)
    thought = start
    if reasoning_of(message) or "</think>" in str(message.get("content")):
        found = THOUGHT.match(text, start, end)
        thought = found.end() if found else start
    else:
        empty = EMPTY_THINK.match(text, start, end)
        start = thought = empty.end() if empty else start
    if start >= end:
        raise MaskError(f"turn {turn} renders to nothing")
    check_spoken(text[start:end], message, turn)
    return Span(
        start=start,
        end=end,
        kind="tool" if message.get("tool_calls") else "reply",
        message=turn,
        thought=thought,
        closed=END.search(text, start, end) is not None,
        same_context=same_context,
    )


def _sampled_end(text: str, start: int, end: int) -> int:
    """The end of a turn without the white space behind its end token."""
    found = END.search(text, start, end)
    return end if found is None else found.start(1)


def _cut_end(text: str, start: int, end: int, message: Message) -> int:
    """The end of what an answer said before it was cut off."""
    said = str(message.get("content") or "").strip() or reasoning_of(message).strip()
    at = text.rfind(said, start, end) if said else -1
    if at < 0:
        raise MaskError("the answer was cut off, and what it said is not in the rendered text")
    return at + len(said)
