"""A judge by its name in `harness.yaml`."""

from harness_cli.errors import UsageError
from harness_cli.judges.base import Judge
from harness_cli.records.config import JudgeConfig


def open_judge(name: str, config: JudgeConfig) -> Judge:
    """The judge of a configuration entry.

    Raises `UsageError` for a panel: panels of policies are not built yet, and a panel that graded
    by anything else would be a lie.
    """
    if config.kind == "grounded":
        from harness_cli.judges.grounded.judge import GroundedJudge

        return GroundedJudge()
    raise UsageError(
        f"judge `{name}` is a panel, which this version cannot open",
        hint="--judge grounded, or an entry `{kind: grounded}` under `judges`",
    )
