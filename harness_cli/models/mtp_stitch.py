"""A draft head put back into a checkpoint that lost it.

transformers drops `mtp.*` when a model is saved, while its config goes on to promise a head; every
merge of an adapter loses it so. The head is copied from the base or from a trained one, checked
against the config, and its origin written down.

Nothing is half done: a shard of its own is written first, then the index is switched to it, and a
single file is replaced whole. A killed program leaves the old checkpoint, and at most a stray file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from harness_cli import __version__
from harness_cli.errors import BadFile, UsageError
from harness_cli.models.mtp_check import PROVENANCE, provenance_of, value_findings
from harness_cli.models.mtp_headers import shape_findings
from harness_cli.models.mtp_layout import (
    ELSEWHERE,
    PREFIX,
    QWEN_LAYERS,
    Layout,
    head_tensors,
    layout_of,
    policy_tensors,
)
from harness_cli.models.weights import (
    CONFIG,
    INDEX,
    Tensor,
    Weights,
    config_of,
    digest_of,
    read_weights,
    unlisted,
)
from harness_cli.models.weights_write import Written, as_bf16, renamed, write_safetensors
from harness_cli.records.canonical import write_json
from harness_cli.records.mtp import HeadOrigin, HeadProvenance

BARE: Final = ("fc.weight", "pre_fc_norm_hidden.weight")
"""A file that holds these holds a head without its prefix."""
METADATA: Final = ("trained_for", "origin", "steps")
"""Keys that `harness train mtp` writes into the head's own file."""


@dataclass(frozen=True, slots=True)
class Source:
    """A head and what is known about it."""

    place: Path
    head: Mapping[str, Tensor]
    policy_digest: str | None
    provenance: HeadProvenance | None
    metadata: Mapping[str, str]


def stitch(
    source: Path,
    checkpoint: Path,
    *,
    replace: bool = False,
    native: bool = False,
    named: str | None = None,
) -> HeadProvenance:
    """Put the head of `source` (a checkpoint folder or a file) into `checkpoint`.

    A float32 head becomes BF16 where the policy is BF16. `native` says that the two were trained
    together, which only their maker knows; `named` stands for the source in the record. Raises
    `BadFile` when there is no head in the source or it is not of this policy's shape, `UsageError`
    when the checkpoint has another head already and `replace` is not given.
    """
    config, weights = config_of(checkpoint), read_weights(checkpoint)
    found = read_source(source, config)
    own = layout_of(config, {**weights.tensors, **found.head})
    if own is None:
        raise BadFile(f"`{checkpoint}` is of a kind of model that has no draft head")
    _fits(found, own)
    there = head_tensors(weights.tensors, own, config)
    policy = policy_tensors(weights.tensors, there)
    moved = [n for n in weights.tensors if n.startswith(ELSEWHERE)]
    head = _typed(found.head, policy)
    digest = digest_of(head)
    if ((there and digest_of(there) != digest) or moved) and not replace:
        raise UsageError(
            f"`{checkpoint}` has a head already, and another one", hint="--replace takes its place"
        )
    record = _record(found, digest, digest_of(policy), native=native, named=named)
    gone = {*there, *moved, *head}
    if weights.index is None:
        _into_file(weights, head, gone)
    else:
        _into_index(weights, head, gone, digest)
    _tell_config(checkpoint, config, own)
    write_json(checkpoint / PROVENANCE, record)
    return record


def read_source(place: Path, config: Mapping[str, Any]) -> Source:
    """The head of a folder or file, under the names that servers look for.

    `config` stands in where the source is a file or a folder without one. Raises `BadFile`.
    """
    weights = read_weights(place)
    tensors = dict(weights.tensors)
    tensors |= {n: t for n, t in unlisted(weights).items() if n not in tensors}
    whole = config_of(place) if (place / CONFIG).is_file() else config
    if all(n in tensors for n in BARE):
        tensors = {PREFIX + n: t for n, t in tensors.items()}
    for wrong in ELSEWHERE:
        tensors = {_moved(n, wrong): t for n, t in tensors.items()}
    layout = layout_of(whole, tensors)
    head = head_tensors(tensors, layout, whole)
    if not head:
        raise BadFile(
            f"no draft head in `{place}`", hint="the base model's folder, or a trained head"
        )
    policy = policy_tensors(tensors, head)
    return Source(
        place,
        head,
        digest_of(policy) if policy else None,
        provenance_of(place)[0] if place.is_dir() else None,
        weights.metadata or {},
    )


def _moved(name: str, wrong: str) -> str:
    return PREFIX + name.removeprefix(wrong) if name.startswith(wrong) else name


def _fits(found: Source, layout: Layout) -> None:
    wrong = [f for f in shape_findings(layout, found.head) if f.level == "error"]
    wrong += [f for f in value_findings(found.head) if f.level == "error"]
    if wrong:
        raise BadFile(
            f"the head of `{found.place}` does not fit: " + "; ".join(f.message for f in wrong[:4]),
            hint=wrong[0].fix if wrong[0].trouble != "missing" else "a whole head is needed",
        )


def _typed(head: Mapping[str, Tensor], policy: Mapping[str, Tensor]) -> dict[str, Written]:
    halves = sum(t.size for t in policy.values() if t.dtype == "BF16")
    wide = 2 * halves > sum(t.size for t in policy.values())
    return {n: renamed(as_bf16(t) if wide else t, n) for n, t in head.items()}


def _record(
    found: Source, digest: str, policy_digest: str, *, native: bool, named: str | None
) -> HeadProvenance:
    before = found.provenance
    trained_for = before.trained_for if before else found.metadata.get("trained_for")
    steps = before.steps if before else _whole(found.metadata.get("steps"))
    origin: HeadOrigin = "transplanted"
    if native or (found.policy_digest == policy_digest and before is None):
        origin, trained_for = "native", policy_digest
    elif trained_for == policy_digest:
        origin = before.origin if before else "trained"
    return HeadProvenance(
        origin=origin,
        head_digest=digest,
        policy_digest=policy_digest,
        trained_for=trained_for or found.policy_digest,
        source=named or str(found.place),
        source_digest=found.policy_digest,
        steps=steps,
        made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        by=f"harness mtp stitch {__version__}",
    )


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _into_file(weights: Weights, head: Mapping[str, Written], gone: set[str]) -> None:
    """All in one file again: no index that some readers know of and others do not."""
    if len(weights.files) != 1:
        raise BadFile(
            f"`{weights.place}` holds {len(weights.files)} weight files and no {INDEX}",
            hint="save the checkpoint anew",
        )
    kept: dict[str, Written] = {n: t for n, t in weights.tensors.items() if n not in gone}
    write_safetensors(weights.files[0], {**kept, **head}, weights.metadata)


def _into_index(weights: Weights, head: Mapping[str, Written], gone: set[str], digest: str) -> None:
    """A shard of its own, the index switched to it, then old copies taken out of their shards."""
    name = f"model-mtp-{digest[:8]}.safetensors"
    write_safetensors(weights.place / name, head)
    kept = {n: f for n, f in (weights.index or {}).items() if n not in gone}
    total = sum(t.size for n, t in weights.tensors.items() if n in kept)
    total += sum(t.size for t in head.values())
    listed = dict(sorted({**kept, **dict.fromkeys(head, name)}.items()))
    write_json(weights.place / INDEX, {"metadata": {"total_size": total}, "weight_map": listed})
    for path in sorted(weights.place.glob("*.safetensors")):
        if path.name != name:
            _without(path, gone)


def _without(path: Path, gone: set[str]) -> None:
    found = read_weights(path)
    left: dict[str, Written] = {n: t for n, t in found.tensors.items() if n not in gone}
    if len(left) == len(found.tensors):
        return
    if left:
        write_safetensors(path, left, found.metadata)
    else:
        path.unlink()


def _tell_config(checkpoint: Path, config: dict[str, Any], layout: Layout) -> None:
    if layout.family != "qwen" or layout.told:
        return
    inner = config.get("text_config")
    (inner if isinstance(inner, dict) else config)[QWEN_LAYERS] = layout.layers
    write_json(checkpoint / CONFIG, config)
