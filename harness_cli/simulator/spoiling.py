"""Controlled corruptions of a good trajectory for reward probes: what each lowers is known.

Those of replies are `corruptions.KINDS`, put in place of the good reply. Those of the way there are
made here: by another script for the real loop where hooks have to see it, else by changing the
record of the good rollout.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import msgspec

from harness_cli.records.chat import ChatReply
from harness_cli.records.trajectory import (
    Step,
    ToolCall,
    ToolErrorKind,
    ToolResult,
    Trajectory,
)
from harness_cli.simulator.corruptions import Draft
from harness_cli.simulator.scenarios.draws import pick

LOWERED = {
    "wrong_price": ("accuracy", "effectiveness"),
    "wrong_link": ("accuracy", "effectiveness"),
    "partial": ("effectiveness",),
    "missed_comment": ("effectiveness",),
    "over_refusal": ("effectiveness",),
    "human_identity": ("accuracy", "rule_compliance"),
    "false_promise": ("accuracy", "rule_compliance"),
    "unsupported_claim": ("accuracy",),
}
"""Corruption of a reply → the rewards it lowers (labels of `corruptions`)."""
SKILLS = ("chillchat", "thanks", "greet", "general-discount", "faq-reply", "change-order")
IDLE = ("get_room_status", "get_faq", "get_order_policy")
SMALL_TALK = {
    "en": (
        "By the way I have been live since this afternoon and it is lovely to see all of you here.",
        "Make yourselves comfortable, get a cup of tea and stay with me for the evening.",
        "I read every single comment, even when I cannot answer all of them right away.",
        "It really is a nice evening and there is a lot more to come later on.",
        "Thank you for being here again, you make this room what it is.",
        "Tell me in the comments where you are watching from tonight.",
        "We are going to look at everything together, one after the other, no hurry at all.",
    ),
    "zh": (
        "我今天下午就开播了，看到这么多朋友在这里真的特别开心。",
        "大家随便坐，倒杯热茶，今天晚上就慢慢陪我聊聊天。",
        "每一条弹幕我都在看，就算没有马上回复也请大家别着急。",
        "今晚的气氛真的很好，后面还有很多内容慢慢给大家讲。",
        "谢谢大家又来到直播间，有你们这里才这么热闹。",
        "可以在弹幕里告诉我你们是从哪里来看直播的呀。",
        "我们今天一个一个慢慢看，不着急，有的是时间。",
    ),
}
"""Sentences that claim nothing."""


@dataclass(frozen=True, slots=True)
class Spoiled:
    """A corrupted trajectory, and which rewards it must have lower."""

    trajectory: Trajectory
    lowers: tuple[str, ...]
    change: str


Spoil = Callable[[Draft, Trajectory, Random], Spoiled | None]


def with_reply(good: Trajectory, reply: str) -> Trajectory:
    """The rollout had it ended in another reply."""
    last = good.steps[-1]
    said = msgspec.structs.replace(last.reply, content=reply)
    steps = (*good.steps[:-1], msgspec.structs.replace(last, reply=said))
    return msgspec.structs.replace(good, steps=steps, reply=reply)


def no_lookup(draft: Draft, good: Trajectory, draw: Random) -> Spoiled | None:  # noqa: ARG001
    """The answer without the calls it rests on."""
    gone = {c.name for c in good.calls if c.executor != "builtin"}
    if not gone & {t.name for t in draft.item.expect.tools}:
        return None
    kept = _mapped(good, lambda calls: [c for c in calls if c.executor == "builtin"])
    return Spoiled(kept, ("tool_rationality",), f"without {', '.join(sorted(gone))}")


def made_again(draft: Draft, good: Trajectory, draw: Random) -> Spoiled | None:  # noqa: ARG001
    """Every look-up is made twice more."""
    calls = [c for c in good.calls if c.executor != "builtin"]
    if not calls:
        return None
    again = [[_renumbered(c, n) for c in calls] for n in (1, 2)]
    made = _with_steps(good, again)
    return Spoiled(made, ("tool_rationality",), "each look-up made three times")


def idle_calls(draft: Draft, good: Trajectory, draw: Random) -> Spoiled | None:
    """Look-ups that nothing asked for."""
    wanted = {t.name for t in draft.item.expect.tools}
    names = [n for n in IDLE if n not in wanted]
    calls = [
        ToolCall(
            id=f"idle-{n}",
            name=name,
            arguments_raw="{}",
            arguments={},
            executor="sandbox",
            result=ToolResult(ok=True, content='{"count": 0}'),
        )
        for n, name in enumerate(draw.sample(names, 2))
    ]
    made = _with_steps(good, [calls])
    return Spoiled(made, ("tool_rationality",), f"looked up {', '.join(c.name for c in calls)}")


def bad_arguments(draft: Draft, good: Trajectory, draw: Random) -> Spoiled | None:  # noqa: ARG001
    """Calls whose arguments could not be used, before the ones that could."""
    calls = [c for c in good.calls if c.executor != "builtin"]
    if not calls:
        return None
    refused = ToolResult(
        ok=False, content="`link` is not allowed", error=ToolErrorKind.INVALID_ARGUMENTS
    )
    broken = [
        msgspec.structs.replace(
            call,
            id=f"{call.id}-bad",
            arguments={"link": "?"},
            arguments_raw='{"link": "?"}',
            result=refused,
        )
        for call in calls
    ]
    made = _with_steps(good, [broken, [_renumbered(c, 9) for c in broken]])
    return Spoiled(made, ("tool_rationality",), "called with arguments that no schema allows")


def wrong_skill(draft: Draft, good: Trajectory, draw: Random) -> Spoiled | None:
    """Another skill than the one that fits."""
    if not draft.item.expect.skills:
        return None
    other = pick(draw, [s for s in SKILLS if s not in draft.item.expect.skills])
    made = msgspec.structs.replace(good, skills_loaded=(other,))
    return Spoiled(made, ("skill_selection",), f"loaded {other}")


def every_skill(draft: Draft, good: Trajectory, draw: Random) -> Spoiled | None:  # noqa: ARG001
    """Everything that could be loaded was."""
    loaded = tuple(dict.fromkeys((*good.skills_loaded, *SKILLS)))
    made = msgspec.structs.replace(good, skills_loaded=loaded)
    return Spoiled(made, ("skill_selection",), f"loaded {len(loaded)} skills")


def long_winded(draft: Draft, good: Trajectory, draw: Random) -> Spoiled | None:
    """The same answer in a minute of small talk."""
    if draft.silent:
        return None
    chinese = "zh" in draft.item.tags
    talk = list(SMALL_TALK["zh" if chinese else "en"])
    draw.shuffle(talk)
    said = ("" if chinese else " ").join([draft.reply(), *talk])
    return Spoiled(with_reply(good, said), ("length",), "small talk around it")


PROCESS: Mapping[str, Spoil] = {
    "no_lookup": no_lookup,
    "made_again": made_again,
    "idle_calls": idle_calls,
    "bad_arguments": bad_arguments,
    "wrong_skill": wrong_skill,
    "every_skill": every_skill,
    "long_winded": long_winded,
}
"""Corruption of the way there → what makes it, or None where it does not fit."""


def broken_rules(draft: Draft, opening: ChatReply) -> dict[str, tuple[list[ChatReply], str]]:
    """Scripts for the real loop whose answers its hooks object to: name → (answers, what it is)."""
    said = ChatReply(content=draft.reply())
    marked = ChatReply(content=f"# Answer\n- {draft.reply()}\n- **{draft.reply()}**")
    return {
        "unloaded_reply": ([said, opening, said], "a reply before any skill was loaded"),
        "marked_up": ([opening, marked, said], "a reply with headings and lists"),
        "never_clean": ([opening, marked, marked, marked, marked], "marked up to the end"),
    }


def _mapped(
    good: Trajectory, change: Callable[[Sequence[ToolCall]], Sequence[ToolCall]]
) -> Trajectory:
    steps = tuple(
        msgspec.structs.replace(step, calls=tuple(change(step.calls))) for step in good.steps
    )
    return msgspec.structs.replace(good, steps=steps)


def _with_steps(good: Trajectory, more: Sequence[Sequence[ToolCall]]) -> Trajectory:
    """Steps with these calls before the last one."""
    new = [
        Step(index=0, messages=(), reply=ChatReply(finish_reason="tool_calls"), calls=tuple(calls))
        for calls in more
    ]
    steps = [*good.steps[:-1], *new, good.steps[-1]]
    numbered = [msgspec.structs.replace(s, index=n) for n, s in enumerate(steps)]
    return msgspec.structs.replace(good, steps=tuple(numbered))


def _renumbered(call: ToolCall, number: int) -> ToolCall:
    return msgspec.structs.replace(call, id=f"{call.id}-{number}")
