"""A random Qwen3.5 of two layers and a head for it: a moment to make, nothing learnt."""

from pathlib import Path

import torch
import transformers

from harness_cli.models.checkpoint_head import DraftHead, as_tensors
from harness_cli.models.mtp_stitch import stitch
from harness_cli.models.weights_write import write_safetensors

VOCABULARY = 48


def config(**more):
    told = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "layer_types": ["linear_attention", "full_attention"],
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "max_position_embeddings": 512,
        "mtp_num_hidden_layers": 1,
        "tie_word_embeddings": False,
    }
    return transformers.Qwen3_5TextConfig(**(told | more))


def policy(seed: int = 0, sharpness: float = 6.0):
    """Sharp distributions: no two tokens are so near that rounding decides between them."""
    torch.manual_seed(seed)
    model = transformers.Qwen3_5ForCausalLM(config()).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 and "conv" not in name:
                parameter.mul_(sharpness)
    return model


def head_for(model, seed: int = 1) -> DraftHead:
    head = DraftHead(model.config).eval()
    head.initialise(seed)
    return head


def save(model, folder: Path, head: DraftHead | None = None, dtype: str = "F32") -> Path:
    model.save_pretrained(folder)
    if head is not None:
        part = folder.parent / f"{folder.name}-head.safetensors"
        write_safetensors(part, as_tensors(head, dtype))
        stitch(part, folder, native=True)
    return folder
