"""Tokenizers made here: byte-level BPE with ChatML's special tokens, written as a model has it."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

END: Final = "<|im_end|>"
PAD: Final = "<|endoftext|>"
START: Final = "<|im_start|>"
SPECIAL: Final = (PAD, START, END)
LEAST: Final = 256 + len(SPECIAL)
"""The vocabulary of bytes alone."""
FILES: Final = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


def write_tokenizer(
    folder: Path,
    texts: Iterable[str] = (),
    *,
    template: str,
    vocabulary: int = LEAST,
    context: int = 1_000_000,
    digits_alone: bool = False,
    pieces: Sequence[str] = (),
) -> Tokenizer:
    """Write `FILES`: merges are learnt from `texts` up to `vocabulary` tokens; bytes alone without.

    `pieces` are one token each, whatever was learnt; `digits_alone` keeps numbers apart digit by
    digit; `context` is the longest text that the settings name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = Tokenizer(BPE())
    by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.pre_tokenizer = by_bytes
    if digits_alone:
        digits = pre_tokenizers.Digits(individual_digits=True)
        made.pre_tokenizer = pre_tokenizers.Sequence([digits, by_bytes])
    made.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=max(vocabulary, LEAST),
        special_tokens=[AddedToken(t, special=True, normalized=False) for t in SPECIAL],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    made.add_tokens([AddedToken(p, special=False, normalized=False) for p in pieces])
    made.save(str(folder / FILES[0]))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": PAD,
        "clean_up_tokenization_spaces": False,
        "model_max_length": context,
    }
    (folder / FILES[1]).write_text(json.dumps(settings), encoding="utf-8")
    (folder / FILES[2]).write_text(template, encoding="utf-8")
    return made
