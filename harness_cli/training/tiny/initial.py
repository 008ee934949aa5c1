"""The tiny model and where its weights begin: near circuits that are known to do look-ups.

A transformer finds copying and looking up by a phase change that costs tens of millions of tokens;
two cores have an hour. So attention layers begin close to what trained models have been found to
hold: heads that look one token back (by their biases and the rotary part of the head), heads that
find an earlier occurrence and copy what followed it, and heads that compare what was said lately.
Sources: Olsson et al. 2022, "In-context Learning and Induction Heads"; Trockman and Kolter 2023,
"Mimetic Initialization of Self-Attention Layers". Training then does what it likes with them.

Shapes: hidden `d`, heads of `d / heads`, of which the first quarter is rotary.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from transformers import StableLmConfig, StableLmForCausalLM

HIDDEN: Final = 128
HEADS: Final = 4
LAYERS: Final = 4
INNER: Final = 128
CONTEXT: Final = 2048
ROTARY: Final = 0.25
THETA: Final = 100.0
SHARP: Final = 3.0
"""Gain of heads that compare single tokens."""
GATHERED: Final = 9.0
"""Gain of heads that compare what was gathered from several tokens, which is weaker."""
BACK: Final = 10.0
"""How sharply a head looks one token back."""


def make_model(vocabulary: int, pairs: Sequence[tuple[int, int]], seed: int) -> Any:
    """A StableLM-type model of some 0.6 M parameters in float32.

    `pairs` are tokens of one word, without and with a blank before it: they begin alike.
    """
    torch.manual_seed(seed)
    rotary = {"rope_type": "default", "rope_theta": THETA, "partial_rotary_factor": ROTARY}
    config = StableLmConfig(
        vocab_size=vocabulary,
        hidden_size=HIDDEN,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        use_qkv_bias=True,
        rope_parameters=rotary,
        initializer_range=0.02,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    model = StableLmForCausalLM(config)
    with torch.no_grad():
        _embeddings(model.model.embed_tokens.weight, pairs)
        _circuits([layer.self_attn for layer in model.model.layers])
    return model


def _embeddings(table: Tensor, pairs: Sequence[tuple[int, int]]) -> None:
    """Rows of length about 1; a word with a blank before it is the word and a common direction."""
    table.copy_(torch.randn_like(table) / math.sqrt(HIDDEN))
    blank = torch.randn(HIDDEN) / math.sqrt(HIDDEN)
    for bare, spaced in pairs:
        mixed = 0.85 * table[bare] + 0.4 * blank + 0.35 * table[spaced]
        table[spaced] = mixed / mixed.norm()


def _circuits(layers: Sequence[Any]) -> None:
    size = HIDDEN // HEADS
    first, second, *rest = layers
    carried = _carry(first)
    for head in (0, 1):
        _look_back(first, head, 1.0, (BACK,) * 4)
    _look_back(first, 2, 2.0, (BACK,) * 4)
    _look_back(first, 3, 1.5, (0.0, 4.0, 4.0, 0.0))
    before = carried((0, 1))
    gathered = _carry(second)
    _look_back(second, 3, 2.0, (0.0, 2.0, 3.0, 0.0))
    lately = gathered((3,))
    whole = torch.eye(HIDDEN)
    parts = _orthogonal()
    for head in (0, 1, 2):
        _compare(second, head, [(whole, before.T, SHARP)])
        _copy(second, head, parts[head * size : (head + 1) * size])
    for layer in rest:
        parts = _orthogonal()
        for head in range(HEADS):
            same = [(whole, before.T, SHARP)]
            _compare(layer, head, [*same, (lately.T, lately.T, GATHERED)] if head < 2 else same)
            _copy(layer, head, parts[head * size : (head + 1) * size])


def _orthogonal() -> Tensor:
    made, _ = torch.linalg.qr(torch.randn(HIDDEN, HIDDEN))
    return made


def _rows(head: int) -> slice:
    size = HIDDEN // HEADS
    return slice(head * size, (head + 1) * size)


def _carry(layer: Any) -> Any:
    """Values go into a random rotation of the residual; gives the map of chosen heads."""
    into, out = _orthogonal(), _orthogonal()
    layer.v_proj.weight.copy_(into)
    layer.o_proj.weight.copy_(out / math.sqrt(HIDDEN))

    def of(heads: Sequence[int]) -> Tensor:
        return sum((out[:, _rows(h)] @ into[_rows(h)] for h in heads), torch.zeros(1))

    return of


def _look_back(layer: Any, head: int, tokens: float, weights: Sequence[float]) -> None:
    """The head's biases alone make a score that is highest `tokens` back.

    Rotated by their positions, b_q · b_k is Σ_i w_i cos(θ_i (Δ − tokens)) over the rotary pairs.
    """
    size = HIDDEN // HEADS
    rotary = int(size * ROTARY)
    query, key = torch.zeros(size), torch.zeros(size)
    for i, weight in enumerate(weights):
        frequency = THETA ** (-2 * i / rotary)
        length = math.sqrt(weight * math.sqrt(size))
        key[i] = length
        query[i] = length * math.cos(tokens * frequency)
        query[i + rotary // 2] = -length * math.sin(tokens * frequency)
    layer.q_proj.bias[_rows(head)] = query
    layer.k_proj.bias[_rows(head)] = key
    layer.q_proj.weight[_rows(head)] *= 0.3
    layer.k_proj.weight[_rows(head)] *= 0.3


def _compare(layer: Any, head: int, pairs: Sequence[tuple[Tensor, Tensor, float]]) -> None:
    """The score is the sum over pairs of ⟨left x_query, right x_key⟩, each in random dimensions."""
    size = HIDDEN // HEADS
    rotary = int(size * ROTARY)
    each = (size - rotary) // len(pairs)
    directions = _orthogonal()
    query, key = torch.zeros(size, HIDDEN), torch.zeros(size, HIDDEN)
    for number, (left, right, gain) in enumerate(pairs):
        chosen = directions[number * each : (number + 1) * each] * gain
        place = slice(rotary + number * each, rotary + (number + 1) * each)
        query[place], key[place] = chosen @ left, chosen @ right
    layer.q_proj.weight[_rows(head)] = query
    layer.k_proj.weight[_rows(head)] = key


def _copy(layer: Any, head: int, part: Tensor) -> None:
    """The head writes what it reads: values and outputs are transposes of one another."""
    layer.v_proj.weight[_rows(head)] = part
    layer.o_proj.weight[:, _rows(head)] = part.T * (2 / math.sqrt(HIDDEN))


def save_model(model: Any, folder: Path, *, end: int, pad: int) -> None:
    """Write the checkpoint beside its tokenizer."""
    model.config.eos_token_id, model.config.pad_token_id = end, pad
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = end, pad
    model.save_pretrained(folder)
