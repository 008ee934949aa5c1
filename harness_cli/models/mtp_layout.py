"""Names and shapes of the tensors of a draft head, from a checkpoint's config.

Qwen3-Next, Qwen3.5 and 3.6 keep the head under `mtp.`; DeepSeek-V3 and its kin (GLM-4-MoE) as one
more layer behind the last. Sources: SGLang 0.5.23 `models/qwen3_5_mtp.py` and `deepseek_nextn.py`.
Embedding and output head are the policy's own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness_cli.errors import BadFile
from harness_cli.models.weights import Tensor
from harness_cli.records.mtp import Family

PREFIX: Final = "mtp."
ELSEWHERE: Final = ("model.mtp.", "model.language_model.mtp.", "language_model.mtp.", "module.mtp.")
"""Where exporters put a head by mistake: no server looks there."""
QWEN_TYPES: Final = ("qwen3_5", "qwen3_6", "qwen3_next")
QWEN_LAYERS: Final = "mtp_num_hidden_layers"
DEEPSEEK_LAYERS: Final = "num_nextn_predict_layers"
OPTIONAL: Final = ("embed_tokens.weight", "shared_head.head.weight")
"""Copies of the policy's own that DeepSeek checkpoints carry; servers share the originals."""

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Experts:
    """The experts of one head layer: fused in two tensors, or three tensors each."""

    prefix: str
    fused: Mapping[str, Shape]
    each: Mapping[str, Shape]

    def in_(self, names: Iterable[str]) -> str | None:
        """`fused` or `per-expert`, by what is there; None when no expert is."""
        found = [n for n in names if n.startswith(self.prefix)]
        if any(n in self.fused for n in found):
            return "fused"
        return "per-expert" if found else None


@dataclass(frozen=True, slots=True)
class Layout:
    """What a head must consist of. `shapes` maps a name to its shape, None where any will do."""

    family: Family
    layers: int
    shapes: Mapping[str, Shape | None]
    experts: tuple[Experts, ...] = ()
    told: bool = True
    """Whether the config says that there is a head; else only tensors or the model type do."""
    compared: Mapping[str, str] = field(default_factory=dict)
    """Name → the policy's own tensor of the same kind (its last layer's)."""


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a config that describes the language model."""
    inner = config.get("text_config")
    return inner if isinstance(inner, dict) else config


def belongs(name: str, layout: Layout, config: Mapping[str, Any]) -> bool:
    """Whether a tensor is part of the head."""
    if layout.family == "qwen":
        return name.startswith(PREFIX)
    return any(name.startswith(p) for p in _deepseek_prefixes(text_config(config)))


def head_tensors(
    tensors: Mapping[str, Tensor], layout: Layout | None, config: Mapping[str, Any]
) -> dict[str, Tensor]:
    """The head's own tensors, none where a checkpoint has no head."""
    if layout is None:
        return {}
    return {name: t for name, t in tensors.items() if belongs(name, layout, config)}


def policy_tensors(tensors: Mapping[str, Tensor], head: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All that is not the head, nor a head in the wrong place."""
    kept = {n: t for n, t in tensors.items() if n not in head}
    return {n: t for n, t in kept.items() if not n.startswith(ELSEWHERE)}


def layout_of(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Layout | None:
    """The head that a checkpoint should have; None for models of a kind that has none.

    Raises `BadFile` for a config that lacks the sizes.
    """
    text = text_config(config)
    if _number(text, DEEPSEEK_LAYERS):
        return _deepseek(text, tensors)
    kind = str(text.get("model_type") or config.get("model_type") or "")
    told = _number(text, QWEN_LAYERS) or _number(config, QWEN_LAYERS)
    present = any(n.startswith((PREFIX, *ELSEWHERE)) for n in tensors)
    if told or present or kind.startswith(QWEN_TYPES):
        return _qwen(text, layers=told or 1, told=bool(told))
    return None


def _number(config: Mapping[str, Any], key: str) -> int:
    found = config.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def _size(config: Mapping[str, Any], *keys: str) -> int:
    for key in keys:
        if found := _number(config, key):
            return found
    raise BadFile(f"the config has no `{keys[0]}`", hint="without it no shape can be told")


def _qwen(text: Mapping[str, Any], *, layers: int, told: bool) -> Layout:
    hidden = _size(text, "hidden_size")
    shapes: dict[str, Shape | None] = {
        "mtp.fc.weight": (hidden, 2 * hidden),
        "mtp.pre_fc_norm_embedding.weight": (hidden,),
        "mtp.pre_fc_norm_hidden.weight": (hidden,),
        "mtp.norm.weight": (hidden,),
    }
    experts = []
    for n in range(layers):
        at = f"mtp.layers.{n}."
        shapes |= {at + name: shape for name, shape in _block(text, hidden).items()}
        if _number(text, "num_experts"):
            shapes |= {at + name: shape for name, shape in _shared(text, hidden).items()}
            experts.append(_experts(text, hidden, at + "mlp.experts."))
        else:
            wide = _size(text, "intermediate_size")
            shapes |= {at + f"mlp.{w}_proj.weight": (wide, hidden) for w in ("gate", "up")}
            shapes[at + "mlp.down_proj.weight"] = (hidden, wide)
    return Layout("qwen", layers, shapes, tuple(experts), told)


def _block(text: Mapping[str, Any], hidden: int) -> dict[str, Shape]:
    """Full attention with an output gate: q_proj holds query and gate of every head."""
    heads = _size(text, "num_attention_heads")
    kept = _number(text, "num_key_value_heads") or heads
    wide = _number(text, "head_dim") or hidden // heads
    gate = 1 if text.get("attn_output_gate") is False else 2
    rows = {"q": heads * wide * gate, "k": kept * wide, "v": kept * wide}
    shapes: dict[str, Shape] = {f"self_attn.{n}_proj.weight": (r, hidden) for n, r in rows.items()}
    shapes["self_attn.o_proj.weight"] = (hidden, heads * wide)
    if text.get("attention_bias"):
        shapes |= {f"self_attn.{n}_proj.bias": (r,) for n, r in rows.items()}
        shapes["self_attn.o_proj.bias"] = (hidden,)
    shapes |= {f"self_attn.{n}_norm.weight": (wide,) for n in ("q", "k")}
    return shapes | {f"{n}_layernorm.weight": (hidden,) for n in ("input", "post_attention")}


def _shared(text: Mapping[str, Any], hidden: int) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {"mlp.gate.weight": (_size(text, "num_experts"), hidden)}
    if wide := _number(text, "shared_expert_intermediate_size"):
        at = "mlp.shared_expert."
        shapes |= {f"{at}{w}_proj.weight": (wide, hidden) for w in ("gate", "up")}
        shapes[f"{at}down_proj.weight"] = (hidden, wide)
        shapes["mlp.shared_expert_gate.weight"] = (1, hidden)
    return shapes


def _experts(text: Mapping[str, Any], hidden: int, prefix: str) -> Experts:
    count, wide = _size(text, "num_experts"), _size(text, "moe_intermediate_size")
    each: dict[str, Shape] = {}
    for n in range(count):
        each |= {f"{prefix}{n}.{w}_proj.weight": (wide, hidden) for w in ("gate", "up")}
        each[f"{prefix}{n}.down_proj.weight"] = (hidden, wide)
    fused = {
        f"{prefix}gate_up_proj": (count, 2 * wide, hidden),
        f"{prefix}down_proj": (count, hidden, wide),
    }
    return Experts(prefix, fused, each)


def _deepseek_prefixes(text: Mapping[str, Any]) -> list[str]:
    last = _size(text, "num_hidden_layers")
    return [f"model.layers.{last + n}." for n in range(_number(text, DEEPSEEK_LAYERS))]


def _deepseek(text: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Layout:
    """Own norms and projection; the block is shaped as the policy's last layer is."""
    hidden, last = _size(text, "hidden_size"), _size(text, "num_hidden_layers")
    before = f"model.layers.{last - 1}."
    block = [n.removeprefix(before) for n in tensors if n.startswith(before)]
    shapes: dict[str, Shape | None] = {}
    compared: dict[str, str] = {}
    for at in _deepseek_prefixes(text):
        shapes |= {at + n: tensors[before + n].shape for n in block}
        compared |= {at + n: before + n for n in block}
        shapes |= {
            f"{at}enorm.weight": (hidden,),
            f"{at}hnorm.weight": (hidden,),
            f"{at}eh_proj.weight": (hidden, 2 * hidden),
            f"{at}shared_head.norm.weight": (hidden,),
        }
    return Layout(
        "deepseek", _number(text, DEEPSEEK_LAYERS), shapes, (), told=True, compared=compared
    )
