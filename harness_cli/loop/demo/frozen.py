"""What the demo's claim rests on: base harness, items, catalogue and baseline policy, by digest.

`evalsets/frozen.yaml` keeps one entry a freeze, with its reason; the last one holds. Whatever is
not as it says is listed by the demo, which measures the base anew in any case.
"""

import msgspec

from harness_cli.evaluation.evalsets import load_header
from harness_cli.harness.load import load_state
from harness_cli.models.open import open_policy
from harness_cli.records.reader import read_yaml
from harness_cli.store.catalogue import read_catalogue
from harness_cli.store.project import Project

FILE = "frozen.yaml"
EVALSETS = ("live_stream_qa", "deploy_replay", "general_instructions")


class Freeze(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One freeze: why it was made, and the digests it holds."""

    at: str
    reason: str
    catalogue: str
    harness: str
    builtin: str = ""
    """Id of the policy; empty while it was not frozen yet."""
    live_stream_qa: dict[str, str] = {}
    deploy_replay: dict[str, str] = {}
    general_instructions: dict[str, str] = {}


class FreezeRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`evalsets/frozen.yaml`, oldest first."""

    schema: int = 1
    frozen: tuple[Freeze, ...]


def read_freezes(project: Project) -> tuple[Freeze, ...]:
    """Every freeze of a project's evalsets; none where no record is kept."""
    path = project.evalsets / FILE
    return read_yaml(path, FreezeRecord, name=FILE).frozen if path.is_file() else ()


def frozen_differences(project: Project) -> list[str]:
    """What is not as it was last frozen, in words; empty when everything is."""
    freezes = read_freezes(project)
    if not freezes:
        return ["nothing was frozen"]
    last = freezes[-1]
    name, config = project.policy("builtin")
    pairs = [
        ("the base harness", last.harness, load_state(project).id),
        ("the catalogue", last.catalogue, read_catalogue(project.evalsets / "catalogue").digest),
        ("the policy `builtin`", last.builtin, open_policy(name, config, root=project.root).id),
    ]
    for evalset in EVALSETS:
        now = load_header(project, evalset).digests
        pairs.append((f"the items of `{evalset}`", str(getattr(last, evalset)), str(now)))
    return [f"{what} changed" for what, before, now in pairs if before != now]
