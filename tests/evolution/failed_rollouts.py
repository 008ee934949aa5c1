"""Made-up rollouts for diagnosis and proposals: small, real records, nothing mocked."""

import json

from harness_cli.evolution.failure import Evidence
from harness_cli.records.chat import ChatReply
from harness_cli.records.item import Expect, Item
from harness_cli.records.request import Comment, Request
from harness_cli.records.trajectory import Step, StopReason, ToolCall, ToolResult, Trajectory
from harness_cli.records.verdict import ItemResult


def call(name, arguments=None, structured=None, ok=True, error=None, raw=None):
    arguments = {} if arguments is None and raw is None else arguments
    return ToolCall(
        id=f"c-{name}",
        name=name,
        arguments_raw=raw if raw is not None else json.dumps(arguments),
        arguments=arguments,
        result=ToolResult(
            ok=ok, content=json.dumps(structured or {}), structured=structured, error=error
        ),
    )


def evidence(
    item_id,
    comment,
    *,
    calls=(),
    reply="",
    state="failed",
    expect=None,
    stop=StopReason.COMPLETED,
    category="product-qa",
    hooks=(),
    accuracy=1.0,
    effectiveness=0.0,
    findings=(),
    tags=(),
    item=True,
    **trajectory,
):
    """One item; every call is its own step, the reply is the last step."""
    steps = [Step(index=i, messages=(), reply=ChatReply(), calls=(c,)) for i, c in enumerate(calls)]
    steps.append(Step(index=len(steps), messages=(), reply=ChatReply(content=reply)))
    skills = tuple(c.arguments["name"] for c in calls if c.name == "load_skill" and c.arguments)
    made = Trajectory(
        request_id=item_id,
        item_id=item_id,
        steps=tuple(steps),
        hooks=tuple(hooks),
        skills_loaded=skills,
        reply=reply,
        stop=stop,
        **trajectory,
    )
    return Evidence(
        result=ItemResult(
            item_id=item_id,
            category=category,
            tags=tags,
            state=state,
            scores={"accuracy": accuracy, "effectiveness": effectiveness},
            reply=reply,
            stop=stop.value,
            findings=tuple(findings),
            skills_loaded=skills,
            tools_called=tuple(c.name for c in calls if c.name != "load_skill"),
        ),
        trajectory=made,
        item=Item(
            id=item_id,
            category=category,
            request=Request(comments=(Comment(viewer="v", text=comment),)),
            expect=expect or Expect(),
        )
        if item
        else None,
    )


def skill(name):
    return call("load_skill", {"name": name})
