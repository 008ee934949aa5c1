"""The evolution trajectory as text: one column a stage, Accuracy and Effectiveness in percent."""

from collections.abc import Sequence
from math import ceil, floor

HEIGHT = 12


def draw(stages: Sequence[tuple[str, float | None, float | None]]) -> str:
    """Lines of a chart: `A` Accuracy, `E` Effectiveness, `*` both, on a scale that fits them."""
    values = [100 * v for _, *pair in stages for v in pair if v is not None]
    if not values:
        return "nothing measured"
    low, high = floor(min(values)), ceil(max(values))
    high = max(high, low + 1)
    width = max(len(name) for name, *_ in stages) + 2
    rows = []
    for level in range(HEIGHT, -1, -1):
        marks = [
            mark(level_of(a, low, high) == level, level_of(e, low, high) == level)
            for _, a, e in stages
        ]
        label = f"{low + (high - low) * level / HEIGHT:6.1f} │"
        rows.append(label + "".join(m.center(width) for m in marks).rstrip())
    rows.append(" " * 7 + "└" + "─" * (width * len(stages)))
    rows.append(" " * 8 + "".join(name.center(width) for name, *_ in stages).rstrip())
    rows.append("A Accuracy   E Effectiveness   * both")
    return "\n".join(rows)


def level_of(value: float | None, low: int, high: int) -> int | None:
    """The row of a score."""
    return None if value is None else round((100 * value - low) / (high - low) * HEIGHT)


def mark(accuracy: bool, effectiveness: bool) -> str:
    """What stands in one cell."""
    if accuracy and effectiveness:
        return "*"
    return "A" if accuracy else ("E" if effectiveness else " ")
