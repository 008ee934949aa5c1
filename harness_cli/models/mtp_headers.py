"""What the headers and the config alone tell about a draft head: presence, names, shapes, types."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from harness_cli.models.mtp_layout import ELSEWHERE, OPTIONAL, PREFIX, Layout
from harness_cli.models.weights import FLOATS, Tensor, Weights, unlisted
from harness_cli.records.mtp import HeadFinding, HeadTrouble

PLAIN: Final = frozenset({"BF16", *FLOATS})
PACKED: Final = (
    ".qweight", ".qzeros", ".scales", ".weight_packed", ".weight_scale", ".weight_scale_inv",
    ".weight_shape", ".biases", ".g_idx", ".absmax", ".quant_map", ".weight_zero_point",
)  # fmt: skip
"""Endings of what stands in place of, or beside, a weight that was quantised (GPTQ, AWQ,
compressed-tensors, FP8 blocks, MLX, bitsandbytes)."""
NAMED: Final = 4
STITCH: Final = "harness mtp stitch BASE CHECKPOINT puts it back"


def finding(
    trouble: HeadTrouble,
    message: str,
    fix: str,
    tensors: list[str] | None = None,
    *,
    level: Literal["error", "warning"] = "error",
) -> HeadFinding:
    """A finding with at most twelve names in it: a head of 256 experts has 768 tensors."""
    names = sorted(tensors or [])
    return HeadFinding(
        trouble=trouble, level=level, message=message, fix=fix, tensors=tuple(names[:12])
    )


def _names(names: list[str]) -> str:
    listed = ", ".join(f"`{n}`" for n in sorted(names)[:NAMED])
    return listed + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def header_findings(
    weights: Weights,
    layout: Layout | None,
    head: Mapping[str, Tensor],
    config: Mapping[str, Any],
    steps: int | None,
) -> Iterator[HeadFinding]:
    """All that headers and config tell."""
    lost = {n: t for n, t in unlisted(weights).items() if n.startswith((PREFIX, *ELSEWHERE))}
    if lost:
        yield finding(
            "index",
            f"{len(lost)} tensors of a head lie in files for which the index does not name them: "
            f"{_names(list(lost))}",
            "harness mtp stitch FILE CHECKPOINT --replace puts them where they are read",
            list(lost),
        )
    yield from _index(weights)
    if layout is None:
        yield finding(
            "absent",
            "neither config nor weights speak of a draft head",
            "serve without speculation, or with a draft model of its own",
        )
        return
    yield from _config(layout, config, steps)
    moved = [n for n in weights.tensors if n.startswith(ELSEWHERE)]
    if moved:
        yield finding(
            "misnamed",
            f"a head under another name, where no server looks: {_names(moved)}",
            "harness mtp stitch CHECKPOINT CHECKPOINT --replace renames it to `mtp.`",
            moved,
        )
    if not head:
        yield finding("absent", "no tensor of the head is in the weights", STITCH)
        return
    yield from shape_findings(layout, head)
    yield from _types(layout, head, weights.tensors)


def _config(layout: Layout, config: Mapping[str, Any], steps: int | None) -> Iterator[HeadFinding]:
    if not layout.told:
        yield finding(
            "config",
            "the config does not say `mtp_num_hidden_layers`, which servers go by",
            "harness mtp stitch writes it",
            level="warning",
        )
    if layout.layers > 1:
        yield finding(
            "config",
            f"a head of {layout.layers} layers; SGLang serves the first and reuses it each step",
            "expect the accept length of one layer",
            level="warning",
        )
    if steps is not None and steps < 1:
        yield finding("steps", f"{steps} draft steps draft nothing", "1 or more; 3 is usual")
    if (config.get("text_config") or config).get("mtp_use_dedicated_embeddings"):
        yield finding(
            "config",
            "`mtp_use_dedicated_embeddings` is set; servers share the policy's embedding",
            "unset it, or expect drafts from other embeddings than were trained",
            level="warning",
        )


def _index(weights: Weights) -> Iterator[HeadFinding]:
    if weights.index is None:
        return
    ghosts = [n for n in weights.index if n not in weights.tensors]
    if ghosts:
        yield finding(
            "index",
            f"the index names tensors that their files do not hold: {_names(ghosts)}",
            "save or download the checkpoint anew",
            ghosts,
        )
    real = sum(t.size for t in weights.tensors.values())
    if not ghosts and weights.total_size not in (None, real):
        yield finding(
            "index",
            f"the index says {weights.total_size} bytes, its tensors have {real}",
            "harmless to servers; harness mtp stitch writes the sum",
            level="warning",
        )


def shape_findings(layout: Layout, head: Mapping[str, Tensor]) -> Iterator[HeadFinding]:
    """Tensors that are missing, of another shape, or of a name that nobody knows."""
    shapes = dict(layout.shapes)
    for experts in layout.experts:
        kind = experts.in_(head)
        shapes |= dict(experts.each if kind == "per-expert" else experts.fused)
        both = kind == "fused" and [n for n in experts.each if n in head]
        if both:
            yield finding(
                "experts",
                f"experts fused and one by one at once: {_names(both)}",
                "keep one form; SGLang reads either",
                both,
            )
    packed = {n for n in head if n.endswith(PACKED)}
    # A packed weight stands under other names than its plain one: `_types` speaks of it.
    stems = {n.rpartition(".")[0] for n in packed}
    missing = [n for n in shapes if n not in head and n.rpartition(".")[0] not in stems]
    if missing:
        yield finding(
            "missing",
            f"{len(missing)} of {len(shapes)} tensors of the head are missing: {_names(missing)}",
            STITCH,
            missing,
        )
    wrong = [
        n for n, shape in shapes.items()
        if n in head and shape is not None and head[n].shape != shape and _whole(head[n])
    ]  # fmt: skip
    for name in sorted(wrong)[:NAMED]:
        yield finding(
            "shape",
            f"`{name}` is {list(head[name].shape)}, the config asks for {list(shapes[name] or ())}",
            "the head is of another model: stitch the head of this policy's own base",
            [name],
        )
    known = {*shapes, *packed}
    odd = [n for n in head if n not in known and not n.endswith(OPTIONAL)]
    if odd and not wrong:
        yield finding(
            "misnamed",
            f"tensors that no server knows, passed over in silence: {_names(odd)}",
            "name them as the served model does, or leave them out",
            odd,
            level="warning",
        )


def _whole(tensor: Tensor) -> bool:
    return tensor.dtype in PLAIN or tensor.dtype.startswith("F8")


def _types(
    layout: Layout, head: Mapping[str, Tensor], tensors: Mapping[str, Tensor]
) -> Iterator[HeadFinding]:
    packed = [n for n, t in head.items() if t.dtype not in PLAIN or n.endswith(PACKED)]
    # A checkpoint whose own layers are quantised the same way was released so (DeepSeek-V3, FP8).
    alike = packed and all(
        n in layout.compared and tensors[layout.compared[n]].dtype == head[n].dtype for n in packed
    )
    if packed:
        yield finding(
            "quantised",
            f"{len(packed)} tensors of the head are quantised: {_names(packed)}",
            "keep the head in BF16: stitch the head of the unquantised base",
            packed,
            level="warning" if alike else "error",
        )
    plain = {t.dtype for n, t in head.items() if n not in packed}
    if len(plain) > 1:
        yield finding(
            "mixed_types",
            f"the head mixes {', '.join(sorted(plain))}",
            "harmless where the server casts; save it in one type",
            level="warning",
        )
