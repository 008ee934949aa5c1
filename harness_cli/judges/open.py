"""A judge by its name in `harness.yaml`."""

from harness_cli.errors import UnknownName, UsageError
from harness_cli.judges.base import Judge
from harness_cli.records.config import JudgeConfig
from harness_cli.store.project import Project

GROUNDED = "grounded"


def judge_config(project: Project, name: str) -> JudgeConfig:
    """The entry of a judge; `grounded` needs none. Raises `UnknownName` where there is none."""
    found = project.config.judges.get(name)
    if found is not None:
        return found
    if name == GROUNDED:
        return JudgeConfig(kind="grounded")
    raise UnknownName.of("judge", name, {*project.config.judges, GROUNDED})


def open_judge(
    name: str,
    config: JudgeConfig,
    project: Project | None = None,
    *,
    fresh: bool = False,
    concurrency: int | None = None,
) -> Judge:
    """The judge of a configuration entry; close it when it is done.

    A panel needs the `project`, for its policies, its harness and its cache. `fresh` takes no vote
    from the cache; `concurrency` bounds the judge's model calls side by side. Raises `UsageError`,
    `UnknownName` and `BadFile` for what cannot be meant; nothing is asked or started before the
    first verdict.
    """
    if config.kind == "grounded":
        from harness_cli.judges.grounded.judge import GroundedJudge

        return GroundedJudge()
    if project is None:
        raise UsageError(
            f"judge `{name}` is a panel: its policies stand in a project",
            hint="open it with the project whose harness.yaml names them",
        )
    from harness_cli.judges.panel.opening import open_panel

    return open_panel(name, config, project, fresh=fresh, concurrency=concurrency)
