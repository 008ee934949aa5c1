"""Failure classes by a model: it names, explains and sorts what no human-owned class holds.

The KMeans clusters are its candidates. What it reads is fenced data; what it answers is one JSON
object per batch, checked: every failure id exactly once, classes that exist, citations `item:step`
that exist. An answer that fails twice is not used: its batch keeps the candidates, and the
diagnosis says so.
"""

import json
import re
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files as package_files
from typing import Any

import msgspec

from harness_cli.errors import BadFile, HarnessError, ProviderError
from harness_cli.evolution.diagnose import Maker, Material
from harness_cli.evolution.failure import Failure
from harness_cli.evolution.lineage import changes
from harness_cli.models.base import Deadline, Policy
from harness_cli.records.chat import ChatRequest
from harness_cli.records.diagnosis import Cluster, Diagnosis, FailureClass, Side

BATCH = 40
ATTEMPTS = 2
SECONDS = 300.0
UNEXPLAINED = "unexplained"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_CITATION = re.compile(r"(?P<item>.+):(?P<step>\d{1,4})")
_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)


class Named(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A class a model proposes."""

    id: str
    name: str
    explanation: str
    root_cause: str
    side: Side
    citations: tuple[str, ...]


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model must answer for one batch."""

    classes: tuple[Named, ...] = ()
    assign: dict[str, str]


async def sharpen(
    policy: Policy,
    diagnosis: Diagnosis,
    material: Material,
    maker: Maker,
    *,
    classes: Sequence[FailureClass] = (),
    previous: Diagnosis | None = None,
) -> Diagnosis:
    """The diagnosis with a model's classes in place of its KMeans clusters.

    Human-owned classes keep what their rules took; the model may add to them. Raises
    `HarnessError` when the endpoint fails.
    """
    owned = {i for c in diagnosis.clusters if c.class_id for i in c.item_ids}
    left = {f.item_id: f for f in material.failures if f.item_id not in owned}
    candidates = [c for c in diagnosis.clusters if c.class_id is None]
    named: dict[str, Named] = {}
    assigned: dict[str, str] = {}
    notes = list(diagnosis.notes)
    for batch in _batches(left, candidates):
        answer, problem = await _ask(policy, batch, candidates, classes, named)
        if answer is None:
            notes.append(
                f"`{policy.name}` gave no usable classes for {len(batch)} failures "
                f"({problem}): they keep their clusters"
            )
            assigned |= _candidates_of(batch, candidates)
            continue
        named |= {c.id: c for c in answer.classes}
        assigned |= answer.assign
    found = _clusters(diagnosis, left, assigned, named, maker, classes)
    total = diagnosis.failures
    explained = sum(c.size for c in found)
    return msgspec.structs.replace(
        diagnosis,
        clusters=found,
        unexplained=round((total - explained) / total, 6) if total else 0.0,
        by=policy.id,
        notes=tuple(notes),
        changes=changes(previous, found),
    )


def _batches(
    left: Mapping[str, Failure], candidates: Sequence[Cluster]
) -> list[dict[str, Failure]]:
    """Failures in order of their candidate, so that one batch holds what may belong together."""
    place = {i: n for n, c in enumerate(candidates) for i in c.item_ids}
    order = sorted(left, key=lambda i: (place.get(i, len(candidates)), i))
    return [{i: left[i] for i in order[n : n + BATCH]} for n in range(0, len(order), BATCH)]


def _candidates_of(batch: Mapping[str, Failure], candidates: Sequence[Cluster]) -> dict[str, str]:
    return {i: c.id for c in candidates for i in c.item_ids if i in batch}


async def _ask(
    policy: Policy,
    batch: Mapping[str, Failure],
    candidates: Sequence[Cluster],
    classes: Sequence[FailureClass],
    named: Mapping[str, Named],
) -> tuple[Answer | None, str]:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": prompt_of(batch, candidates, classes, named)}
    ]
    problem = ""
    for _ in range(ATTEMPTS):
        request = ChatRequest(messages=tuple(messages), max_tokens=16_384, temperature=0.0)
        try:
            reply = (await policy.complete(request, Deadline.within(SECONDS))).content or ""
        except ProviderError as exc:
            raise HarnessError(f"`{policy.name}` did not answer: {exc}") from exc
        try:
            return read_answer(reply, batch, {c.id for c in classes} | named.keys()), ""
        except BadFile as exc:
            problem = str(exc)
            messages += [
                {"role": "assistant", "content": reply or "(empty)"},
                {"role": "user", "content": f"This is no answer: {problem}. One JSON object only."},
            ]
    return None, problem


def prompt_of(
    batch: Mapping[str, Failure],
    candidates: Sequence[Cluster],
    classes: Sequence[FailureClass],
    named: Mapping[str, Named],
    *,
    mark: str | None = None,
) -> str:
    """The request: the text file beside this module, with the data in a fence of its own."""
    template = package_files(__package__).joinpath("classes_prompt.md").read_text(encoding="utf-8")
    mark = mark or secrets.token_hex(8)
    data = {
        "known_classes": [
            {"id": c.id, "name": c.name, "definition": c.definition, "rule": c.decision_rule}
            for c in classes
        ]
        + [{"id": c.id, "name": c.name, "definition": c.explanation} for c in named.values()],
        "candidate_clusters": [
            {"label": c.label, "ids": [i for i in c.item_ids if i in batch]}
            for c in candidates
            if any(i in batch for i in c.item_ids)
        ],
        "failures": [_told(f) for f in batch.values()],
    }
    text = json.dumps(data, ensure_ascii=False, indent=1).replace(mark, "")
    return template.format(mark=mark, data=text)


def _told(failure: Failure) -> dict[str, Any]:
    return {
        "id": failure.item_id,
        "category": failure.seen.category,
        "steps": failure.steps,
        "comment": failure.seen.comment[:400],
        "reply": failure.reply[:400],
        "skills": failure.seen.skills,
        "tools": failure.seen.tools,
        "facts": [f"{o.key} (step {o.step}) {o.note}"[:200] for o in failure.observations[:6]],
    }


def read_answer(text: str, batch: Mapping[str, Failure], known: set[str]) -> Answer:
    """An answer for a batch. Raises `BadFile` with what does not fit."""
    fenced = _FENCE.match(text)
    body = (fenced[1] if fenced else text).strip()
    try:
        json.loads(body, object_pairs_hook=_once)
        answer = msgspec.json.decode(body, type=Answer)
    except msgspec.ValidationError as exc:
        raise BadFile(f"the answer does not fit: {exc}") from exc
    except (ValueError, msgspec.DecodeError, RecursionError) as exc:
        raise BadFile(f"the answer is no JSON object alone: {exc}") from exc
    problems = [*_assign_faults(answer, batch, known), *_class_faults(answer, batch, known)]
    if problems:
        raise BadFile("; ".join(problems[:4]))
    return answer


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = [k for k, n in Counter(k for k, _ in pairs).items() if n > 1]
    if twice:
        raise ValueError(f"`{twice[0][:60]}` stands twice")
    return dict(pairs)


def _assign_faults(answer: Answer, batch: Mapping[str, Failure], known: set[str]) -> list[str]:
    lacking = [i for i in batch if i not in answer.assign]
    strange = [i for i in answer.assign if i not in batch]
    allowed = known | {c.id for c in answer.classes} | {UNEXPLAINED}
    nowhere = sorted({c for c in answer.assign.values() if c not in allowed})
    faults = []
    if lacking:
        faults.append(f"{len(lacking)} failures are in no class, among them `{lacking[0]}`")
    if strange:
        faults.append(f"`{strange[0][:60]}` is no failure of this batch")
    if nowhere:
        faults.append(f"`{nowhere[0][:60]}` is no class")
    return faults


def _class_faults(answer: Answer, batch: Mapping[str, Failure], known: set[str]) -> list[str]:
    faults = []
    ids = [c.id for c in answer.classes]
    for one in answer.classes:
        if not _NAME.fullmatch(one.id) or one.id == UNEXPLAINED or one.id in known:
            faults.append(f"`{one.id[:60]}` is no name of a new class (lower case, hyphens)")
        if ids.count(one.id) > 1:
            faults.append(f"class `{one.id}` stands twice")
        if not one.citations:
            faults.append(f"class `{one.id[:60]}` cites no case")
        for citation in one.citations:
            found = _CITATION.fullmatch(citation)
            failure = batch.get(found["item"]) if found else None
            if found is None or failure is None or int(found["step"]) >= failure.steps:
                faults.append(f"citation `{citation[:60]}` does not exist")
            elif answer.assign.get(found["item"]) != one.id:
                faults.append(f"citation `{citation[:60]}` is not in class `{one.id[:60]}`")
    return faults


def _clusters(
    diagnosis: Diagnosis,
    left: Mapping[str, Failure],
    assigned: Mapping[str, str],
    named: Mapping[str, Named],
    maker: Maker,
    classes: Sequence[FailureClass],
) -> tuple[Cluster, ...]:
    groups: dict[str, list[Failure]] = {}
    for item in sorted(assigned):
        if assigned[item] != UNEXPLAINED and item in left:
            groups.setdefault(assigned[item], []).append(left[item])
    found = []
    for old in diagnosis.clusters:
        more = groups.pop(old.id, [])
        if old.class_id is not None:
            found.append(maker.extended(old, more) if more else old)
        elif more:  # a batch without a usable answer keeps its candidate
            found.append(maker.changed(old, more))
    owned = {c.id: c for c in classes}
    for name, group in groups.items():
        if name in named:
            found.append(_named(maker, named[name], group))
        else:  # a human-owned class that no rule had met in this run
            found.append(maker.known(owned[name], group))
    return tuple(sorted(found, key=lambda c: (-c.size, c.id)))


def _named(maker: Maker, one: Named, group: list[Failure]) -> Cluster:
    return msgspec.structs.replace(
        maker.named(one.id, group, label=one.name),
        root_cause=one.root_cause,
        explanation=one.explanation,
        side=one.side,
        citations=one.citations,
    )
