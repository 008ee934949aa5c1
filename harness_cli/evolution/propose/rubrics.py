"""The proposer for a judge without a model: rules for its rubrics, from its disagreements.

For each systematic cluster of disagreements there is at most one sentence, general and known
beforehand: what the labels of that kind mean by METHODS §2. None is made of a calibration reply, so
no rubric learns the set by heart. Whether a rule helps is measured by calibrating again.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from harness_cli.evolution.propose.deterministic import Proposed, compatible
from harness_cli.evolution.propose.drafts import Ground
from harness_cli.evolution.propose.guard import EDITS, LeakCheck, fault_of, within_budget
from harness_cli.evolution.propose.memory import Rejection, is_rejected
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Cluster, Edit, Op

NAME = "deterministic"
ANCHOR = "## Examples\n"
"""Rules are put before the examples of a rubric."""


class Rule(NamedTuple):
    """One sentence for one rubric."""

    metric: str
    text: str


RULES: dict[str, Rule] = {
    "lenient:wrong_price": Rule(
        "accuracy",
        "Compare every amount of the reply, in digits or in words, with the card of the product it "
        "is said of, and every total with `calculate_price`. An amount that differs is a fault, "
        "however small the difference.",
    ),
    "lenient:unsupported_claim": Rule(
        "accuracy",
        "A certificate, an award, a rank, a test, an origin or an effect that no source states is "
        "`unsupported_claim`, also when it is said of the whole room or shop, and also as an aside "
        "behind a right answer.",
    ),
    "lenient:false_promise": Rule(
        "accuracy",
        "A promise about arrival, effect, durability, money back, gifts, draws or prices to come "
        "is `false_promise` unless a source makes it, whatever words it is made in.",
    ),
    "lenient:human_identity": Rule(
        "accuracy",
        "A life outside the room is `human_identity` without the word human as well: a family, a "
        "body, a walk, a meal, having worn or used the product oneself.",
    ),
    "lenient:wrong_link": Rule(
        "accuracy",
        "Look up every link number that the reply names. The right product behind another "
        "product's number is `wrong_link`: Accuracy 0, and Effectiveness not above 0.5.",
    ),
    "lenient:partial": Rule(
        "effectiveness",
        "One fact of the several that a question needs is 0.5: a saving without the amount it "
        "starts from, one price of two that are compared, that there is stock where the number was "
        "asked.",
    ),
    "lenient:missed_comment": Rule(
        "effectiveness",
        "Count the comments that ask something before you grade: while one of them is unanswered, "
        "the grade is 0.5 at most.",
    ),
    "lenient:over_refusal": Rule(
        "effectiveness",
        "Declining what a tool result, the FAQ or the card answers is 0, however kindly it is put.",
    ),
    "lenient:accuracy": Rule(
        "accuracy", "Check every clause of the reply, the last one as well, before you give 1."
    ),
    "strict:missing_fact": Rule(
        "effectiveness",
        "A fact said in other words, in words for numbers, in another unit or in the other "
        "language is said: ask for its meaning, not for the wording of the source.",
    ),
    "strict:missing_act": Rule(
        "effectiveness",
        "An act is judged by what it does in the talk: a greeting, thanks, sympathy or a question "
        "back counts in any wording, also beside something else.",
    ),
    "strict:unsupported_claim": Rule(
        "accuracy",
        "Before you object to a claim, look in the FAQ, the policies and the offers as well as on "
        "the card: a true extra fact is no fault.",
    ),
    "strict:accuracy": Rule(
        "accuracy",
        "Without a statement that a source contradicts or that none supports, the grade is 1: name "
        "the words of the reply and the source before you give 0.",
    ),
    "strict:effectiveness": Rule(
        "effectiveness",
        "Without naming the unit that is not covered there is no grade below 1.",
    ),
}
"""Leading fact of a cluster → what the rubric does not say clearly enough."""


def rubric_of(files: Iterable[str], metric: str) -> str | None:
    """The skill that holds the rubric of a metric: named after it."""
    for path in sorted(files):
        parts = path.split("/")
        if parts[-1] == "SKILL.md" and metric in parts[-2]:
            return path
    return None


def propose_rules(
    ground: Ground, *, rejected: Iterable[Rejection] = (), most: int = EDITS
) -> Proposed:
    """One rule for each systematic cluster that has one. Deterministic."""
    known = list(rejected)
    leaks = LeakCheck([*(s.comment for s in ground.seen), *(f.reply for f in ground.failures)])
    kept: list[Edit] = []
    dropped: list[tuple[str, str]] = []
    for cluster in ground.diagnosis.clusters:
        edit, why = _edit(ground, cluster)
        if edit is not None:
            again = "was rejected before and there is no new evidence"
            why = again if is_rejected(edit, known) else fault_of(ground.files, edit, leaks) or ""
        if edit is None or why:
            dropped.append((cluster.id, why))
        else:
            kept.append(edit)
    chosen = within_budget(kept, most=most)
    dropped += [
        (e.id, f"beyond the budget of {counted(most, 'edit')}") for e in kept if e not in chosen
    ]
    return Proposed(compatible(ground, chosen, dropped), tuple(dropped))


def _edit(ground: Ground, cluster: Cluster) -> tuple[Edit | None, str]:
    """The edit for a cluster, or why there is none."""
    if not cluster.systematic:
        return None, "is not systematic"
    key = next((k for k in _keys(ground, cluster) if k in RULES), None)
    if key is None:
        return None, "no rule is known for it: write one with --by-hand, or name a --policy"
    rule = RULES[key]
    path = rubric_of(ground.files, rule.metric)
    text = ground.text(path) if path else None
    if path is None or text is None:
        return None, f"no skill holds the rubric of {rule.metric}"
    if rule.text in text:
        return None, "its rubric says so already"
    if text.count(ANCHOR) != 1:
        return None, f"`{path}` has no one section `{ANCHOR.strip()}` to put a rule before"
    direction, _, kind = key.partition(":")
    return Edit(
        id=f"rule-{direction}-{kind.replace('_', '-')}",
        module=path,
        ops=(Op(op="replace", path=path, search=ANCHOR, text=f"- {rule.text}\n\n{ANCHOR}"),),
        rationale=f"{cluster.label}: {cluster.size} of {ground.diagnosis.of} labelled replies.",
        classes=(cluster.id,),
        predicted_fixes=tuple(sorted(cluster.item_ids)),
        risks="replies of other kinds may be graded otherwise: calibrate again and compare",
    ), ""


def _keys(ground: Ground, cluster: Cluster) -> Iterator[str]:
    """The leading facts of a cluster's members, most frequent first."""
    wanted = set(cluster.item_ids)
    leads = [f.leading.key for f in ground.failures if f.item_id in wanted and f.leading]
    yield from sorted(set(leads), key=lambda k: (-leads.count(k), k))
