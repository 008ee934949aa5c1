"""What the demo's claim rests on: base harness, items and baseline policy, frozen by digest.

`evalsets/frozen.json` was written before the proposer was first run on any of them. A later change
is listed by the demo, which measures the base anew in any case.
"""

import sys
from pathlib import Path

import msgspec

from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.harness.load import load_state
from harness_cli.models.open import open_policy
from harness_cli.records.canonical import write_json
from harness_cli.records.reader import read_json
from harness_cli.store.project import Project

FILE = "frozen.json"
EVALSETS = (("live_stream_qa", "dev"), ("deploy_replay", None), ("general_instructions", None))


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """Digests of what the demo starts from."""

    schema: int = 1
    harness: str
    policy: str
    catalogue: str
    evalsets: dict[str, str]


def present(project: Project) -> Frozen:
    """The digests as they are now. The sealed test split is not opened for this."""
    found = {}
    catalogue = ""
    for name, split in EVALSETS:
        evalset = load_evalset(project, name, split=split)
        found[name if split is None else f"{name}/{split}"] = evalset.digest
        catalogue = evalset.world.digest
    name, config = project.policy("builtin")
    return Frozen(
        harness=load_state(project).id,
        policy=open_policy(name, config, root=project.root).id,
        catalogue=catalogue,
        evalsets=found,
    )


def frozen_differences(project: Project) -> list[str]:
    """What is not as it was frozen, in words; empty when everything is."""
    path = project.evalsets / FILE
    if not path.is_file():
        return ["nothing was frozen"]
    before, now = read_json(path, Frozen, name=FILE), present(project)
    changed = [
        f"the {what} changed"
        for what, a, b in (
            ("base harness", before.harness, now.harness),
            ("policy `builtin`", before.policy, now.policy),
            ("catalogue", before.catalogue, now.catalogue),
        )
        if a != b
    ]
    keys = sorted({*before.evalsets, *now.evalsets})
    return changed + [
        f"the items of {key} changed"
        for key in keys
        if before.evalsets.get(key) != now.evalsets.get(key)
    ]


if __name__ == "__main__":
    here = Project.find(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    write_json(here.evalsets / FILE, present(here))
