"""Sampling settings of a policy: its own over the defaults."""

from harness_cli.records.chat import Generation
from harness_cli.records.config import PolicyConfig


def generation_of(
    config: PolicyConfig, seed: int | None, *, temperature: float | None = None
) -> Generation:
    """Sampling of a policy: its own settings over the defaults of TR App. F.

    `temperature` is another default than theirs.
    """
    own = {
        name: value
        for name in ("temperature", "top_p", "max_tokens")
        if (value := getattr(config, name)) is not None
    }
    if temperature is not None:
        own.setdefault("temperature", temperature)
    if "max_tokens" in own:
        own["max_tokens_ceiling"] = own["max_tokens"]
    return Generation(seed=seed, **own)
