"""What `harness evalset synth` does with its options, and what it says afterwards."""

from dataclasses import dataclass

import msgspec

from harness_cli.commands._show import emit_json, line, note
from harness_cli.errors import UsageError
from harness_cli.evaluation.evalsets import load_header
from harness_cli.evaluation.expansion import Author
from harness_cli.evaluation.imports.keep_evalset import safe_name
from harness_cli.evaluation.survey import HEADER
from harness_cli.evaluation.synthesis import Synthesis, synthesise
from harness_cli.models.open import open_policy
from harness_cli.records.item import EvalsetHeader
from harness_cli.simulator.scenarios.files import split_digests, write_evalset
from harness_cli.store.project import Project

ROLE = "task_generator"
"""The role whose policy words the comments where no flag names one."""
TEMPLATES = "none"


@dataclass(frozen=True, slots=True)
class Built:
    """A set on disk and how it came about."""

    header: EvalsetHeader
    synthesis: Synthesis
    fresh: bool
    """It was not there, or it held other items."""


def build(
    project: Project,
    name: str,
    *,
    seed: int,
    count: int | None,
    policy: str | None,
    save_as: str,
    replace: bool,
) -> Built:
    """Build a set and write it. Raises `UsageError` rather than write over other items."""
    folder = project.evalsets / safe_name(save_as)
    author = None
    policy = policy or project.config.roles.get(ROLE)
    if policy is not None and policy != TEMPLATES:
        author = Author(open_policy(*project.policy(policy), root=project.root))
    made = synthesise(project, name, seed=seed, count=count, author=author)
    header = msgspec.structs.replace(made.header, name=save_as)
    digests = split_digests(made.items, compact=True)
    there = load_header(project, save_as) if (folder / HEADER).is_file() else None
    if there is not None and there.digests == digests:
        return Built(there, made, fresh=False)
    if there is not None and not replace:
        raise UsageError(
            f"the evalset `{save_as}` is there and holds other items",
            hint="--replace writes over it, --as NAME writes beside it",
        )
    note_ = f"Made by `harness evalset synth {name} --seed {seed}`; edit the seeds, not this file."
    return Built(write_evalset(folder, header, made.items, note=note_, compact=True), made, True)


def show_built(built: Built, *, as_json: bool, quiet: bool) -> None:
    """Items, digest, discards; who filtered the set, if anybody did."""
    header, made = built.header, built.synthesis
    if as_json:
        emit_json(
            {
                "evalset": header.name,
                "splits": header.splits,
                "digests": header.digests,
                "new": built.fresh,
                "discarded": dict(made.discarded),
                "discard_rate": made.discard_rate,
                "filtered_by": header.filtered_by,
            }
        )
        return
    for split, digest in header.digests.items():
        shown = f"{header.name} {split}: {header.splits[split]} items, {digest}"
        line(digest if quiet else shown + ("" if built.fresh else ", as it was"))
    if quiet:
        return
    line(made.remarks())
    if header.filtered_by:
        note(f"filtered by {', '.join(header.filtered_by)}: not for headlines of that policy")
