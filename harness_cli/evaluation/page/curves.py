"""Curves of a training run as inline SVG: each step faint, its trailing mean bold (TR Figure 8)."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 340
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 40, 44
COLOURS = ("#1f6feb", "#c2410c", "#15803d", "#7e22ce", "#b45309", "#475569")
TRAILING = 25
"""Steps of the bold line's mean: this one and those before it."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One series: steps and values of equal length."""

    name: str
    steps: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Band:
    """A named range of values, shaded behind the curves."""

    name: str
    low: float
    high: float


def trailing_mean(values: Sequence[float], window: int = TRAILING) -> list[float]:
    """The mean of each value and the window − 1 before it, of fewer at the start."""
    made, total = [], 0.0
    for n, value in enumerate(values):
        total += value
        if n >= window:
            total -= values[n - window]
        made.append(total / min(n + 1, window))
    return made


def curves(
    title: str, found: Sequence[Curve], *, value: str = "loss", bands: Sequence[Band] = ()
) -> str:
    """One chart of all series from step 1, with value 0 on it; empty without a point."""
    shown = [c for c in found if c.values]
    if not shown:
        return ""
    last = max(max(c.steps) for c in shown)
    low = min(0.0, *(min(c.values) for c in shown))
    high = max(0.0, *(max(c.values) for c in shown))
    high = high if high > low else low + 1.0

    def tall(y: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y - low) / (high - low)

    def at(step: int, y: float) -> str:
        x = LEFT + (WIDTH - LEFT - RIGHT) * (step - 1) / max(1, last - 1)
        return f"{x:.1f},{tall(y):.1f}"

    parts = [_axes(last, low, high, value)]
    for n, band in enumerate(b for b in bands if b.low < high):
        top = tall(min(band.high, high))
        parts.append(
            f'<rect x="{LEFT}" y="{top:.1f}" width="{WIDTH - LEFT - RIGHT}" fill="{COLOURS[-1]}" '
            f'fill-opacity="{0.04 + 0.06 * n:.2f}" height="{tall(band.low) - top:.1f}"/>'
        )
        parts.append(_text(WIDTH - RIGHT - 4, top + 14, band.name, "end"))
    for n, curve in enumerate(shown):
        colour = COLOURS[n % len(COLOURS)]
        for values, width, opacity in (
            (curve.values, 1, 0.3),
            (trailing_mean(curve.values), 2.5, 1.0),
        ):
            points = " ".join(at(s, y) for s, y in zip(curve.steps, values, strict=True))
            parts.append(
                f'<polyline fill="none" stroke="{colour}" stroke-width="{width}" '
                f'stroke-opacity="{opacity}" points="{points}"/>'
            )
        parts.append(_label(n, curve.name, colour))
    said = "; ".join(
        f"{c.name}: {c.values[0]:.3f} at step {c.steps[0]}, "
        f"mean {trailing_mean(c.values)[-1]:.3f} of the last {min(TRAILING, len(c.values))} steps"
        for c in shown
    )
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12">'
        f"<title>{escape(title)}</title><desc>{escape(said)}</desc>{''.join(parts)}</svg>"
    )


def _axes(last: int, low: float, high: float, value: str) -> str:
    parts = []
    for i in range(5):
        y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * i / 4
        parts.append(
            f'<line stroke="#8888" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
        )
        parts.append(_text(LEFT - 6, y + 4, f"{low + (high - low) * i / 4:.3g}", "end"))
    for step in dict.fromkeys((1, (1 + last) // 2, last)):
        x = LEFT + (WIDTH - LEFT - RIGHT) * (step - 1) / max(1, last - 1)
        parts.append(_text(x, HEIGHT - BOTTOM + 16, str(step), "middle"))
    parts.append(_text((LEFT + WIDTH) / 2, HEIGHT - 8, f"step · {value}, faint; bold: mean of "
                       f"{TRAILING} steps", "middle"))  # fmt: skip
    return "".join(parts)


def _label(n: int, name: str, colour: str) -> str:
    x, y = LEFT + 220 * (n % 3), 14 + 16 * (n // 3)
    return f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>' + _text(
        x + 15, y, name, "start"
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text fill="currentColor" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )
