"""Models and tokenizers read from a checkpoint's folder. A door of torch and transformers."""

from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError

from harness_cli.errors import BadFile
from harness_cli.models.local_model import fast_dtype


def load_model(folder: Path, *, dtype: str = "auto") -> Any:
    """The causal model of a folder on the fastest device here.

    Raises `BadFile`, also where a weight is not in the files: transformers draws it at random then.
    """
    quiet()
    try:
        model, found = transformers.AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=chosen_dtype(folder, dtype),
            local_files_only=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as exc:
        raise BadFile(f"the checkpoint `{folder}` does not load: {exc}") from exc
    if missing := sorted(found["missing_keys"]):
        raise BadFile(
            f"the checkpoint `{folder}` lacks {len(missing)} weights of its model, "
            f"such as `{missing[0]}`",
            hint="it was copied in part, or its config.json is another model's",
        )
    return model.to("cuda") if torch.cuda.is_available() else model


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder. Raises `BadFile` without one."""
    quiet()
    try:
        return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as exc:
        raise BadFile(f"the tokenizer of `{folder}` does not load: {exc}") from exc


def with_adapter(model: Any, adapter: Path) -> Any:
    """The model with a peft adapter's weights merged into its own."""
    from peft import PeftModel

    try:
        return PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
    except (OSError, ValueError, RuntimeError, SafetensorError) as exc:
        raise BadFile(f"the adapter `{adapter}` does not fit: {exc}") from exc


def chosen_dtype(folder: Path, wanted: str) -> torch.dtype:
    """The type that weights are held in: as stored, but no bfloat16 where it is emulated."""
    if wanted != "auto":
        return getattr(torch, wanted)
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    stored = getattr(config, "dtype", None) or torch.float32
    if stored in (torch.bfloat16, torch.float16) and not torch.cuda.is_available():
        return fast_dtype()
    return stored


def quiet() -> None:
    """Keep transformers' own bars and warnings off the terminal."""
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
