"""A checkpoint of Qwen3.5's kind that vLLM's CPU build can serve, with a draft head that drafts.

Heads of 128, since its attention has kernels for no small ones. The policy says six letters in a
round, whatever it is asked; its head is trained by Eq. 6 until it foresees them.

    python tests/serving/vllm_checkpoint.py FOLDER      # some twenty seconds
"""

import sys
from pathlib import Path

import torch
from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

from harness_cli.models.checkpoint_head import DraftHead, as_tensors
from harness_cli.models.mtp_stitch import stitch
from harness_cli.models.weights_write import write_safetensors
from harness_cli.training.chatml import END, write_tokenizer
from harness_cli.training.mtp.loss import Batch, mtp_loss

ROUND = "abcdef"
DEPTHS, LENGTH, STEPS = 3, 48, 80
TEMPLATE = "{% for m in messages %}{{ m.content }}\n{% endfor %}"


def make(folder: Path, seed: int = 0) -> Path:
    """Policy, tokenizer and head in `folder`; gives it back."""
    tokenizer = write_tokenizer(folder, template=TEMPLATE)
    torch.manual_seed(seed)
    end = tokenizer.token_to_id(END)
    model = Qwen3_5ForCausalLM(_config(tokenizer.get_vocab_size(), end))
    rows = _rows(tokenizer)
    _fit(model.parameters(), lambda: model(input_ids=rows.ids, labels=rows.ids).loss)
    model.save_pretrained(folder)
    head = DraftHead(model.config)
    head.initialise(seed)
    with torch.no_grad():
        hidden = model.model(input_ids=rows.ids, use_cache=False).last_hidden_state
    _fit(head.parameters(), lambda: mtp_loss(head, model, hidden, rows, DEPTHS).total)
    part = folder / "head.part"
    write_safetensors(part, as_tensors(head, "F32"))
    stitch(part, folder, native=True, named="made for vLLM on the CPU")
    part.unlink()
    return folder


def _config(vocabulary: int, end: int) -> Qwen3_5TextConfig:
    return Qwen3_5TextConfig(
        vocab_size=vocabulary,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=128,
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        max_position_embeddings=1024,
        mtp_num_hidden_layers=1,
        tie_word_embeddings=False,
        eos_token_id=end,
    )


def _rows(tokenizer) -> Batch:
    """The round, begun anywhere, behind a short question."""
    letters = ROUND * LENGTH
    rows = [f"hi {n}\n{letters[n % 6 :]}" for n in range(12)]
    ids = torch.tensor([tokenizer.encode(row).ids[:LENGTH] for row in rows])
    return Batch(ids, torch.full((len(rows),), 5), torch.full((len(rows),), LENGTH))


def _fit(parameters, loss_of) -> None:
    optimiser = torch.optim.AdamW(list(parameters), lr=4e-3, weight_decay=0.0)
    for _ in range(STEPS):
        loss = loss_of()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
    print(f"loss {float(loss.detach()):.4f}", file=sys.stderr)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
