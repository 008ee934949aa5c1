"""The name a policy goes by in trajectories and manifests: `name@digest`."""

from typing import Any

from harness_cli.records.canonical import digest
from harness_cli.records.config import PolicyConfig

_NOT_IDENTITY = (
    "api_key_env",
    "transport",
    "stream",
    "price",
    "fallback",
    "attempt_timeout_s",
    "total_timeout_s",
    "stall_timeout_s",
    "max_attempts",
    "concurrency",
)
"""Settings that change how an answer travels, not which answer it is."""


def policy_id(name: str, config: PolicyConfig, **more: Any) -> str:
    """`name@` and 12 hex digits over what decides the answers: model, address, checkpoint, prompt.

    `more` adds what only the kind knows, as the digest of a script or of embedded weights.
    """
    kept = {
        key: value
        for key in config.__struct_fields__
        if key not in _NOT_IDENTITY and (value := getattr(config, key)) is not None
    }
    return f"{name}@{digest({**kept, **more})[:12]}"
