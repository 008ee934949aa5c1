"""The diagnostics of TR Figures 5 and 6 for one RL job: a page of inline SVG from its curve.

Figure 5: the four rewards against step. Figure 6: (a) tokens of reasoning of the tool and the reply
segment, with the regions of the penalty, (b) its score q(L), and what that is as a reward, -λ q(L).
Faint lines are recorded steps, bold ones 25-step trailing means; a table has the means of the first
and the last 100 steps, as the report tells them. No torch here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from harness_cli.evaluation.page.curves import Band, Curve, curves
from harness_cli.judges.rewards.dimension import REPLY, TOOL
from harness_cli.records.rl_job import Penalty

WINDOW: Final = 100
"""Steps of the first and the last mean (TR App. C)."""
REWARDS: Final = (*REPLY, *TOOL)
FIGURES: Final = "figures.html"
"""In the folder of a job."""


@dataclass(frozen=True, slots=True)
class Means:
    """A quantity at the beginning and the end of a job."""

    name: str
    first: float
    last: float
    steps: int
    """Iterations that each is the mean of: fewer than `WINDOW` in a short job."""
    overlap: bool
    """The job is shorter than two windows: both means share steps."""


def figures(name: str, lines: Sequence[Mapping[str, Any]], penalty: Penalty) -> str:
    """The page of a job; `lines` are those of its `metrics.jsonl`."""
    made = _series(lines, penalty.weight)
    charts = [
        curves("Rewards", [made[r] for r in REWARDS if r in made], value="mean reward"),
        curves(
            "Reasoning",
            [made[key] for key in ("tool-call CoT", "final-reply CoT") if key in made],
            value="tokens",
            bands=regions(penalty),
        ),
        curves("Penalty score", [made["q(L)"]] if "q(L)" in made else [], value="q(L)"),
        curves(
            "Penalty as a reward",
            [made[key] for key in made if key.startswith("-")],
            value=f"-{penalty.weight:g} q(L)",
        ),
    ]
    table = _table(list(means(lines, penalty)))
    shown = "".join(f"<figure>{chart}</figure>" for chart in charts if chart)
    title = f"RL diagnostics of {escape(name)}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>Faint: each iteration. Bold: trailing mean of 25. A diagnostic of one run, no "
        f"ablation.</p>{shown or '<p>Nothing was measured yet.</p>'}{table}</body></html>\n"
    )


def regions(penalty: Penalty) -> tuple[Band, ...]:
    """No penalty, linear, saturated."""
    low, high = penalty.low, penalty.high
    return (
        Band(f"no penalty, L ≤ {low:g}", 0.0, low),
        Band(f"linear, {low:g} < L < {high:g}", low, high),
        Band(f"saturated, L ≥ {high:g}", high, math.inf),
    )


def means(lines: Sequence[Mapping[str, Any]], penalty: Penalty) -> list[Means]:
    """First and last means of everything that is drawn."""
    found = []
    for name, curve in _series(lines, penalty.weight).items():
        values = curve.values
        size = min(WINDOW, len(values))
        first, last = sum(values[:size]) / size, sum(values[-size:]) / size
        found.append(Means(name, first, last, size, len(values) < 2 * size))
    return found


def _series(lines: Sequence[Mapping[str, Any]], weight: float) -> dict[str, Curve]:
    """Every drawn quantity that was measured, over the steps at which rollouts were made."""
    named = {f"rewards/{r}/mean": (r, 1.0) for r in REWARDS}
    named |= {"cot/tool": ("tool-call CoT", 1.0), "cot/reply": ("final-reply CoT", 1.0)}
    found: dict[str, Curve] = {}
    for key, (name, factor) in named.items():
        _add(found, lines, key, name, factor)
    _add(found, lines, "cot/q", "q(L)", 1.0)
    _add(found, lines, "cot/q", f"-{weight:g} q(L)", -weight)
    return found


def _add(
    found: dict[str, Curve],
    lines: Sequence[Mapping[str, Any]],
    key: str,
    name: str,
    factor: float,
) -> None:
    points = [(int(line["step"]), factor * float(line[key])) for line in lines if key in line]
    if points:
        steps, values = zip(*points, strict=True)
        found[name] = Curve(name, steps, values)


def _table(found: Sequence[Means]) -> str:
    if not found:
        return ""
    rows = "".join(
        f"<tr><td>{escape(m.name)}</td><td>{m.first:.3f}</td><td>{m.last:.3f}</td>"
        f"<td>{m.last - m.first:+.3f}</td></tr>"
        for m in found
    )
    size, overlap = found[0].steps, found[0].overlap
    note = " The job is shorter than two such windows: they overlap." if overlap else ""
    return (
        f"<p>Means of the first and the last {size} iterations.{note}</p><table><thead><tr>"
        "<th></th><th>first</th><th>last</th><th>change</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}"
    "figure{margin:1rem 0}table{border-collapse:collapse}"
    "td,th{padding:.2rem .8rem;text-align:right}td:first-child{text-align:left}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}"
)
