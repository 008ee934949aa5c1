"""Is there a draft head in this checkpoint that will draft? Asked before a server is started.

Servers do not ask: SGLang loads what it finds, warns once about what it does not know, and leaves
parameters that it misses as they were allocated. The head then drafts noise and accept length stays
at 1.00 (sglang #35797, ms-swift #9802, vllm-mlx #471; reference: TR App. F.1).
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

import numpy as np

from harness_cli.errors import BadFile
from harness_cli.models.mtp_headers import PLAIN, STITCH, finding, header_findings
from harness_cli.models.mtp_layout import Layout, head_tensors, layout_of, policy_tensors
from harness_cli.models.weights import Tensor, config_of, digest_of, read_weights
from harness_cli.records.mtp import HeadFinding, HeadProvenance, HeadReport
from harness_cli.records.reader import read_json

PROVENANCE: Final = "mtp_provenance.json"
"""Beside the weights of a checkpoint whose head was put there by this program."""


def check_head(
    place: Path, *, steps: int | None = None, values: bool = True, digests: bool = True
) -> HeadReport:
    """What is wrong with the draft head of a checkpoint folder.

    `values`: read the head's numbers (1.6 GB for a 35B-A3B) for NaN, infinity and tensors that are
    all zero. `digests`: read all weights, to tell whether the policy moved on since the head was
    put there; only where a provenance file says whom it was for. `steps`: draft steps that the
    server is to take. Raises `BadFile` for a folder that cannot be read at all.
    """
    config, weights = config_of(place), read_weights(place)
    layout = layout_of(config, weights.tensors)
    head = head_tensors(weights.tensors, layout, config)
    findings = list(header_findings(weights, layout, head, config, steps))
    if values:
        findings += value_findings(head)
    provenance, said = provenance_of(place)
    findings += said
    head_digest = digest_of(head) if head and values else None
    policy_digest = None
    if provenance is not None and digests and head:
        policy_digest = digest_of(policy_tensors(weights.tensors, head))
        findings += _stale(provenance, head_digest, policy_digest)
    return HeadReport(
        checkpoint=str(place),
        family=layout.family if layout else None,
        layers=layout.layers if layout else 0,
        tensors=len(head),
        parameters=sum(t.count for t in head.values()),
        dtypes=tuple(sorted({t.dtype for t in head.values()})),
        experts=_kind(layout, head),
        head_digest=head_digest,
        policy_digest=policy_digest,
        provenance=provenance,
        findings=tuple(sorted(findings, key=lambda f: f.level)),
    )


def _kind(
    layout: Layout | None, head: Mapping[str, Tensor]
) -> Literal["none", "fused", "per-expert"]:
    kinds = {e.in_(head) for e in layout.experts} if layout else set()
    if "fused" in kinds:
        return "fused"
    return "per-expert" if "per-expert" in kinds else "none"


def value_findings(head: Mapping[str, Tensor]) -> Iterator[HeadFinding]:
    """What the numbers of a head tell: NaN, infinity, a matrix that is all zero."""
    for name in sorted(head):
        tensor = head[name]
        if tensor.dtype not in PLAIN or tensor.count == 0:
            continue
        bad, nonzero = 0, False
        for piece in tensor.floats():
            bad += int(piece.size - np.count_nonzero(np.isfinite(piece)))
            nonzero = nonzero or bool(piece.any())
        if bad:
            yield finding(
                "non_finite",
                f"{bad} of {tensor.count} values of `{name}` are NaN or infinite",
                "the head diverged or the file is damaged: stitch a sound one",
                [name],
            )
        elif not nonzero and len(tensor.shape) > 1 and math.prod(tensor.shape) > 1:
            # Norms of this family are 1 + w: all zero is a fresh one, and right.
            yield finding(
                "zero",
                f"`{name}` is all zero: it was never trained or never copied",
                STITCH,
                [name],
            )


def provenance_of(place: Path) -> tuple[HeadProvenance | None, list[HeadFinding]]:
    """Where the head of a folder comes from, and a finding when its file cannot be read."""
    path = place / PROVENANCE
    if not path.is_file():
        return None, []
    try:
        return read_json(path, HeadProvenance, name=str(path)), []
    except BadFile as exc:
        fix = f"remove {PROVENANCE}, or stitch anew"
        return None, [finding("provenance", str(exc), fix, level="warning")]


def _stale(
    provenance: HeadProvenance, head_digest: str | None, policy_digest: str
) -> Iterator[HeadFinding]:
    if head_digest is not None and head_digest != provenance.head_digest:
        yield finding(
            "provenance",
            f"the head is not the one that {PROVENANCE} speaks of",
            "stitch it anew, so that its origin is known",
            level="warning",
        )
    elif policy_digest != provenance.policy_digest:
        yield finding(
            "stale",
            "the policy's weights changed since the head was put there: acceptance falls",
            "harness train mtp on rollouts of the new weights",
        )
    elif provenance.trained_for != policy_digest:
        yield finding(
            "stale",
            f"the head ({provenance.origin}) was not trained for these weights",
            "harness train mtp on rollouts of this policy; measure the accept length",
            level="warning",
        )
