"""The tiny base: circuits it begins with, and a pretraining that goes on where it was killed."""

import json
from random import Random

import pytest
import torch

from harness_cli.training.tiny.base import Base, Settings, make_base
from harness_cli.training.tiny.initial import make_model

SMALL = Settings(steps=4, tokens=400, seed=5, save_every=2)


def losses(folder, steps):
    base = Base(folder, SMALL)
    found = []
    while base.progress.step < steps:
        found.append(base.step()["loss"])
    return base, found


def test_a_killed_pretraining_goes_on_to_the_same_losses(tmp_path):
    _, whole = losses(tmp_path / "whole", 4)
    base, first = losses(tmp_path / "killed", 2)
    base.save()
    del base
    _, rest = losses(tmp_path / "killed", 4)
    assert first + rest == pytest.approx(whole, rel=1e-6)


def test_a_made_base_is_a_checkpoint_and_is_not_made_again(tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = make_base(tmp_path / "base", SMALL)
    weights = (folder / "model.safetensors").stat().st_mtime_ns
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert model.config.vocab_size == len(tokenizer)
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hello"}], tokenize=False, add_generation_prompt=True
    )
    assert text == "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
    assert make_base(folder, SMALL) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == weights
    assert [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()] == []


def test_the_first_weights_already_copy_what_followed_an_earlier_occurrence():
    model = make_model(300, (), seed=1).eval()
    draw = Random(2)
    right = 0
    for _ in range(40):
        row = draw.sample(range(300), 20)
        at = draw.randrange(2, 17)
        with torch.no_grad():
            scores = model(input_ids=torch.tensor([[*row, row[at]]])).logits[0, -1]
        others = [t for t in row if t != row[at]]
        right += max(others, key=lambda t: scores[t].item()) == row[at + 1]
    assert right >= 10  # of 40; chance is 2


def test_words_with_and_without_a_blank_begin_alike():
    model = make_model(300, [(5, 9)], seed=1)
    table = model.model.embed_tokens.weight
    alike = torch.nn.functional.cosine_similarity(table[5], table[9], dim=0).item()
    other = torch.nn.functional.cosine_similarity(table[5], table[10], dim=0).item()
    assert alike > 0.6 > abs(other)
