"""The reward judge of a project: the role `reward_judge`, or rewards by rule."""

from harness_cli.errors import UnknownName
from harness_cli.judges.base import Judge
from harness_cli.judges.rewards.judge import RuleRewards
from harness_cli.store.project import Project

BY_RULE = ("rewards", "grounded")
"""Names that mean rewards by rule."""


def reward_judge(
    project: Project,
    name: str | None = None,
    *,
    fresh: bool = False,
    concurrency: int | None = None,
) -> Judge:
    """The judge called `name`, or the one whose role is `reward_judge`; by rule without either.

    Raises `UnknownName` for a name that is no judge.
    """
    name = name or project.config.roles.get("reward_judge") or BY_RULE[0]
    config = project.config.judges.get(name)
    if name in BY_RULE or (config is not None and config.kind == "grounded"):
        return RuleRewards()
    if config is None:
        raise UnknownName.of("judge", name, [*project.config.judges, BY_RULE[0]])
    from harness_cli.judges.rewards.panel import open_rewards

    return open_rewards(name, config, project, fresh=fresh, concurrency=concurrency)
