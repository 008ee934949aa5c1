"""What the verdicts of a run took: votes, those from the cache, calls, tokens, money."""

from dataclasses import dataclass, fields
from typing import Any

from harness_cli.records.run import Report
from harness_cli.records.verdict import Judging


@dataclass(slots=True)
class JudgingTally:
    """Sums over the items of a run. Unknown is counted, never taken for 0."""

    votes: int = 0
    unscored: int = 0
    cached: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    without_usage: int = 0
    without_cost: int = 0

    def add(self, judging: Judging | None) -> None:
        """One item's verdict."""
        if judging is None:
            return
        self.votes += judging.votes
        self.unscored += judging.unscored
        self.cached += judging.cached
        self.calls += judging.calls
        self.input_tokens += judging.input_tokens or 0
        self.output_tokens += judging.output_tokens or 0
        self.cost += judging.cost or 0.0
        self.without_usage += None in (judging.input_tokens, judging.output_tokens)
        self.without_cost += judging.cost is None

    def join(self, other: "JudgingTally") -> None:
        """Take the sums of other items in."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def shown(self) -> dict[str, Any]:
        """`usage.judge` of a report."""
        return {
            "votes": self.votes,
            "unscored": self.unscored,
            "cached": self.cached,
            "calls": self.calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "results_without_usage": self.without_usage,
            "cost": round(self.cost, 9),
            "results_without_cost": self.without_cost,
        }


def judging_lines(report: Report) -> list[str]:
    """One line on the panel's work; none where no panel judged."""
    found = report.usage.get("judge")
    if not found:
        return []
    parts = [f"judge {report.run.judge_id}: {found['votes']} votes"]
    parts += [f"{found[name]} {name}" for name in ("cached", "unscored") if found[name]]
    judged = report.planned - report.counts.get("missing", 0)
    tokens = f"{found['input_tokens']} + {found['output_tokens']} tokens"
    cost = f"${found['cost']:.4f}"
    parts += [f"{found['calls']} model calls"]
    parts += [_partly(tokens, "tokens", found["results_without_usage"], judged)]
    parts += [_partly(f"cost {cost}", "cost", found["results_without_cost"], judged)]
    return [", ".join(parts)]


def _partly(known: str, what: str, unknown: int, of: int) -> str:
    """A sum with what is not in it."""
    if not unknown:
        return known
    return f"{what} unknown" if unknown >= of else f"{known} + unknown for {unknown} results"
