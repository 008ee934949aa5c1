"""Training data: what a job asks for, one row of each kind, and the card of a data set."""

from typing import Any, Literal

import msgspec

from harness_cli.records.bounds import AtLeastOne, Count, Share
from harness_cli.records.chat import Message
from harness_cli.records.item import Fact
from harness_cli.records.request import Request

StudentName = Literal["agent", "tool", "response"]
Bucket = Literal["unsolved", "hard", "medium", "easy", "solved"]


class AcceptedScores(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a candidate must reach with the rejection judge (TR §3.4: both are 1)."""

    accuracy: Share = 1.0
    effectiveness: Share = 1.0


class SftJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`train/*.yaml` of supervised data with harness-state augmentation (HSA-SFT, TR §3.4)."""

    schema: int = 1
    evalset: str = "live_stream_qa"
    split: Literal["train", "dev"] = "dev"
    """Never a test split: what is trained on measures nothing any more."""
    limit: AtLeastOne | None = None
    """First N items."""
    teacher: str | None = None
    """Policy of harness.yaml; else `roles.teacher`, else the project's policy."""
    judge: str | None = None
    """Rejection judge; else `roles.rejection_judge`, else the evalset's judge."""
    original: bool = True
    """Run the harness as it is, too."""
    states: Count = 2
    """Augmented states; each item runs under every one of them."""
    recipe: str | None = None
    """`augment.yaml`, relative to the project; the default recipe without one."""
    candidates: AtLeastOne = 1
    """Rollouts an item and state."""
    seed: int = 0
    accept: AcceptedScores = AcceptedScores()
    keep_retries: Share = 0.1
    """Share of the items whose hook retries are kept whole, by a seeded hash of the item."""
    students: tuple[StudentName, ...] = ("agent", "tool", "response")
    include_last: bool = True
    """The tool student's lesson holds the last call (AR's two phrasings differ)."""
    thinking: Literal["keep", "drop"] = "keep"
    """The teacher's reasoning in the agent's lessons; the two students never get it."""
    template: str | None = None
    """Chat template (a Jinja file, a model's folder, `trl:NAME`): rows are tokenised with it."""
    tokenizer: str | None = None
    """`tokenizer.json` or a model's folder; the template's folder without one."""
    max_tokens: AtLeastOne = 16384
    """Longest row."""
    over_long: Literal["refuse", "drop"] = "refuse"
    """A longer row ends the export, or is left out and counted."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Where a row comes from."""

    evalset: str
    split: str
    item: str
    run: str = ""
    """Run it was taken from, where one was."""
    state: str = "original"
    """Name of the augmented state, or `original`."""
    harness: str = ""
    """Id of the harness state it was made under."""
    map_sha256: str = ""
    """Of the state's augmentation map; empty for the original."""
    teacher: str = ""
    """name@digest of the policy that said it."""
    judge: str = ""
    """name@digest of the judge that decided."""
    accuracy: float | None = None
    effectiveness: float | None = None
    verdict: str = ""
    """passed, failed, …: what the judge and the item's assertions made of it."""
    candidate: int = 0
    retries: Literal["none", "pruned", "kept"] = "none"
    refused_outputs: int = 0
    """Outputs that hooks sent back in this rollout."""
    trajectory_sha256: str = ""


class SftRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One lesson in TRL's form: `messages` + `tools`, or `prompt` + `completion` + `tools`."""

    id: str
    student: StudentName
    messages: tuple[Message, ...] = ()
    """Loss on every assistant turn (`assistant_only_loss`)."""
    prompt: tuple[Message, ...] = ()
    completion: tuple[Message, ...] = ()
    """Loss on this alone (the response student)."""
    tools: str = ""
    """Tool definitions as JSON text: as columns, Arrow would fill each with the keys of all."""
    provenance: Provenance


class TokenisedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One lesson as tokens; a trainer that finds `labels` leaves them as they are."""

    id: str
    student: StudentName
    input_ids: tuple[int, ...]
    labels: tuple[int, ...]
    """-100 where there is no loss."""
    segment_ids: tuple[int, ...]
    """0 masked, 1 tool, 2 reply; a turn that was refused is 0 as well."""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate or lesson that is in no data set, and why."""

    item: str
    reason: str
    """The kind, as the card counts it."""
    detail: str = ""
    state: str = ""
    candidate: int = 0
    student: str = ""


class PreferenceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pair in TRL's form: one prompt, the reply that passed, the one that failed."""

    id: str
    prompt: tuple[Message, ...]
    chosen: tuple[Message, ...]
    rejected: tuple[Message, ...]
    tools: str = ""
    same_prompt: bool
    """Both were given this prompt; else it is the one of the chosen reply."""
    chosen_from: Provenance
    rejected_from: Provenance


class RlTask(msgspec.Struct, frozen=True, kw_only=True):
    """One interaction task with its difficulty, measured by k rollouts of a policy."""

    id: str
    evalset: str
    split: str
    evalset_digest: str
    category: str
    tags: tuple[str, ...] = ()
    request: Request
    facts: tuple[Fact, ...] = ()
    """What the reply must carry: for rewards, never for the policy."""
    skills: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    policy: str = ""
    """name@digest of the policy that was measured."""
    harness: str = ""
    rollouts: int
    """k that were scored."""
    passed: int
    unscored: int = 0
    bucket: Bucket
    """0, up to 1/3, up to 2/3, below 1, and 1 of the scored rollouts."""


class DataFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a data set."""

    rows: int
    sha256: str
    bytes: int
    longest: int | None = None
    """Tokens of the longest row, where rows are tokenised."""
    trained: int | None = None
    """Tokens with loss."""


class DataCard(msgspec.Struct, frozen=True, kw_only=True):
    """`manifest.json` of a data set: what it was made of, and everything that is not in it."""

    schema: int = 1
    kind: Literal["sft", "prefs", "rl-tasks"]
    evalset: str
    split: str
    evalset_digest: str
    catalogue_digest: str = ""
    harness: str = ""
    """Id of the original harness state."""
    states: dict[str, str] = {}
    """Augmented state → its harness id."""
    teacher: str = ""
    judge: str = ""
    policy: str = ""
    runs: tuple[str, ...] = ()
    """Runs that rows were taken from."""
    job: dict[str, Any] = {}
    """What was asked."""
    candidates: int = 0
    """Rollouts or items that were looked at."""
    left_out: dict[str, int] = {}
    """Reason → how many; with `files` it accounts for every candidate and student."""
    retries: dict[str, int] = {}
    """none, pruned, kept → accepted candidates."""
    template_sha256: str = ""
    tokenizer_sha256: str = ""
    masks: dict[str, int] = {}
    """marks, prefix → rows; `other context`: rows whose policy was shown another rendering."""
    files: dict[str, DataFile] = {}
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = {}
