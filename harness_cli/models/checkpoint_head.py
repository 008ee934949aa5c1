"""The draft head of Qwen3.5 models (NextN, `mtp.*`) as servers run it. A door of torch.

    z = fc( cat[ pre_fc_norm_embedding(e), pre_fc_norm_hidden(h) ] )     embedding first, no bias
    y = one full-attention decoder layer (z), with a cache of its own
    h' = norm(y);  logits = lm_head(h')

e embeds the token after the one whose hidden state h is; h is what the policy's lm_head reads, so
after its final norm. Row i (h of token i, e of token i + 1, position i) predicts token i + 2. The
next step takes h' for h and the drafted token for e, at position i + 1. Norms are x̂ · (1 + w).
Source: SGLang 0.5.23 `models/qwen3_5_mtp.py`; TR App. F.1.
"""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from transformers import DynamicCache
from transformers.models.qwen3_5 import modeling_qwen3_5 as dense
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe as sparse

from harness_cli.errors import BadFile
from harness_cli.models.mtp_layout import PREFIX
from harness_cli.models.mtp_stitch import read_source
from harness_cli.models.weights import config_of
from harness_cli.models.weights_write import Made

TYPES: Final = {"qwen3_5_text": (dense, "Qwen3_5"), "qwen3_5_moe_text": (sparse, "Qwen3_5Moe")}


class DraftHead(nn.Module):  # type: ignore[misc]
    """The head alone: embedding and lm_head stay the policy's. Parameters are named as on disk."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        own = head_config(config)
        room, family = TYPES[own.model_type]
        norm, layer = getattr(room, f"{family}RMSNorm"), getattr(room, f"{family}DecoderLayer")
        hidden, eps = own.hidden_size, own.rms_norm_eps
        self.fc = nn.Linear(2 * hidden, hidden, bias=False)
        self.pre_fc_norm_embedding = norm(hidden, eps=eps)
        self.pre_fc_norm_hidden = norm(hidden, eps=eps)
        self.layers = nn.ModuleList([layer(own, 0)])
        self.norm = norm(hidden, eps=eps)
        self.rotary = getattr(room, f"{family}TextRotaryEmbedding")(config=own)
        self.config = own

    def forward(
        self,
        embedded: Tensor,
        hidden: Tensor,
        positions: Tensor,
        *,
        cache: DynamicCache | None = None,
        seen: Tensor | None = None,
    ) -> Tensor:
        """h' of every row. `embedded`, `hidden` (B, N, H), `positions` (B, N).

        `seen` (N, M): which of the M rows in the cache and here each row attends to; causal without
        it. With a cache the rows' keys and values are added to it.
        """
        z = self.fc(
            torch.cat((self.pre_fc_norm_embedding(embedded), self.pre_fc_norm_hidden(hidden)), -1)
        )
        before = cache.get_seq_length() if cache is not None else 0
        n = z.shape[1]
        # Without a mask this attention is causal over what is here, and sees all from a single row.
        if seen is None and before and n > 1:
            seen = torch.ones(n, before + n, dtype=torch.bool, device=z.device).tril(before)
        # Time, height and width go together: text has one position.
        turned = self.rotary(z, positions[None].expand(3, *positions.shape))
        y = self.layers[0](
            z,
            position_embeddings=turned,
            attention_mask=None if seen is None else seen[None, None],
            position_ids=positions,
            cache=cache,
        )
        out: Tensor = self.norm(y)
        return out

    def new_cache(self) -> DynamicCache:
        """An empty cache for the one layer."""
        return DynamicCache(config=self.config)

    def initialise(self, seed: int) -> None:
        """Random weights as the policy's are initialised: normal, norms at 1 + 0."""
        draws = torch.Generator().manual_seed(seed)
        for parameter in self.parameters():
            with torch.no_grad():
                if parameter.dim() > 1:
                    spread = self.config.initializer_range
                    parameter.normal_(0.0, spread, generator=draws)
                else:
                    parameter.zero_()


def head_config(config: Any) -> Any:
    """The policy's text config for one full-attention layer; raises `BadFile` for other kinds."""
    text = config.get_text_config()
    if text.model_type not in TYPES:
        raise BadFile(
            f"a head of `{text.model_type}` models is not built here",
            hint=f"known: {', '.join(TYPES)}",
        )
    own = copy.deepcopy(text)
    own.num_hidden_layers = 1
    own.layer_types = ["full_attention"]
    # A mask of booleans is given; flash kernels take none.
    own._attn_implementation = "sdpa"
    return own


def load_head(place: Path, config: Any, *, dtype: torch.dtype = torch.float32) -> DraftHead:
    """The head that lies in a checkpoint folder or file. Raises `BadFile` where none fits."""
    told = config_of(place) if (place / "config.json").is_file() else config.to_dict()
    found = read_source(place, told).head
    state = {
        name.removeprefix(PREFIX): torch.from_numpy(tensor.values().copy())
        for name, tensor in found.items()
    }
    head = filled(DraftHead(config), fused(state), str(place))
    head.to(dtype)
    return head


def filled(head: DraftHead, state: Mapping[str, Tensor], name: str) -> DraftHead:
    """The head with these weights, every one of them. Raises `BadFile`."""
    try:
        head.load_state_dict(dict(state))
    except RuntimeError as exc:
        raise BadFile(f"the head of `{name}` does not fit: {exc}") from exc
    return head


def fused(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Experts that lie one by one put together: gate and up (E, 2I, H), down (E, H, I)."""
    at = "layers.0.mlp.experts."
    single = {n: t for n, t in state.items() if n.startswith(at) and n.endswith("_proj.weight")}
    if not single:
        return dict(state)
    count = 1 + max(int(n.removeprefix(at).split(".")[0]) for n in single)

    def stacked(part: str) -> Tensor:
        return torch.stack([single[f"{at}{n}.{part}_proj.weight"] for n in range(count)])

    made = {n: t for n, t in state.items() if n not in single}
    made[at + "gate_up_proj"] = torch.cat((stacked("gate"), stacked("up")), 1)
    made[at + "down_proj"] = stacked("down")
    return made


def as_tensors(head: DraftHead, dtype: str) -> dict[str, Made]:
    """The head under the names that servers look for, as BF16, F16 or F32."""
    from harness_cli.models.weights_write import made

    state = head.state_dict()
    return {
        PREFIX + name: made(tensor.detach().float().cpu().numpy(), dtype)
        for name, tensor in state.items()
    }
