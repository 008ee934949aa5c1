"""Tables and the chart of `harness bench mtp`: TR Tables 16 and 17, tool calls, the boundary."""

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from harness_cli.serving.bench.figures import Figures
from harness_cli.serving.bench.mtp import Level, MtpBench, Quality, Validity
from harness_cli.serving.bench.tables import Table, contrasts, difference, markdown, ratio
from harness_cli.stats.percentiles import across_runs

HEAD: Final = (
    "arm", "C", "runs", "decode mean", "speed-up", "of medians", "wall P95 s", "P95 on/off",
    "TTFT P95 s", "≤ bound", "P95",
)  # fmt: skip
SAYS: Final = {"gains": "gains", "unclear": "unclear", "none": "no gain"}


def across_concurrency(found: Sequence[MtpBench]) -> Table:
    """As TR Table 17: arrows show off → on, ratios with the intervals of pairs of cases."""
    rows: list[Sequence[object]] = []
    for bench in found:
        for level in bench.levels:
            first = level.contrasts[0] if level.contrasts else None
            rows.append(
                (
                    bench.arm,
                    level.concurrency,
                    len(level.contrasts),
                    _arrow(level, "decode", 2),
                    ratio(first.decode) if first else "–",
                    ratio(first.decode_median) if first else "–",
                    _arrow(level, "wall", 3),
                    ratio(first.wall_p95) if first else "–",
                    _arrow(level, "ttft", 3),
                    _arrow(level, "attainment", 1),
                    SAYS[level.gain],
                )
            )
    return HEAD, rows


def _value(numbers: Figures, what: str) -> float | None:
    if what == "decode":
        return numbers.decode.mean
    if what == "attainment":
        return None if numbers.attainment is None else 100 * numbers.attainment
    return numbers.wall.p95 if what == "wall" else numbers.ttft.p95


def mean_of(numbers: Sequence[Figures], what: str) -> float | None:
    """The mean over runs of one column; run-level values are never pooled."""
    known = [v for f in numbers if (v := _value(f, what)) is not None]
    found = across_runs(known)
    return None if found is None else found.mean


def _arrow(level: Level, what: str, digits: int) -> str:
    ends = [mean_of(numbers, what) for numbers in (level.off, level.on)]
    told = ["–" if v is None else f"{v:.{digits}f}" for v in ends]
    return "→".join(told) + ("%" if what == "attainment" else "")


def qualities(found: Sequence[Quality]) -> Table:
    """As TR Table 16, with the paired difference and the verdict beside the two numbers."""
    head = ("arm", "metric", "n", "off", "on", "on − off", "margin", "verdict")
    rows: list[Sequence[object]] = [
        (
            q.arm,
            q.metric,
            f"{q.n} ({q.lost} broke with it alone)" if q.lost else q.n,
            _percent(q.off),
            _percent(q.on),
            difference(q.difference, 4),
            f"{q.margin:g}",
            q.verdict,
        )
        for q in found
    ]
    return head, rows


def validities(found: Sequence[Validity]) -> Table:
    """Malformed tool calls by arm, and the cases that only one arm spoilt."""
    head = ("arm", "C", "tool calls", "malformed", "cases worse", "cases better", "p")
    rows: list[Sequence[object]] = [
        (
            v.arm,
            v.concurrency,
            v.calls,
            v.malformed,
            v.cases_gained,
            v.cases_lost,
            "–" if v.p is None else f"{v.p:.3g}",
        )
        for v in found
    ]
    return head, rows


def page(found: Sequence[MtpBench]) -> str:
    """Everything as Markdown."""
    parts = ["## MTP across concurrency\n", markdown(across_concurrency(found))]
    parts += [f"- {bench.arm}: {text}\n" for bench in found for text in bench.advice]
    for bench in found:
        if bench.against_exact:
            parts += ["\n### Lossy against exact\n", markdown(contrasts(bench.against_exact))]
    checks = [q for bench in found for q in bench.quality]
    if checks:
        parts += ["\n### Quality\n", markdown(qualities(checks))]
    parts += ["\n### Tool calls\n", markdown(validities([v for b in found for v in b.validity]))]
    return "\n".join(parts)


WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 300, 56, 40, 40
PANEL = (WIDTH - 3 * LEFT) / 2
COLOURS: Final = {"off": "#475569", "on": "#1f6feb"}


def chart(bench: MtpBench) -> str:
    """Decode speed and wall P95 by concurrency, off and on; empty without a level."""
    if not bench.levels:
        return ""
    parts = [
        _panel(bench, "decode", "decode speed, tokens/s", LEFT),
        _panel(bench, "wall", "wall P95, s", 2 * LEFT + PANEL + LEFT / 2),
    ]
    for n, (name, label) in enumerate((("off", "MTP off"), ("on", bench.arm))):
        x = LEFT + 160 * n
        parts.append(f'<rect x="{x}" y="6" width="10" height="10" fill="{COLOURS[name]}"/>')
        parts.append(_text(x + 15, 15, label, "start"))
    said = "; ".join(
        f"C={v.concurrency}: decode {_arrow(v, 'decode', 1)}, wall P95 {_arrow(v, 'wall', 3)}"
        for v in bench.levels
    )
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12">'
        f"<title>MTP across concurrency</title><desc>{escape(said)}</desc>{''.join(parts)}</svg>"
    )


def _panel(bench: MtpBench, what: str, title: str, left: float) -> str:
    series = {
        "off": [mean_of(level.off, what) for level in bench.levels],
        "on": [mean_of(level.on, what) for level in bench.levels],
    }
    high = max((v for values in series.values() for v in values if v is not None), default=1.0)
    bottom, height, count = HEIGHT - BOTTOM, HEIGHT - TOP - BOTTOM, len(bench.levels)
    parts = [_text(left + PANEL / 2, TOP - 8, title, "middle")]

    def x(n: int) -> float:
        return left + PANEL * (n + 0.5) / count

    for i in range(5):
        y = bottom - height * i / 4
        parts.append(
            f'<line stroke="#8888" x1="{left:.1f}" y1="{y:.1f}" x2="{left + PANEL:.1f}" '
            f'y2="{y:.1f}"/>'
        )
        parts.append(_text(left - 6, y + 4, f"{high * i / 4:.3g}", "end"))
    for n, level in enumerate(bench.levels):
        parts.append(_text(x(n), bottom + 16, f"C={level.concurrency}", "middle"))
    for name, values in series.items():
        known = [
            (x(n), bottom - height * v / (high or 1)) for n, v in enumerate(values) if v is not None
        ]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in known)
        parts.append(
            f'<polyline fill="none" stroke="{COLOURS[name]}" stroke-width="2" points="{path}"/>'
        )
        parts += [
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4" fill="{COLOURS[name]}"/>' for a, b in known
        ]
    return "".join(parts)


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text fill="currentColor" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f}"
