"""Runs as a source of training data: which may be one, and the harness they ran in."""

from collections.abc import Sequence

from harness_cli.errors import RepoError, UsageError
from harness_cli.harness.load import load_state
from harness_cli.records.harness import HarnessState
from harness_cli.records.run import RunConfig
from harness_cli.records.training import Provenance
from harness_cli.records.verdict import ItemResult
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder
from harness_cli.training.measured import refuse_measuring


def shows_a_harness(config: RunConfig) -> bool:
    """Whether the runtime made this run with a harness, so that there is one to be learnt."""
    return config.imported is None and config.agent == "harness"


def usable(project: Project, run: RunFolder) -> RunConfig:
    """What a run was asked. Raises `UsageError` for one that is no source of training data."""
    config = run.config()
    if not shows_a_harness(config):
        what = "was imported" if config.imported else f"is of the agent `{config.agent}`"
        raise UsageError(f"run `{run.id}` {what}: it shows no harness to be learnt")
    if run.status() != "complete":
        raise UsageError(f"run `{run.id}` is not complete", hint=f"harness eval --resume {run.id}")
    refuse_measuring(project, config.evalset)
    return config


def refuse_other_items(configs: Sequence[RunConfig], digests: Sequence[str]) -> None:
    """Raise `UsageError` where runs are not of the same items; `digests` are of each one's."""
    first = configs[0]
    for config, found in zip(configs, digests, strict=True):
        if found != digests[0]:
            raise UsageError(
                f"runs `{first.id}` and `{config.id}` are of different items",
                hint=f"`{first.evalset.name}` and `{config.evalset.name}`, or another version",
            )


def revision_of(project: Project, config: RunConfig) -> tuple[str, HarnessState]:
    """The harness a run was made in, and the revision that holds it."""
    for rev in (config.harness_ref, config.harness_commit, config.harness_id):
        if rev is None:
            continue
        try:
            state = load_state(project, rev)
        except RepoError:
            continue
        if state.id == config.harness_id:
            return rev, state
    raise UsageError(
        f"the harness of run `{config.id}` is gone", hint="its tree was pruned; run it again"
    )


def origin(
    config: RunConfig, result: ItemResult, *, state: str, harness: str, map_sha256: str
) -> Provenance:
    """Where a rollout of a run comes from; `harness` is the id of the state it was made under."""
    return Provenance(
        evalset=config.evalset.name,
        split=str(config.evalset.split),
        item=result.item_id,
        run=config.id,
        state=state,
        harness=harness,
        map_sha256=map_sha256,
        teacher=config.policy_id,
        judge=config.judge_id,
        accuracy=result.scores.get("accuracy"),
        effectiveness=result.scores.get("effectiveness"),
        verdict=result.state,
        candidate=result.repeat,
        trajectory_sha256=result.trajectory_sha256,
    )
