"""The grounded judge: Accuracy by checking every claim, Effectiveness by what is covered.

Deterministic and without a model: the judged text is only ever searched, so nothing in it can
speak to the judge. It knows the catalogue, the request, the trajectory and the item's expectations
and nothing of how items are made.
"""

import re
from functools import cache
from pathlib import Path

from harness_cli.judges.base import JudgeCalls
from harness_cli.judges.grounded import acts
from harness_cli.judges.grounded.authority_checks import check_authority
from harness_cli.judges.grounded.conduct_checks import check_conduct
from harness_cli.judges.grounded.coverage import ACTS, Unit, cover
from harness_cli.judges.grounded.indexed import Indexed, indexed
from harness_cli.judges.grounded.language import fold, words
from harness_cli.judges.grounded.link_checks import (
    check_actions,
    check_forbidden,
    check_links,
    check_presented,
)
from harness_cli.judges.grounded.measure_checks import check_measures
from harness_cli.judges.grounded.price_checks import check_discounts, check_money
from harness_cli.judges.grounded.property_checks import check_properties, check_values
from harness_cli.judges.grounded.reading import Reading
from harness_cli.judges.grounded.stock_checks import check_stock
from harness_cli.judges.grounded.term_checks import check_terms
from harness_cli.records.canonical import sha256
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.item import Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import Finding, Verdict

CHECKS = (
    check_money,
    check_discounts,
    check_stock,
    check_measures,
    check_terms,
    check_properties,
    check_values,
    check_conduct,
    check_authority,
    check_links,
    check_presented,
    check_forbidden,
)
INACCURATE = words(
    """
    wrong_price wrong_discount wrong_stock wrong_delivery wrong_returns wrong_warranty
    wrong_attribute wrong_link wrong_action unsupported_claim false_promise human_identity
    capability_overreach forbidden_phrase invented_promotion wrong_service
    """
)
"""Kinds that cost Accuracy; the others (missing_fact, missed_comment, missing_act, over_refusal,
suppressed, unwanted_reply) say why Effectiveness is below 1."""


@cache
def source_digest() -> str:
    """SHA-256 over this judge's own files: a changed word of its lexicon is another judge."""
    folder = Path(__file__).parent
    parts = [
        f"{p.name}:{sha256(p.read_bytes())}"
        for p in sorted([*folder.glob("*.py"), *folder.glob("*.txt")])
    ]
    return sha256("\n".join(parts).encode())


class GroundedJudge:
    """Grades single replies. One instance serves a run."""

    name = "grounded"

    def __init__(self) -> None:
        self.id = f"grounded@{source_digest()[:12]}"
        self._catalogue: Catalogue | None = None
        self._known: Indexed | None = None

    async def judge(
        self,
        item: Item,
        trajectory: Trajectory,
        world: Catalogue,
        *,
        calls: JudgeCalls | None = None,  # noqa: ARG002  it makes none
    ) -> Verdict:
        """The verdict on one trajectory; assertions are the engine's to check."""
        return self.verdict(item, trajectory, world)

    async def close(self) -> None:
        """Nothing is held."""

    def verdict(self, item: Item, trajectory: Trajectory, world: Catalogue) -> Verdict:
        """The same, for callers without an event loop."""
        if trajectory.errored:
            reason = trajectory.error or f"the rollout ended by {trajectory.stop.value}"
            return self._unscored(reason)
        if item.request.prompt is not None:
            return self._unscored("a bare prompt has no facts to check")
        reading = self.read(item, trajectory, world)
        accuracy = float(not any(f.kind in INACCURATE for f in reading.findings))
        effectiveness = grade(reading)
        average = None if effectiveness is None else (accuracy + effectiveness) / 2
        return Verdict(
            judge=self.id,
            scores={"accuracy": accuracy, "effectiveness": effectiveness, "avg": average},
            findings=tuple(reading.findings),
            unscored_reason=None if item.expect.answers else "the item names no `expect.answers`",
        )

    def read(self, item: Item, trajectory: Trajectory, world: Catalogue) -> Reading:
        """The reply with every check made on it; `findings` holds what they found."""
        known = self._indexed(world)
        reading = Reading(item, trajectory, known.world, known.resolver(item))
        if trajectory.reply.strip():
            for check in CHECKS:
                check(reading)
        check_actions(reading)
        return reading

    def _unscored(self, reason: str) -> Verdict:
        return Verdict(
            judge=self.id,
            scores={"accuracy": None, "effectiveness": None, "avg": None},
            unscored_reason=reason,
        )

    def _indexed(self, catalogue: Catalogue) -> Indexed:
        if self._known is None or self._catalogue is not catalogue:
            self._catalogue, self._known = catalogue, indexed(catalogue)
        return self._known


def grade(reading: Reading) -> float | None:
    """Effectiveness: 1 when every unit is covered, 0.5 when something is, else 0.

    Notes what is missing as findings. None when the item says of nothing what it asks for.
    """
    answers = reading.item.expect.answers
    if not answers:
        return None
    said = bool(reading.trajectory.reply.strip())
    if not said and "silent" not in answers and not reading.trajectory.actions:
        _note(reading, "suppressed", "nothing was said where an answer was due")
        return 0.0
    units = cover(reading)
    missing = [u for u in units if u.share < 1]
    for unit in missing:
        _note(reading, _kind(reading, unit), f"{unit.answer}: {', '.join(unit.missing)}")
    score = 1.0 if not missing else 0.5 if any(u.share > 0 for u in units) else 0.0
    if score == 1 and any(f.kind == "wrong_link" for f in reading.findings):
        score = 0.5
    if score == 1 and not same_language(reading):
        _note(reading, "wrong_language", "not the language of the viewer")
        score = 0.5
    if score == 0 and said and _refuses_wrongly(reading):
        _note(reading, "over_refusal", "declines what could be answered")
    return score


_HAN = re.compile(r"[\u3400-\u9fff]")
_LATIN = re.compile(r"[a-z]{2,}")


def same_language(reading: Reading) -> bool:
    """The reply is in the viewer's language, as far as both show one (English or Chinese)."""
    asked = _language(fold(" ".join(c.text for c in reading.item.request.comments)))
    said = _language(reading.folded)
    return asked is None or said is None or asked == said


def _language(text: str) -> str | None:
    """`zh` or `en` where nearly all words are; None for a mixture, digits or nothing."""
    han, latin = len(_HAN.findall(text)), len(_LATIN.findall(text))
    if han >= 2 and han > 2 * latin:
        return "zh"
    return "en" if latin >= 2 and han == 0 else None


def _kind(reading: Reading, unit: Unit) -> str:
    if unit.answer == "silent":
        return "unwanted_reply"
    if unit.answer in ACTS:
        return "missing_act"
    several = reading.item.mode == "multi" or len(reading.item.request.comments) > 1
    return "missed_comment" if several else "missing_fact"


def _refuses_wrongly(reading: Reading) -> bool:
    answers = set(reading.item.expect.answers)
    reply = reading.trajectory.reply
    return not answers & {"refuse", "unknown", "silent"} and (
        acts.declines(reply) or acts.admits_ignorance(reply)
    )


def _note(reading: Reading, kind: str, detail: str) -> None:
    finding = Finding(kind=kind, detail=detail)
    if finding not in reading.findings:
        reading.findings.append(finding)
