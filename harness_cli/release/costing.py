"""What a run would cost, from the newest run of its policy: calls, tokens, money, time."""

import msgspec

from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder, RunStore

FREE = ("builtin", "local", "scripted", "replay")


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate. What nobody knows is None, never 0."""

    rollouts: int
    calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    money: float | None = None
    """US dollars; 0 for a policy on this machine."""
    seconds: float | None = None
    """Of rollouts one after another; a concurrency of c divides it by at most c."""
    basis: str | None = None
    """The run that it is extrapolated from."""


def estimate(project: Project, options: EvalOptions) -> Cost:
    """The cost of a run, from the newest complete one of its policy, on its evalset if there is."""
    items = load_evalset(project, str(options.evalset), split=options.split).items
    planned = len(items.first(options.limit)) * (options.repeat or 1)
    _, config = project.policy(options.policy)
    money = 0.0 if config.kind in FREE else None
    basis = basis_of(project, options)
    if basis is None:
        return Cost(rollouts=planned, money=money)
    results = [r for r in basis.results() if r.state != "errored"]

    def scaled(values: list[float | None]) -> float | None:
        known = [v for v in values if v is not None]
        return sum(known) / len(known) * planned if known else None

    def whole(values: list[float | None]) -> int | None:
        found = scaled(values)
        return None if found is None else round(found)

    return Cost(
        rollouts=planned,
        calls=whole([r.rounds for r in results]),
        input_tokens=whole([r.input_tokens for r in results]),
        output_tokens=whole([r.output_tokens for r in results]),
        money=scaled([r.cost for r in results]) if money is None else money,
        seconds=scaled([r.wall_s for r in results]),
        basis=basis.id,
    )


def basis_of(project: Project, options: EvalOptions) -> RunFolder | None:
    """The newest complete run of the policy, one on the same evalset before any other."""
    name, _ = project.policy(options.policy)
    found = [
        run
        for run in RunStore(project.runs).list()
        if (config := run.config()).policy == name
        and not config.imported
        and run.status() == "complete"
    ]
    same = [run for run in found if run.config().evalset.name == options.evalset]
    return next(iter(same or found), None)


def cost_text(cost: Cost) -> str:
    """An estimate in words."""
    parts = [f"{cost.rollouts} rollouts"]
    parts.append("unknown calls" if cost.calls is None else f"about {cost.calls} calls")
    if cost.input_tokens is not None and cost.output_tokens is not None:
        parts.append(f"{cost.input_tokens + cost.output_tokens} tokens")
    else:
        parts.append("unknown tokens")
    if cost.money is None:
        parts.append("unknown cost")
    else:
        parts.append(f"${cost.money:.2f}" if cost.money else "no money")
    if cost.seconds is not None:
        parts.append(f"{cost.seconds:.0f} s one after another")
    else:
        parts.append("unknown time")
    return ", ".join(parts)
