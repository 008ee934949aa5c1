"""A policy by its entry in `harness.yaml`; only the chosen kind is imported."""

from pathlib import Path

from harness_cli.models.base import Policy
from harness_cli.records.config import PolicyConfig


def open_policy(name: str, config: PolicyConfig, *, root: Path) -> Policy:
    """The policy called `name`; paths in its settings are relative to `root`.

    Raises `UsageError` for settings that cannot be meant and `MissingExtra` where a kind needs
    packages that are not installed. Nothing is connected or loaded before the first call.
    """
    match config.kind:
        case "scripted":
            from harness_cli.models.scripted import open_scripted

            return open_scripted(name, config, root)
        case "replay":
            from harness_cli.models.cassette import open_replay

            return open_replay(name, config, root)
        case "builtin":
            from harness_cli.models.builtin.policy import BuiltinPolicy

            return BuiltinPolicy(name=name, config=config)
        case "local":
            from harness_cli.models.local import open_local

            return open_local(name, config, root)
        case "checkpoint":
            from harness_cli.models.checkpoint import open_checkpoint

            return open_checkpoint(name, config, root)
        case "openai":
            return _open_openai(name, config)


def _open_openai(name: str, config: PolicyConfig) -> Policy:
    if config.transport == "openai":
        from harness_cli.models.openai import OpenAIPolicy

        return OpenAIPolicy(name, config)
    from harness_cli.models.lean import LeanPolicy

    return LeanPolicy(name, config)
