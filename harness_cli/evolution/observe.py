"""Model-free facts about a failed item: what was expected, what happened, who is at fault.

Every fact cites the step where it shows. Expectations are read of the split that was diagnosed
(never of a sealed one, which `diagnose` refuses); without the items the trajectory and the judge's
findings speak alone.
"""

from collections.abc import Iterable, Iterator

from harness_cli.evolution.failure import Evidence, Failure, Observation, Seen, comment_of
from harness_cli.evolution.observe_steps import last_step, observe_steps
from harness_cli.evolution.said import find_value, says
from harness_cli.records.item import Expect
from harness_cli.records.trajectory import StopReason
from harness_cli.records.verdict import ItemResult
from harness_cli.runtime.hooks.check_text import language

RANK = (
    "errored", "unscored", "tool_not_offered", "skill_unknown", "loop", "over_refusal",
    "missed_refusal", "missed_clarification", "needless_clarification", "wrong_language",
    "needless_transfer", "over_action", "tool_error", "malformed_call", "hook_failed",
    "skill_not_loaded", "wrong_skill", "tool_not_called", "wrong_arguments", "wrong_order",
    "fact_not_said", "fact_not_fetched", "no_reply", "stopped", "finding", "fallback", "assertion",
    "hook", "provider_error", "partial_answer",
)  # fmt: skip
"""Most telling first: a cause goes before what follows from it. Unknown kinds come last."""

_SILENT = {"refuse", "silent", "unknown"}
"""Answers that a refusal or silence may rightly be."""
_SOCIAL = {"clarify", "chat", "greet", "thanks"}
"""Answers in which the host may ask something back."""


def observe(evidence: Evidence) -> Failure:
    """One failed item with everything that can be said about it without a model."""
    found = [*_of_result(evidence.result), *_of_sides(evidence), *_of_expectations(evidence)]
    if evidence.trajectory is not None:
        found += observe_steps(evidence.trajectory)
    unique = {o.key: o for o in reversed(found)}
    ranked = sorted(unique.values(), key=lambda o: (_rank(o), o.key))
    scores = evidence.result.scores
    return Failure(
        seen=seen_of(evidence),
        reply=evidence.result.reply,
        observations=tuple(ranked),
        failed_metrics=tuple(
            m for m in ("accuracy", "effectiveness") if (s := scores.get(m)) is not None and s < 1
        ),
        steps=len(evidence.trajectory.steps) if evidence.trajectory is not None else 0,
    )


def seen_of(evidence: Evidence) -> Seen:
    """The item as failures and passes alike are remembered."""
    result, expect = evidence.result, _expect(evidence)
    return Seen(
        item_id=result.item_id,
        category=result.category,
        tags=result.tags,
        state=result.state,
        comment=comment_of(evidence),
        skills=result.skills_loaded,
        tools=result.tools_called,
        expected_skills=expect.skills,
        expected_tools=tuple(t.name for t in expect.tools),
    )


def _rank(observation: Observation) -> int:
    if observation.kind == "tool_error" and observation.side != "tool":
        return RANK.index("wrong_order")  # the wrong thing was asked for: what led there goes first
    name = observation.kind
    if name == "finding":
        # A dialogue that its simulated user broke says nothing about what else went wrong in it.
        name = "tool_not_offered" if observation.side == "simulator" else observation.detail
        name = name if name in RANK else "finding"
    return RANK.index(name) if name in RANK else len(RANK)


def _expect(evidence: Evidence) -> Expect:
    return evidence.item.expect if evidence.item is not None else Expect()


def _step(evidence: Evidence) -> int | None:
    return last_step(evidence.trajectory) if evidence.trajectory is not None else None


def _of_result(result: ItemResult) -> Iterator[Observation]:
    """What the judge and the assertions said."""
    if 0 < (result.scores.get("effectiveness") or 0) < 1:
        yield Observation(kind="partial_answer", note="some of what was asked is answered")
    if result.state == "unscored":
        yield Observation(kind="unscored", side="judge", note="the judge gave no usable verdict")
    for finding in result.findings:
        simulator = finding.kind.startswith("simulator")
        yield Observation(
            kind="finding",
            detail=finding.kind,
            step=finding.step,
            side="simulator" if simulator else "harness",
            note=f"{finding.detail} `{finding.quote}`".strip()[:200],
        )
    for assertion in result.assertions:
        if assertion.passed is False:
            yield Observation(kind="assertion", detail=assertion.type, note=assertion.reason[:160])


def _of_sides(evidence: Evidence) -> Iterator[Observation]:
    """Expectations that nothing could have met: the evalset is at fault."""
    expect, trajectory = _expect(evidence), evidence.trajectory
    if trajectory is not None and trajectory.tools_offered:
        for tool in expect.tools:
            if tool.name not in trajectory.tools_offered:
                yield Observation(kind="tool_not_offered", detail=tool.name, side="evalset")
    if evidence.skill_names:
        for skill in expect.skills:
            if skill not in evidence.skill_names:
                yield Observation(kind="skill_unknown", detail=skill, side="evalset")


def _of_expectations(evidence: Evidence) -> Iterator[Observation]:
    if evidence.item is None or evidence.result.state == "errored":
        return
    yield from _refusals(evidence)
    yield from _skills(evidence)
    yield from _tools(evidence)
    yield from _facts(evidence)
    yield from _reply(evidence)


def _refusals(evidence: Evidence) -> Iterator[Observation]:
    result, answers = evidence.result, set(_expect(evidence).answers)
    refused = result.stop == StopReason.REFUSED or "refuse" in result.tools_called
    step = _step_of_call(evidence, "refuse")
    if refused and answers and not answers & _SILENT:
        yield Observation(kind="over_refusal", step=step, note=f"asked for {', '.join(answers)}")
    if not refused and answers == {"refuse"}:
        yield Observation(kind="missed_refusal", step=step)


def _skills(evidence: Evidence) -> Iterator[Observation]:
    loaded, wanted = evidence.result.skills_loaded, _expect(evidence).skills
    for skill in wanted:
        if skill in loaded:
            continue
        step = _step_of_call(evidence, "load_skill")
        if not loaded:
            yield Observation(kind="skill_not_loaded", detail=skill, step=step)
        elif (instead := next((s for s in loaded if s not in wanted), None)) is not None:
            yield Observation(kind="wrong_skill", detail=f"{instead}>{skill}", step=step)
        else:
            yield Observation(kind="skill_not_loaded", detail=skill, step=step)


def _tools(evidence: Evidence) -> Iterator[Observation]:
    expect, called = _expect(evidence), evidence.result.tools_called
    for tool in expect.tools:
        step = _step_of_call(evidence, tool.name)
        if tool.name not in called:
            yield Observation(kind="tool_not_called", detail=tool.name, step=step)
        elif evidence.trajectory is not None and not any(
            c.name == tool.name and _fits(c.arguments, tool.arguments)
            for c in evidence.trajectory.calls
        ):
            yield Observation(
                kind="wrong_arguments",
                detail=tool.name,
                step=step,
                side="policy",
                note=f"expected {tool.arguments}",
            )
    order = [name for name in expect.order if name in called]
    if order and not _in_order(order, called):
        yield Observation(kind="wrong_order", detail=">".join(order), step=_step(evidence))


def _facts(evidence: Evidence) -> Iterator[Observation]:
    for fact in _expect(evidence).facts:
        if says(evidence.result.reply, fact):
            continue
        spot = find_value(evidence.trajectory, fact.value) if evidence.trajectory else None
        if spot is None:
            yield Observation(kind="fact_not_fetched", detail=fact.field, step=_step(evidence))
        else:
            step, tool, path = spot
            note = f"`{tool}` gave `{path}` in step {step}, the reply lacks it"
            yield Observation(
                kind="fact_not_said",
                detail=fact.field,
                step=step,
                note=note,
                where=f"{tool}:{path}",
            )


def _reply(evidence: Evidence) -> Iterator[Observation]:
    reply, answers = evidence.result.reply, set(_expect(evidence).answers)
    if not reply.strip():
        if answers and not answers & _SILENT:
            yield Observation(kind="no_reply", step=_step(evidence))
        return
    asks_back = reply.rstrip().endswith(("?", "？"))
    if answers == {"clarify"} and not asks_back:
        yield Observation(kind="missed_clarification", step=_step(evidence))
    if answers and not answers & {*_SILENT, *_SOCIAL} and asks_back and not _effective(evidence):
        yield Observation(kind="needless_clarification", step=_step(evidence))
    asked, said = language(comment_of(evidence)), language(reply)
    if asked and said and asked != said:
        yield Observation(kind="wrong_language", detail=asked, step=_step(evidence))


def _effective(evidence: Evidence) -> bool:
    return (evidence.result.scores.get("effectiveness") or 0) > 0


def _step_of_call(evidence: Evidence, name: str) -> int | None:
    """The step that made the call, else the one that replied without it."""
    for step in evidence.trajectory.steps if evidence.trajectory else ():
        if any(call.name == name for call in step.calls):
            return step.index
    return _step(evidence)


def _fits(arguments: dict[str, object] | None, wanted: dict[str, object]) -> bool:
    return arguments is not None and all(arguments.get(k) == v for k, v in wanted.items())


def _in_order(order: Iterable[str], called: Iterable[str]) -> bool:
    rest = iter(called)
    return all(name in rest for name in order)
