"""A checkpoint folder of Qwen3.5's kind made of random numbers, with a draft head: no torch."""

import json
from pathlib import Path

import numpy as np

from harness_cli.models.mtp_layout import layout_of
from harness_cli.models.weights import Tensor
from harness_cli.models.weights_write import Made, made, write_safetensors

HIDDEN, WIDE, HEADS, KEPT, SIZE = 16, 32, 2, 1, 8
CONFIG = {
    "architectures": ["Qwen3_5ForCausalLM"],
    "model_type": "qwen3_5_text",
    "hidden_size": HIDDEN,
    "intermediate_size": WIDE,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KEPT,
    "head_dim": SIZE,
    "num_hidden_layers": 2,
    "mtp_num_hidden_layers": 1,
}
MOE = {
    **CONFIG,
    "model_type": "qwen3_5_moe_text",
    "num_experts": 4,
    "moe_intermediate_size": 8,
    "shared_expert_intermediate_size": 8,
}


def values(shape, seed: int, dtype: str = "BF16") -> Made:
    rng = np.random.default_rng(seed)
    return made(rng.normal(0, 0.02, shape).astype(np.float32), dtype)


def policy(seed: int = 0) -> dict[str, Made]:
    shapes = {
        "model.embed_tokens.weight": (64, HIDDEN),
        "model.norm.weight": (HIDDEN,),
        "model.layers.0.mlp.up_proj.weight": (WIDE, HIDDEN),
        "lm_head.weight": (64, HIDDEN),
    }
    return {name: values(shape, seed * 100 + n) for n, (name, shape) in enumerate(shapes.items())}


def head(config=CONFIG, seed: int = 7, dtype: str = "BF16", experts: str = "fused"):
    layout = layout_of(config, {})
    shapes = dict(layout.shapes)
    for some in layout.experts:
        shapes |= some.fused if experts == "fused" else some.each
    return {n: values(s, seed * 100 + k, dtype) for k, (n, s) in enumerate(sorted(shapes.items()))}


def save(folder: Path, tensors, config=CONFIG, shards: int = 1) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if shards == 1:
        write_safetensors(folder / "model.safetensors", tensors)
        return folder
    names = sorted(tensors)
    listed = {}
    for n in range(shards):
        file = f"model-{n + 1:05d}-of-{shards:05d}.safetensors"
        part = names[n::shards]
        write_safetensors(folder / file, {name: tensors[name] for name in part})
        listed |= dict.fromkeys(part, file)
    total = sum(t.size for t in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": listed}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def bytes_of(tensors: dict[str, Tensor]) -> dict[str, bytes]:
    return {name: t.data() for name, t in tensors.items()}
