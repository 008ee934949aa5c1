"""Tiny models of Qwen3.5's kind, made here: a policy to draft for where there is no real one.

`standin-base` learns one dialect of synthetic text and gets a head of its own, as from a factory;
`standin-task` is trained on from it on another, and loses the head when it is saved, as every such
checkpoint does; `standin-moved` is trained on from that. They say nothing about quality.
"""

import shutil
from collections.abc import Callable, Iterable
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import torch
import transformers
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy

from harness_cli.models.checkpoint_head import DraftHead, as_tensors
from harness_cli.models.checkpoint_model import load_model, quiet
from harness_cli.models.mtp_stitch import stitch
from harness_cli.models.weights_write import write_safetensors
from harness_cli.records.checkpoint import BaseModel, Checkpoint, ServedAs
from harness_cli.store.checkpoints import checkpoints_folder, read_checkpoint, register
from harness_cli.training.chatml import END, FILES, PAD, write_tokenizer
from harness_cli.training.job_folder import now
from harness_cli.training.mtp.loss import Batch, mtp_loss
from harness_cli.training.mtp.standin_text import Dialect, turns

VOCABULARY: Final = 4096
CONTEXT: Final = 16_384
BATCH: Final = 16
LR: Final = 4e-3
NAMES: Final[dict[str, Dialect]] = {
    "standin-base": "base",
    "standin-task": "task",
    "standin-moved": "moved",
}
Observe = Callable[[str, int, int], None]
"""name, step, steps"""


def make_standins(
    root: Path, steps: int, observe: Observe, *, texts: Iterable[str] = (), seed: int = 0
) -> None:
    """Register those of the three checkpoints that are not there yet.

    The tokenizer learns from `texts` as well: an agent's prompt should not be all single bytes.
    """
    quiet()
    before: Checkpoint | None = None
    for name, dialect in NAMES.items():
        folder = checkpoints_folder(root) / name
        known = read_checkpoint(folder) if folder.is_dir() else None
        if known is None:
            known = _make(root, name, dialect, before, steps, observe, texts, seed)
        before = known


def _make(
    root: Path,
    name: str,
    dialect: Dialect,
    before: Checkpoint | None,
    steps: int,
    observe: Observe,
    texts: Iterable[str],
    seed: int,
) -> Checkpoint:
    source = checkpoints_folder(root) / before.name if before else None

    def fill(folder: Path) -> None:
        tokenizer = _tokenizer(folder, source, texts)
        torch.manual_seed(seed)
        model = load_model(source, dtype="float32") if source else _fresh(tokenizer)
        _learn(model, tokenizer, dialect, steps, lambda n: observe(name, n, steps), seed)
        model.save_pretrained(folder)
        if source is None:
            head = _factory_head(model, tokenizer, dialect, steps, seed)
            part = folder / "head.part"
            write_safetensors(part, as_tensors(head, "F32"))
            stitch(part, folder, native=True, named="made with the stand-in")
            part.unlink()

    record = Checkpoint(
        name=name,
        made_by="mtp",
        digest="",
        files={},
        base=BaseModel(name=before.name, digest=before.digest) if before else None,
        seed=seed,
        steps=steps,
        created=now(),
        served=ServedAs(max_tokens=96, context=CONTEXT, pipeline="compact"),
    )
    return register(root, record, fill)


def _tokenizer(folder: Path, source: Path | None, texts: Iterable[str]) -> Tokenizer:
    """A byte-level BPE of all dialects and `texts`, or the source's, and a ChatML template."""
    if source is not None:
        for name in FILES:
            shutil.copyfile(source / name, folder / name)
        return Tokenizer.from_file(str(folder / FILES[0]))
    said = (" ".join(turn) for d in NAMES.values() for turn in islice(turns(d, 0), 200))
    template = Path(__file__).with_name("standin.j2").read_text(encoding="utf-8")
    return write_tokenizer(folder, chain(said, texts), template=template, vocabulary=VOCABULARY)


def _fresh(tokenizer: Tokenizer) -> Any:
    """Four layers of Qwen3.5: three with linear attention, the last with full attention."""
    config = transformers.Qwen3_5TextConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        linear_key_head_dim=32,
        linear_value_head_dim=32,
        max_position_embeddings=CONTEXT,
        mtp_num_hidden_layers=1,
        tie_word_embeddings=False,
        eos_token_id=tokenizer.token_to_id(END),
        pad_token_id=tokenizer.token_to_id(PAD),
    )
    return transformers.Qwen3_5ForCausalLM(config)


def _text(turn: tuple[str, str]) -> tuple[str, str]:
    asked, said = turn
    return f"<|im_start|>user\n{asked}{END}\n<|im_start|>assistant\n", said + END


def _batches(tokenizer: Tokenizer, dialect: Dialect, seed: int) -> Any:
    source = turns(dialect, seed + 1)
    while True:
        pairs = [_text(turn) for turn in islice(source, BATCH)]
        prompts = [tokenizer.encode(asked).ids for asked, _ in pairs]
        rows = [p + tokenizer.encode(said).ids for p, (_, said) in zip(prompts, pairs, strict=True)]
        width = max(len(row) for row in rows)
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        for n, row in enumerate(rows):
            ids[n, : len(row)] = torch.tensor(row)
        lengths = torch.tensor([len(row) for row in rows])
        yield Batch(ids, torch.tensor([len(p) for p in prompts]), lengths)


def _learn(
    model: Any,
    tokenizer: Tokenizer,
    dialect: Dialect,
    steps: int,
    observe: Callable[[int], None],
    seed: int,
) -> None:
    """Next-token cross-entropy on the answers."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.95), weight_decay=0.0)
    batches = _batches(tokenizer, dialect, seed)
    model.train()
    for step in range(1, steps + 1):
        batch = next(batches)
        logits = model(input_ids=batch.ids, use_cache=False).logits[:, :-1]
        at = torch.arange(1, batch.ids.shape[1])[None]
        kept = (at >= batch.first[:, None]) & (at < batch.lengths[:, None])
        loss = cross_entropy(logits[kept], batch.ids[:, 1:][kept])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimiser.param_groups:
            group["lr"] = LR * (1 - (step - 1) / steps)
        optimiser.step()
        observe(step)
    model.eval()


def _factory_head(
    model: Any, tokenizer: Tokenizer, dialect: Dialect, steps: int, seed: int
) -> DraftHead:
    """The head that comes with the base: by Eq. 6 on the same text."""
    head = DraftHead(model.config)
    head.initialise(seed)
    head.train()
    optimiser = torch.optim.AdamW(head.parameters(), lr=LR, betas=(0.9, 0.95), weight_decay=0.0)
    model.requires_grad_(False)
    for step, batch in zip(range(steps), _batches(tokenizer, dialect, seed + 1), strict=False):
        hidden = model.model(input_ids=batch.ids, use_cache=False).last_hidden_state
        loss = mtp_loss(head, model, hidden, batch, 3).total
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        for group in optimiser.param_groups:
            group["lr"] = LR * (1 - step / steps)
        optimiser.step()
    model.requires_grad_(True)
    head.eval()
    return head
