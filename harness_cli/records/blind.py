"""A human blind test (TR §5.6): the sheet people see, the key they do not, and what they say."""

from typing import Literal

import msgspec

from harness_cli.records.run import EvalsetRef, Interval

Choice = Literal["A", "B", "tie"]
System = Literal["baseline", "candidate"]
TAGS = {
    "input-understanding": "more accurate input understanding",
    "reliable-output": "more reliable output",
    "scenario-behaviour": "more appropriate scenario behaviour",
    "response-quality": "higher response quality",
    "tool-use": "more appropriate tool use",
    "other": "something else",
}
"""Attribution of a preference (TR Table 10, whose five categories come first)."""


class BlindReply(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two answers, without a word on who gave it."""

    text: str
    """Empty: nothing was said."""
    trace: tuple[str, ...] = ()
    """Tool calls and their results, where the sheet was made with them."""


class BlindPair(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to decide."""

    id: str
    stratum: str
    comments: tuple[str, ...]
    """`viewer: text`, oldest first."""
    history: tuple[str, ...] = ()
    """`role: text` of earlier turns."""
    anchor: tuple[str, ...] = ()
    """What the host said last."""
    products: tuple[str, ...] = ()
    a: BlindReply
    b: BlindReply
    identical: bool = False
    """Both said the same: a tie by construction, which nobody is asked about."""


class BlindSheet(msgspec.Struct, frozen=True, kw_only=True):
    """`sheet.json`: everything an annotator may see."""

    schema: int = 1
    id: str
    title: str = ""
    created: str = ""
    evalset: EvalsetRef
    seed: int
    """Of the draw; who is A is drawn by a secret that lies in the key."""
    drawn: int
    """Items; some of `pairs` show one a second time."""
    strata: dict[str, int] = {}
    """Stratum → drawn items."""
    pairs: tuple[BlindPair, ...]
    key_sha256: str
    """Of the key's bytes: it was fixed before the first annotation."""


class KeySystem(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two systems."""

    run: str
    policy_id: str
    harness_id: str
    agent: str = "harness"


class KeyEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What one pair of the sheet is."""

    pair: str
    item_id: str
    a: System
    """Whose reply stands under A."""
    repeats: str | None = None
    """The pair that this one shows again with sides swapped."""


class BlindKey(msgspec.Struct, frozen=True, kw_only=True):
    """The assignment, kept apart from the sheet until the report."""

    schema: int = 1
    id: str
    secret: str
    """Seed of sides and order: with the draw's seed alone nobody can tell who is A."""
    baseline: KeySystem
    candidate: KeySystem
    entries: tuple[KeyEntry, ...]
    pairs_sha256: str
    """Of the sheet's pairs: what was shown is what was drawn."""
    left_out: dict[str, int] = {}
    """Why items of the runs could not be drawn → how many."""


class Annotation(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="annotation"):
    """One decision of one person; a later one on the same pair replaces it."""

    pair: str
    choice: Choice
    reason: str = ""
    """Needed unless the choice is a tie."""
    tag: str = ""
    """One of `TAGS`, or empty."""
    annotator: str
    at: str
    via: str = "terminal"
    """terminal, page, csv."""


class Opening(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="opening"):
    """The key was opened before everything was annotated."""

    at: str
    by: str
    annotated: int
    of: int


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Preferences of some of the pairs."""

    name: str
    candidate: int
    tie: int
    baseline: int
    win_rate: float | None
    """candidate / (candidate + baseline)."""
    interval: Interval | None = None
    """Clopper-Pearson."""
    p: float | None = None
    """Exact two-sided binomial against equal preference; None where nobody preferred anything."""
    p_holm: float | None = None
    reading: str = ""


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """Why a side was preferred."""

    tag: str
    candidate: int
    baseline: int
    share: float | None
    """Of the candidate's wins."""


class Consistency(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs that were shown twice, the second time with sides swapped."""

    asked: int
    """With both annotations there."""
    agreed: int
    rate: float | None
    interval: Interval | None
    contradictions: tuple[tuple[str, str], ...] = ()
    a_preferred: int = 0
    """Non-ties in which A was preferred, over every annotation."""
    b_preferred: int = 0
    position_p: float | None = None
    """Exact two-sided binomial of A against B: small means that the place decided."""


class Annotator(msgspec.Struct, frozen=True, kw_only=True):
    """One person's part."""

    name: str
    annotated: int
    candidate: int
    tie: int
    baseline: int
    after_opening: int = 0
    """Annotations made after somebody had opened the key."""


class BlindCase(msgspec.Struct, frozen=True, kw_only=True):
    """One item with a preference, once the key is open: what a review reads."""

    pair: str
    item_id: str
    stratum: str
    preferred: System
    reasons: tuple[str, ...]
    tags: tuple[str, ...]


class BlindReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the blind test says."""

    schema: int = 1
    id: str
    baseline: KeySystem
    candidate: KeySystem
    drawn: int
    annotated: int
    complete: bool
    whole: Tally
    strata: tuple[Tally, ...]
    attribution: tuple[Attribution, ...]
    consistency: Consistency
    annotators: tuple[Annotator, ...]
    split: int = 0
    """Pairs without a majority among several annotators; counted as ties."""
    identical: int = 0
    """Ties by construction."""
    alpha: float | None = None
    """Krippendorff's α (nominal) of several annotators."""
    openings: int = 0
    cases: tuple[BlindCase, ...] = ()
    """The items that the baseline won, then those the candidate won."""
    left_out: dict[str, int] = {}
