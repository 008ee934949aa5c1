"""The two runs of one A/A measurement: which one is the other, and what makes it when it is not
there yet."""

from dataclasses import replace

from harness_cli.evaluation.noise import ALIKE
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.records.run import RunConfig
from harness_cli.store.runs import RunFolder, RunStore

OPTION = "--aa"


def is_half(config: RunConfig) -> bool:
    """The run was begun as one of two."""
    return OPTION in config.command


def other_half(store: RunStore, run: RunFolder) -> RunFolder | None:
    """The newest run of the same thing with the seeds right before or behind this one's.

    Repeats of a run take consecutive seeds, so that the second run of a pair begins where the
    first ended. None where the other run was never started.
    """
    config = run.config()
    for other in store.list():
        if other.id != run.id and _are_a_pair(config, other.config()):
            return other
    return None


def options_of_other(config: RunConfig, options: EvalOptions) -> EvalOptions:
    """What to ask for to make the second run of a pair whose first one is `config`."""
    return replace(
        options,
        evalset=config.evalset.name,
        split=config.evalset.split,
        policy=config.policy,
        harness=config.harness_ref or config.harness_commit,
        judge=config.judge,
        agent=config.agent,  # type: ignore[arg-type]
        profile=config.profile,
        limit=config.limit,
        only=config.only,
        repeat=config.repeat,
        need=config.need,
        seed=config.seed + config.repeat,
        resume=None,
    )


def _are_a_pair(one: RunConfig, other: RunConfig) -> bool:
    same = all(getattr(one, n) == getattr(other, n) for n in (*ALIKE, "limit", "only", "evalset"))
    made = is_half(other) and other.rescored_of is None and one.rescored_of is None
    return same and made and abs(one.seed - other.seed) == one.repeat
