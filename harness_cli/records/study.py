"""`STUDY.yaml`: arms of training as a graph with shared ancestors, and sets that measure them."""

from typing import Any, Literal

import msgspec

from harness_cli.records.bounds import AtLeastOne, Count


class TinyBase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A base made here (`training/tiny`)."""

    steps: AtLeastOne = 2000
    seed: int = 1
    threads: AtLeastOne = 2
    """It is made before the seeds run side by side; more threads round sums otherwise."""


class StudyData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of lessons by construction: items under the harness as it is, or under states."""

    items: AtLeastOne
    """First N items of the training set."""
    states: Count = 0
    """Augmented states that are dealt to the items; 0: the harness as it is alone."""
    each: AtLeastOne = 1
    """Lessons of an item, each under another state."""
    original: bool = True
    """The harness as it is among them."""
    together: AtLeastOne = 1
    """Requests to one harness that are one row: its text is read once for all of them."""


class Arm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One checkpoint of the study: an ancestor and the stage that is added to it."""

    name: str
    start: str
    """Name of an arm, or `base`."""
    stage: str
    """Of `stages`."""
    teacher: str | None = None
    """Of a distillation: an arm, or `base`."""
    more: dict[str, Any] = {}
    """Fields of the job beside those of the stage."""
    on_request: bool = False
    """Left out unless `--arm` names it."""


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What arms have in common: the verb of `harness train` and fields of its job."""

    verb: Literal["sft", "opd", "rl"]
    job: dict[str, Any]


class Measured(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One column: an evalset and what of it is the score of an item."""

    column: str
    evalset: str
    metric: Literal["avg", "passed", "reward"] = "avg"
    """`passed`: every assertion holds, and the judge, where there is one, is content; `reward`: the
    mean of the four rewards of HSA-RL, by rule."""
    tag: str | None = None
    """Only items of this tag."""


class TableRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One arm, and the row whose checkpoint it was made from."""

    label: str
    arm: str
    against: str | None = None


class Contrast(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One arm less another, paired."""

    label: str
    plus: str
    minus: str


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is printed beside one another."""

    title: str
    columns: tuple[str, ...] = ()
    """All of the study's where none is named."""
    rows: tuple[TableRow, ...]
    contrasts: tuple[Contrast, ...] = ()


class Study(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of it. Arms are trained in the order in which they stand."""

    schema: int = 1
    name: str
    notes: str = ""
    project: str
    """Folder of the project, relative to the file; the study works on a copy."""
    base: TinyBase | str = TinyBase()
    """Made here, or a registered checkpoint or `smollm2`."""
    template: str | None = None
    """Chat template of a base from elsewhere, in place of its own (`trl:NAME`, a Jinja file)."""
    training_set: str = ""
    """Evalset of the lessons (split `dev`)."""
    recipe: str = ""
    """Recipe of the augmented states of lessons, relative to the project."""
    state_seed: int = 1
    data: dict[str, StudyData] = {}
    """File under `train/`, without `.jsonl`, → lessons."""
    variants: dict[str, str] = {}
    """Evalset → recipe of the states that it runs under."""
    variant_states: AtLeastOne = 8
    seeds: tuple[int, ...]
    """Fixed before the run; every one is shown."""
    stages: dict[str, Stage]
    arms: tuple[Arm, ...]
    sets: tuple[Measured, ...]
    tables: tuple[Table, ...] = ()
    split: str = "test"
    limit: AtLeastOne | None = None
    """First N items of every set; all where nothing is said."""
    concurrency: AtLeastOne = 64
    threads: AtLeastOne = 1


class ArmScore(msgspec.Struct, frozen=True, kw_only=True):
    """One arm, seed and column, item by item."""

    arm: str
    seed: int
    column: str
    scores: dict[str, float]
    """Item → score from 0 to 1."""
    parts: dict[str, float] = {}
    """Means of what else was measured: accuracy, effectiveness, tool and skill rewards."""
    run: str = ""
    seconds: float = 0.0
    cpu_s: float = 0.0
    """CPU of the run, which columns of one evalset share."""


class ArmTime(msgspec.Struct, frozen=True, kw_only=True):
    """How long one job took."""

    arm: str
    seed: int
    seconds: float
    cpu_s: float
    checkpoint: str = ""
