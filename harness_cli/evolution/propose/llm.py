"""A proposer that asks a model. Its answer is data: decoded, checked, bounded, never trusted.

What the model reads (comments, replies, tool results, files) is fenced by a mark drawn anew for
each request, so that no text inside can end the fence. What it answers must be one JSON object;
operations must name plain, unprotected files and apply. A `replace` whose text is not exactly there
becomes a suggestion for the reviewer; everything else that does not fit is dropped with its reason.
"""

import json
import re
import secrets
from collections.abc import Iterable, Sequence
from importlib.resources import files as package_files
from typing import Any

import msgspec

from harness_cli.errors import BadFile, HarnessError, ProviderError
from harness_cli.evolution.fuzzy import suggest
from harness_cli.evolution.ops import apply_ops
from harness_cli.evolution.paths import Refused
from harness_cli.evolution.propose.deterministic import Proposed, compatible
from harness_cli.evolution.propose.drafts import Ground
from harness_cli.evolution.propose.guard import EDITS, LeakCheck, fault_of, within_budget
from harness_cli.evolution.propose.memory import Rejection, is_rejected
from harness_cli.evolution.safety import check_changes, check_ops
from harness_cli.models.base import Deadline, Policy
from harness_cli.records.chat import ChatRequest
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Decision, Edit, Op

CASES = 24
"""Failing cases the model is shown, spread over the clusters."""
FILES = 60_000
"""Characters of harness files it is shown; suspected modules first."""
ATTEMPTS = 2
SECONDS = 300.0


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The JSON object a model must answer with."""

    edits: tuple[Edit, ...]


async def propose_with_model(
    policy: Policy,
    ground: Ground,
    *,
    rejected: Iterable[Rejection] = (),
    most: int = EDITS,
    max_tokens: int = 16_384,
) -> Proposed:
    """Edits of a model for a diagnosis, checked.

    Raises `HarnessError` when no answer can be read (said again to the model once, with the reason)
    and `ProviderError`'s message as one when the endpoint fails.
    """
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt_of(ground, most=most)}]
    problem = ""
    for _ in range(ATTEMPTS):
        request = ChatRequest(messages=tuple(messages), max_tokens=max_tokens, temperature=0.2)
        reply = await _ask(policy, request)
        try:
            edits = read_answer(reply)
        except BadFile as exc:
            problem = str(exc)
            messages += [
                {"role": "assistant", "content": reply or "(empty)"},
                {
                    "role": "user",
                    "content": f"This is no proposal: {problem}. One JSON object only.",
                },
            ]
            continue
        return sift(edits, ground, list(rejected), most=most)
    raise HarnessError(
        f"`{policy.name}` gave no proposal in {ATTEMPTS} answers: {problem}",
        hint="without --policy the proposer that needs no model is used",
    )


async def _ask(policy: Policy, request: ChatRequest) -> str:
    try:
        answer = await policy.complete(request, Deadline.within(SECONDS))
    except ProviderError as exc:
        raise HarnessError(f"`{policy.name}` did not answer: {exc}") from exc
    return answer.content or ""


def prompt_of(ground: Ground, *, most: int = EDITS, mark: str | None = None) -> str:
    """The request: a text file beside this module, with the data in a fence of its own."""
    file = "prompt_judge.md" if ground.judge else "prompt.md"
    template = package_files(__package__).joinpath(file).read_text(encoding="utf-8")
    mark = mark or secrets.token_hex(8)
    data = json.dumps(data_of(ground), ensure_ascii=False, indent=1).replace(mark, "")
    return template.format(mark=mark, most=most, data=data)


def data_of(ground: Ground) -> dict[str, Any]:
    """Diagnosis, cases and files as the model gets them: comments and replies cut short."""
    diagnosis = ground.diagnosis
    shown = (
        "id",
        "label",
        "size",
        "share",
        "systematic",
        "side",
        "suspected_modules",
        "root_cause",
    )
    clusters = [{k: getattr(c, k) for k in shown} for c in diagnosis.clusters]
    return {
        "clusters": msgspec.to_builtins(clusters),
        "cases": _cases(ground),
        "files": _files(ground),
        "other_files": sorted(ground.files),
    }


def _cases(ground: Ground) -> list[dict[str, Any]]:
    by_id = {f.item_id: f for f in ground.failures}
    queues = [[i for i in c.item_ids if i in by_id] for c in ground.diagnosis.clusters]
    chosen: list[str] = []
    while len(chosen) < CASES and any(queues):
        for queue in queues:
            if queue and len(chosen) < CASES:
                chosen.append(queue.pop(0))
    return [
        {
            "id": item,
            "category": by_id[item].seen.category,
            "comment": by_id[item].seen.comment[:400],
            "reply": by_id[item].reply[:400],
            "skills": by_id[item].seen.skills,
            "tools": by_id[item].seen.tools,
            "facts": [f"{o.key} (step {o.step}) {o.note}" for o in by_id[item].observations[:5]],
        }
        for item in chosen
    ]


def _files(ground: Ground) -> dict[str, str]:
    """Suspected modules whole, as far as they fit."""
    wanted = [m for c in ground.diagnosis.clusters for m in c.suspected_modules]
    shown: dict[str, str] = {}
    left = FILES
    for path in dict.fromkeys([*wanted, "prompts/pipeline.yaml"]):
        text = ground.text(path)
        if text is not None and len(text) <= left:
            shown[path] = text
            left -= len(text)
    return shown


_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)


def read_answer(text: str) -> tuple[Edit, ...]:
    """The edits of an answer: one JSON object, alone or alone in a fence.

    Raises `BadFile` with the path of the wrong field. Prose around the object is refused: an
    object picked out of prose may be one that a viewer planted.
    """
    fenced = _FENCE.match(text)
    body = (fenced[1] if fenced else text).strip()
    if not body.startswith("{"):
        raise BadFile(f"the answer is no JSON object, it begins with `{body[:40]}`")
    try:
        answer = msgspec.json.decode(body, type=Answer)
    except msgspec.ValidationError as exc:
        raise BadFile(f"the answer does not fit: {exc}") from exc
    except msgspec.DecodeError as exc:
        raise BadFile(f"the answer is no JSON: {exc}") from exc
    return tuple(undecided(edit) for edit in answer.edits)


def undecided(edit: Edit) -> Edit:
    """A model decides nothing, and places nothing by likeness itself."""
    ops = tuple(msgspec.structs.replace(o, decision=Decision(), placed=None) for o in edit.ops)
    return msgspec.structs.replace(edit, ops=ops)


def sift(
    edits: Sequence[Edit], ground: Ground, rejected: list[Rejection], *, most: int = EDITS
) -> Proposed:
    """The edits that may be shown to a reviewer, and why the others may not."""
    leaks = LeakCheck(s.comment for s in ground.seen)
    kept: list[Edit] = []
    dropped: list[tuple[str, str]] = []
    for edit in edits:
        try:
            placed = _placed(edit, ground)
            fault = _fault(placed, ground, leaks, rejected, {e.id for e in kept})
        except (BadFile, Refused) as exc:
            dropped.append((edit.id, str(exc)))
            continue
        if fault is None:
            kept.append(placed)
        else:
            dropped.append((edit.id, fault))
    chosen = within_budget(kept, most=most)
    dropped += [
        (e.id, f"beyond the budget of {counted(most, 'edit')}") for e in kept if e not in chosen
    ]
    return Proposed(compatible(ground, chosen, dropped), tuple(dropped))


def _fault(
    edit: Edit, ground: Ground, leaks: LeakCheck, rejected: list[Rejection], taken: set[str]
) -> str | None:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,60}", edit.id) or edit.id in taken:
        return "its id is no name of its own"
    if is_rejected(edit, rejected):
        return "was rejected before and there is no new evidence"
    failing = {f.item_id for f in ground.failures}
    unknown = [i for i in edit.predicted_fixes if i not in failing]
    if unknown:
        return f"cites items that did not fail in this run: {', '.join(unknown[:3])}"
    known = {c.id for c in ground.diagnosis.clusters}
    strange = [c for c in edit.classes if c not in known]
    if strange:
        return f"cites classes that the diagnosis does not have: {', '.join(strange[:3])}"
    return fault_of(ground.files, edit, leaks)


def _placed(edit: Edit, ground: Ground) -> Edit:
    """The edit with inexact hunks as suggestions. Raises when an operation cannot be placed."""
    check_ops(edit.ops, dict.fromkeys(ground.files, "100644"), judge=ground.judge)
    ops: list[Op] = []
    for op in edit.ops:
        try:
            apply_ops(ground.files, [*ops, op])
        except BadFile:
            text = ground.text(op.path)
            suggestion = suggest(text, op) if text is not None else None
            if suggestion is None:
                raise
            op = suggestion
        ops.append(op)
    if not ops:
        raise BadFile("it has no operation")
    check_changes(ground.files, apply_ops(ground.files, ops), allow_code=False)
    return msgspec.structs.replace(edit, ops=tuple(ops))
