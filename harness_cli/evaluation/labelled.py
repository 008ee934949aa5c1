"""Labelled replies for a judge: of the calibration set, of a file, of a run people labelled."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest
from pathlib import Path

import msgspec

from harness_cli.errors import BadFile
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.evaluation.judge_set import DEFAULT, load_judge_set
from harness_cli.judges.label_file import LabelFile, with_items
from harness_cli.judges.labels import Case, LabelledReply, as_item, as_trajectory
from harness_cli.records.calibration import Origin
from harness_cli.records.canonical import digest, sha256
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.trajectory import Trajectory
from harness_cli.store.catalogue import read_catalogue
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder


@dataclass(frozen=True, slots=True)
class Labels:
    """Labelled replies with their items, and what binds them."""

    evalset: str
    split: str | None
    replies: tuple[LabelledReply, ...]
    world: Catalogue
    digest: str
    origin: Origin
    source: str = ""
    trajectories: Mapping[str, Trajectory] = field(default_factory=dict)
    """Reply id → the whole trajectory, where the replies are those of a run."""

    @property
    def cases(self) -> list[Case]:
        """What a judge is asked about, reply by reply."""
        return [
            (as_item(r, self.world), self.trajectories.get(r.id) or as_trajectory(r))
            for r in self.replies
        ]


def constructed(project: Project, name: str = DEFAULT) -> Labels:
    """The replies of a calibration set."""
    made = load_judge_set(project, name)
    return Labels(
        evalset=name,
        split=made.split,
        replies=made.replies,
        world=made.items.world,
        digest=made.digest,
        origin="construction",
    )


def labels_of(
    project: Project,
    file: LabelFile,
    evalset: str,
    split: str | None,
    origin: Origin,
    *,
    catalogue: Path | None = None,
) -> Labels:
    """The labels of a file with the items that they name, or bring along.

    Raises `BadFile` with the place of a label of another item, or of one without its reply.
    """
    for name in sorted(file.without_reply):
        raise BadFile(
            f"{file.places[name]}: `{name}` has no reply",
            hint="a column `reply`, or --run ID for labels of a run's replies",
        )
    replies, items = list(file.replies), ""
    world = read_catalogue(catalogue or project.evalsets / "catalogue")
    if any(r.item is None and r.item_id for r in replies):
        shared = load_evalset(project, evalset, split=split)
        split, items = shared.ref.split, shared.digest
        world = world if catalogue else shared.world
        named = f"`{evalset}`, split {split}"
        replies = with_items(replies, shared.items, places=file.places, evalset=named)
    path, root = file.path.resolve(), project.root.resolve()
    return Labels(
        evalset=evalset,
        split=split,
        replies=tuple(replies),
        world=world,
        digest=digest({"labels": sha256(file.path.read_bytes()), "items": items}),
        origin=origin,
        source=str(path.relative_to(root) if path.is_relative_to(root) else path),
    )


def labels_of_run(project: Project, file: LabelFile, run: RunFolder, origin: Origin) -> Labels:
    """Labels of the replies that a run gave, with its whole trajectories.

    A row names an item; a reply that it repeats must be the run's. Raises `BadFile` with the place
    of a row whose item the evalset or the run has not, or whose reply is another one.
    """
    config = run.config()
    shared = load_evalset(project, config.evalset.name, split=config.evalset.split)
    named = f"`{config.evalset.name}`, which run `{run.id}` is of"
    replies = with_items(file.replies, shared.items, places=file.places, evalset=named)
    wanted = {r.item_id for r in replies}
    found = {
        t.item_id: t for t in run.trajectories(lambda key: key.item in wanted and key.repeat == 0)
    }
    kept, trajectories = [], {}
    for reply in replies:
        made = found.get(reply.item_id)
        if made is None:
            raise BadFile(
                f"{file.places[reply.id]}: run `{run.id}` has no answer to `{reply.item_id}`"
            )
        if reply.id not in file.without_reply and reply.reply != made.reply:
            raise BadFile(
                f"{file.places[reply.id]}: run `{run.id}` answered `{reply.item_id}` with another "
                "reply than the file has",
                hint="labels hold for the reply they were given to: name its run",
            )
        kept.append(msgspec.structs.replace(reply, reply=made.reply))
        trajectories[reply.id] = made
    return Labels(
        evalset=config.evalset.name,
        split=config.evalset.split,
        replies=tuple(kept),
        world=shared.world,
        digest=digest({"labels": sha256(file.path.read_bytes()), "items": shared.digest}),
        origin=origin,
        trajectories=trajectories,
    )


def part_of(labels: Labels, most: int) -> Labels:
    """At most so many of the replies, evenly over the kinds and the correct ones; always the same.

    For a look at what a judge of many calls would come to; no record is made of a part.
    """
    kinds: dict[str, list[LabelledReply]] = {}
    for reply in sorted(labels.replies, key=lambda r: sha256(r.id.encode())):
        kinds.setdefault(reply.corruption, []).append(reply)
    turns = (r for row in zip_longest(*(kinds[k] for k in sorted(kinds))) for r in row if r)
    chosen = {r.id for r in islice(turns, most)}
    return replace(labels, replies=tuple(r for r in labels.replies if r.id in chosen))
