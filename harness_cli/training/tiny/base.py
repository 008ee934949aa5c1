"""Pretraining of the tiny base: seeded, resumable, with a curriculum that waits.

    python -m harness_cli.training.tiny.base FOLDER [--minutes M] [--seed N]

writes a checkpoint folder that any loader of transformers reads, and `curve.jsonl` beside it.
State is kept in FOLDER/state.pt; the same command goes on from it.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import torch
from tokenizers import Tokenizer

from harness_cli.training.chatml import END, PAD
from harness_cli.training.tiny.documents import CHATS, LEVELS, Writer
from harness_cli.training.tiny.initial import make_model, save_model
from harness_cli.training.tiny.pieces import FIRST, Encoder
from harness_cli.training.tiny.tokenizer import make_tokenizer
from harness_cli.training.tiny.words import all_words

NEED: Final = 0.8
"""Share of first tokens of answers that must be right before a listing grows."""
FIRST_PHASE: Final = 1500
"""Steps before chats of many requests are read, whose assistant thinks aloud: a silent look-up in
220 tokens of chat is too little to learn to route from."""
PATIENCE: Final = 300
"""Steps after which a level gives way although it is not learnt."""


@dataclass(slots=True)
class Settings:
    """How long and how fast."""

    steps: int = 2000
    tokens: int = 4000
    """Of one step, about; half of them before chats are read."""
    lr: float = 2e-3
    seed: int = 1
    threads: int = 1
    save_every: int = 100


@dataclass(slots=True)
class Progress:
    """What a resumed run needs beside weights and optimiser."""

    step: int = 0
    level: int = 0
    since: int = 0
    hits: dict[str, float] = field(default_factory=dict)
    tokens: int = 0
    seconds: float = 0.0


class Base:
    """The model, its optimiser and its reader."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        torch.set_num_threads(settings.threads)
        make_tokenizer(folder)
        self.folder, self.settings = folder, settings
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.encoder = Encoder(self.tokenizer)
        one = [self.tokenizer.token_to_id(w) for w in all_words()]
        two = [self.tokenizer.token_to_id(f"Ġ{w}") for w in all_words()]
        pairs = [(a, b) for a, b in zip(one, two, strict=True) if a is not None and b is not None]
        self.model = make_model(self.tokenizer.get_vocab_size(), pairs, settings.seed)
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(), lr=settings.lr, betas=(0.9, 0.95), weight_decay=0.0
        )
        self.progress = Progress()
        self.pad = self._id(PAD)
        self._resume()

    def _id(self, token: str) -> int:
        return int(self.tokenizer.token_to_id(token) or 0)

    @property
    def state(self) -> Path:
        """What a run goes on from."""
        return self.folder / "state.pt"

    def _resume(self) -> None:
        if self.state.exists():
            kept = torch.load(self.state, weights_only=True)
            self.model.load_state_dict(kept["model"])
            self.optimiser.load_state_dict(kept["optimiser"])
            self.progress = Progress(**kept["progress"])

    def save(self) -> None:
        """Keep the state; whole or not at all."""
        new = self.state.with_suffix(".new")
        progress = {name: getattr(self.progress, name) for name in Progress.__slots__}
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimiser": self.optimiser.state_dict(),
                "progress": progress,
            },
            new,
        )
        new.replace(self.state)

    def finish(self) -> None:
        """Write the checkpoint."""
        save_model(self.model, self.folder, end=self._id(END), pad=self.pad)

    def step(self) -> dict[str, Any]:
        """One step; its documents depend on seed, step and level alone."""
        progress, settings = self.progress, self.settings
        draw = Random(f"{settings.seed}/{progress.step}/{progress.level}")
        kinds, rows = self._read(Writer(draw))
        ids, weights = self._padded(rows)
        for group in self.optimiser.param_groups:
            group["lr"] = settings.lr * _schedule(progress.step, settings.steps)
        hidden = self.model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
        weights = weights[:, 1:]
        chosen = weights > 0  # the rest needs no logits, which are a third of the work
        logits = self.model.lm_head(hidden[chosen])
        wanted = ids[:, 1:][chosen]
        loss = torch.nn.functional.cross_entropy(logits, wanted, reduction="none")
        mean = (loss * weights[chosen]).sum() / weights.sum()
        self.optimiser.zero_grad(set_to_none=True)
        mean.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 2.0)
        self.optimiser.step()
        right = torch.zeros_like(chosen)
        right[chosen] = logits.argmax(-1) == wanted
        self._count(kinds, right, weights)
        progress.step += 1
        progress.tokens += ids.numel()
        self._grow()
        return {"step": progress.step, "level": progress.level, "loss": mean.item()}

    def _read(self, writer: Writer) -> tuple[list[str], list[tuple[list[int], list[float]]]]:
        kinds: list[str] = []
        rows: list[tuple[list[int], list[float]]] = []
        longest = 0
        enough = self.settings.tokens if self.progress.level >= CHATS else self.settings.tokens // 2
        while longest * len(rows) < enough:
            late = self.progress.step >= FIRST_PHASE
            kind, pieces = writer.document(self.progress.level, late=late)
            kinds.append(kind)
            rows.append(self.encoder.row(pieces))
            longest = max(longest, len(rows[-1][0]))
        return kinds, rows

    def _padded(self, rows: list[tuple[list[int], list[float]]]) -> tuple[Any, Any]:
        longest = max(len(ids) for ids, _ in rows)
        ids = torch.tensor([i + [self.pad] * (longest - len(i)) for i, _ in rows])
        weights = torch.tensor([w + [0.0] * (longest - len(w)) for _, w in rows])
        return ids, weights

    def _count(self, kinds: list[str], right: Any, weights: Any) -> None:
        """Trailing shares: of all answer tokens of a kind, and of the first token of each."""
        asked = weights >= 1.0
        begins = weights >= FIRST
        for kind in set(kinds):
            rows = torch.tensor([k == kind for k in kinds])
            for name, places in ((kind, asked), (f"{kind}:first", begins)):
                chosen = places & rows[:, None]
                if chosen.any():
                    share = right[chosen].float().mean().item()
                    old = self.progress.hits.get(name, share)
                    self.progress.hits[name] = 0.95 * old + 0.05 * share

    def _grow(self) -> None:
        progress = self.progress
        stayed = progress.step - progress.since
        learnt = progress.hits.get("listing:first", 0.0) > NEED and stayed > 30
        if progress.level < len(LEVELS) - 1 and (learnt or stayed > PATIENCE):
            progress.level += 1
            progress.since = progress.step
            progress.hits["listing:first"] = 0.5


def _schedule(step: int, steps: int) -> float:
    """First phase: warm-up over 30 steps, flat, falling from 960 on as if it ended with step 1,600.
    Second phase: flat for a half, then linear to a twentieth."""
    if step < FIRST_PHASE:
        return min(1.0, (step + 1) / 30, max(0.05, (1600 - step) / 640))
    left = (steps - step) / max(1, steps - FIRST_PHASE)
    return max(0.05, min(0.6, 1.2 * left))


def make_base(
    folder: Path, settings: Settings, observe: Callable[[dict[str, Any]], None] | None = None
) -> Path:
    """Pretrain, or go on; gives the checkpoint's folder back once it is whole."""
    if (folder / "model.safetensors").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    base = Base(folder, settings)
    began = time.process_time() - base.progress.seconds
    with (folder / "curve.jsonl").open("a", encoding="utf-8") as curve:
        while base.progress.step < settings.steps:
            seen = base.step()
            base.progress.seconds = time.process_time() - began
            if base.progress.step % 25 == 0:
                hits = {k: round(v, 3) for k, v in sorted(base.progress.hits.items())}
                line = {**seen, "tokens": base.progress.tokens, **hits}
                line["cpu_s"] = round(base.progress.seconds, 1)
                curve.write(json.dumps(line) + "\n")
                curve.flush()
                if observe is not None:
                    observe(line)
            if base.progress.step % settings.save_every == 0:
                base.save()
    base.finish()
    return folder


def main() -> None:
    """The command."""
    usual = Settings()
    parser = argparse.ArgumentParser(description="Pretrain the tiny base.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=usual.steps)
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--lr", type=float, default=usual.lr)
    given = parser.parse_args()
    settings = Settings(steps=given.steps, seed=given.seed, lr=given.lr)
    make_base(given.folder, settings)


if __name__ == "__main__":
    main()
