"""Charts as inline SVG: text of our own making, coloured by the page's style sheet.

Every chart is an image with a title and a description for screen readers; the numbers behind it
also stand in a table of the page. No value from a run becomes markup: all text is escaped.
"""

from collections.abc import Iterable, Sequence
from math import ceil, floor
from xml.sax.saxutils import escape

import msgspec

from harness_cli.evaluation.comparison import CategoryDelta
from harness_cli.evaluation.page.agreed import MetricTable
from harness_cli.stats.percentiles import percentile

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 24, 56
BINS = 24
PERCENTILES = (50, 90, 99)


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One measured harness of the evolution record."""

    name: str
    kind: str
    accuracy: float | None
    effectiveness: float | None
    n: int = 0
    selected: bool = False
    served: bool = False
    here: bool = False
    """The harness of the run that the page is about."""


def evolution(stages: Sequence[Stage]) -> str:
    """Accuracy and Effectiveness by stage, laid out as TR Figure 2; baselines are dashed lines."""
    shown = [s for s in stages if s.kind != "baseline"]
    values = [100 * v for s in stages for v in (s.accuracy, s.effectiveness) if v is not None]
    if not values or not shown:
        return ""
    low, high = floor(min(values) - 1), ceil(max(values) + 1)
    low, high = max(low, 0), min(high, 100) if high <= 100 else 100
    scale = _Scale(low, max(high, low + 2), len(shown))
    parts = [_grid(scale), _names(scale, [s.name for s in shown])]
    for key, label in (("accuracy", "Accuracy"), ("effectiveness", "Effectiveness")):
        for base in (s for s in stages if s.kind == "baseline"):
            parts.append(_baseline(scale, getattr(base, key), f"{base.name} {label}", key))
        parts.append(_line(scale, [getattr(s, key) for s in shown], shown, key, label))
    parts.append(_legend([("accuracy", "Accuracy"), ("effectiveness", "Effectiveness")]))
    said = "; ".join(
        f"{s.name}: accuracy {percent(s.accuracy)}, effectiveness {percent(s.effectiveness)}"
        + (" (selected)" if s.selected else "")
        for s in stages
    )
    return _svg("Evolution record", said, parts)


def latency(walls_s: Sequence[float], *, bound_s: float) -> str:
    """Histogram of seconds a rollout, with nearest-rank percentiles and the bound of attainment."""
    if not walls_s:
        return ""
    marks = [(f"p{q}", value) for q in PERCENTILES if (value := percentile(walls_s, q)) is not None]
    top = max(max(walls_s), 1e-6)
    if top > bound_s / 3:
        top = max(top, bound_s)
        marks.append((f"{bound_s:g} s", bound_s))
    counts = [0] * BINS
    for wall in walls_s:
        counts[min(int(wall / top * BINS), BINS - 1)] += 1
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    base, most = HEIGHT - BOTTOM, max(counts)
    parts = [f'<line class="axis" x1="{LEFT}" y1="{base}" x2="{WIDTH - RIGHT}" y2="{base}"/>']
    for i, count in enumerate(counts):
        tall = height * count / most
        about = f"{top * i / BINS:.3g} to {top * (i + 1) / BINS:.3g} s: {count}"
        parts.append(
            f'<rect class="bar" x="{LEFT + width * i / BINS + 1:.1f}" y="{base - tall:.1f}" '
            f'width="{width / BINS - 2:.1f}" height="{tall:.1f}"><title>{about}</title></rect>'
        )
    for i in range(5):
        anchor = "end" if i == 4 else "middle"
        parts.append(_text(LEFT + width * i / 4, base + 18, f"{top * i / 4:.3g} s", anchor))
    parts.append(_text(LEFT - 6, TOP + 4, str(most), "end"))
    for row, (name, value) in enumerate(marks):
        x = LEFT + width * value / top
        end = "end" if x > WIDTH * 0.8 else "start"
        parts.append(f'<line class="mark" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{base}"/>')
        label = name if name.endswith("s") else f"{name} {value:.3g} s"
        parts.append(_text(x + (-4 if end == "end" else 4), TOP + 12 + 14 * row, label, end))
    said = ", ".join(f"{name} {value:.3g} s" for name, value in marks)
    return _svg("Latency distribution", f"{len(walls_s)} fresh rollouts; {said}", parts)


def differences(deltas: Iterable[CategoryDelta]) -> str:
    """Differences by category with their intervals, around a line at 0."""
    rows = [d for d in deltas if d.paired.mean is not None]
    if not rows:
        return ""
    reached = [
        abs(100 * v)
        for d in rows
        for v in (d.paired.mean, d.paired.low, d.paired.high)
        if v is not None
    ]
    reach = max(ceil(max(reached)), 1)
    left, step = 230, 22
    tall = TOP + step * len(rows) + 34
    middle, half = (left + WIDTH - RIGHT) / 2, (WIDTH - RIGHT - left) / 2
    parts = [f'<line class="axis" x1="{middle}" y1="{TOP}" x2="{middle}" y2="{tall - 30}"/>']
    for i, d in enumerate(rows):
        y = TOP + step * i + step / 2
        at = [
            middle + half * 100 * v / reach if v is not None else None
            for v in (d.paired.low, d.paired.mean, d.paired.high)
        ]
        kind = {"gain": "good", "regression": "bad"}.get(d.reading, "quiet")
        parts.append(_text(left - 8, y + 4, f"{d.category} · {d.metric}", "end"))
        if at[0] is not None and at[2] is not None:
            ends = f'x1="{at[0]:.1f}" y1="{y}" x2="{at[2]:.1f}" y2="{y}"'
            parts.append(f'<line class="whisker {kind}" {ends}/>')
        parts.append(f'<circle class="dot {kind}" cx="{at[1]:.1f}" cy="{y}" r="4"/>')
    for share in (-1, -0.5, 0, 0.5, 1):
        where = middle + half * share
        anchor = "end" if share == 1 else ("start" if share == -1 else "middle")
        parts.append(_text(where, tall - 12, f"{reach * share:+g}" if share else "0", anchor))
    said = "; ".join(f"{d.category} {d.metric} {100 * (d.paired.mean or 0):+.1f}" for d in rows)
    return _svg("Differences by category in points", said, parts, height=tall)


def confusion(found: MetricTable) -> str:
    """A judge's grades (columns) against the reference (rows), shaded by share of the row."""
    size, left, top = 64, 120, 52
    n = len(found.labels)
    parts = [_text(left + size * n / 2, 16, "judge", "middle"), _text(8, top - 12, "labels")]
    for i, label in enumerate(found.labels):
        parts.append(_text(left + size * i + size / 2, top - 8, f"{label:g}", "middle"))
        parts.append(_text(left - 10, top + size * i + size / 2 + 5, f"{label:g}", "end"))
        total = sum(found.confusion[i]) or 1
        for j, count in enumerate(found.confusion[i]):
            x, y, share = left + size * j, top + size * i, count / total
            kind = "agree" if i == j else "differ"
            parts.append(
                f'<rect class="cell {kind}" x="{x}" y="{y}" width="{size - 2}" '
                f'height="{size - 2}" fill-opacity="{0.08 + 0.6 * share:.2f}"/>'
            )
            parts.append(_text(x + size / 2, y + size / 2 + 5, str(count), "middle"))
    said = f"raw agreement {percent(found.raw)}"
    return _svg(
        f"Agreement: {found.name}", said, parts, width=left + size * n + 16, height=top + size * n
    )


class _Scale:
    """From a stage's number and a percentage to the drawing."""

    def __init__(self, low: float, high: float, n: int) -> None:
        self.low, self.high, self.n = low, high, n

    def x(self, i: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (i + 0.5) / self.n

    def y(self, percent: float) -> float:
        share = (percent - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def _grid(scale: _Scale) -> str:
    parts = []
    for i in range(5):
        value = scale.low + (scale.high - scale.low) * i / 4
        y = scale.y(value)
        parts.append(
            f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
        )
        parts.append(_text(LEFT - 6, y + 4, f"{value:.1f}", "end"))
    return "".join(parts)


def _names(scale: _Scale, names: Sequence[str]) -> str:
    """Names under their stages, on two levels where they are many."""
    crowded = len(names) > 6
    return "".join(
        _text(scale.x(i), HEIGHT - BOTTOM + 20 + (16 * (i % 2) if crowded else 0), name, "middle")
        for i, name in enumerate(names)
    )


def _line(
    scale: _Scale, values: Sequence[float | None], stages: Sequence[Stage], key: str, label: str
) -> str:
    points = [(i, 100 * v) for i, v in enumerate(values) if v is not None]
    path = " ".join(f"{scale.x(i):.1f},{scale.y(v):.1f}" for i, v in points)
    parts = [f'<polyline class="line {key}" points="{path}"/>']
    for i, value in points:
        x, y, stage = scale.x(i), scale.y(value), stages[i]
        about = escape(f"{stage.name}: {label} {value:.2f} % (n {stage.n})")
        if stage.selected:
            parts.append(f'<circle class="ring {key}" cx="{x:.1f}" cy="{y:.1f}" r="9"/>')
        dot = f'<circle class="dot {key}" cx="{x:.1f}" cy="{y:.1f}" r="4">'
        parts.append(f"{dot}<title>{about}</title></circle>")
        parts.append(_text(x, y - 12, f"{value:.2f}", "middle"))
    return "".join(parts)


def _baseline(scale: _Scale, value: float | None, name: str, key: str) -> str:
    if value is None:
        return ""
    y = scale.y(100 * value)
    line = f'<line class="base {key}" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
    # Below the line: the values of stages stand above their points.
    return line + _text(WIDTH - RIGHT, y + 14, f"{name} {100 * value:.2f}", "end")


def _legend(names: Sequence[tuple[str, str]]) -> str:
    parts = []
    for i, (key, label) in enumerate(names):
        x = LEFT + 130 * i
        parts.append(f'<circle class="dot {key}" cx="{x}" cy="10" r="4"/>')
        parts.append(_text(x + 10, 14, label))
    return "".join(parts)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(
    title: str, said: str, parts: Iterable[str], *, width: float = WIDTH, height: float = HEIGHT
) -> str:
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {width:g} {height:g}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>'
        f"<desc>{escape(said)}</desc>{''.join(parts)}</svg>"
    )


def percent(value: float | None) -> str:
    """A share in percent, as the texts of charts have it."""
    return "–" if value is None else f"{100 * value:.2f} %"
