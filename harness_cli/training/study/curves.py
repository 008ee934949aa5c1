"""What every job of a study measured step by step, in small: losses, and rewards of RL."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from harness_cli.records.study import Study
from harness_cli.training.job_folder import JobFolder
from harness_cli.training.study.checked import BASE_ARM
from harness_cli.training.study.run import named

DIGITS: Final = 4
Curve = dict[str, list[float]]
"""Measure → its value at every `step`."""


def curves_of(study: Study, project: Path, base: Path) -> dict[str, dict[int, Curve]]:
    """Arm → seed → curve, for every job that has one; the base's, which has no seed, is under 0."""
    found: dict[str, dict[int, Curve]] = {}
    if base.is_file():
        lines = [msgspec.json.decode(line) for line in base.read_bytes().splitlines()]
        found[BASE_ARM] = {0: _curve(lines, ("loss",))}
    for arm in study.arms:
        for seed in study.seeds:
            lines = JobFolder.of(project, named(arm.name, seed)).curve()
            if lines:
                found.setdefault(arm.name, {})[seed] = _curve(lines, _measures(lines[0]))
    return found


def _measures(names: Iterable[str]) -> list[str]:
    return [n for n in names if n == "loss" or (n.startswith("rewards/") and n.endswith("/mean"))]


def _curve(lines: Sequence[dict[str, Any]], measures: Iterable[str]) -> Curve:
    return {
        name: [round(line[name], DIGITS) for line in lines if name in line]
        for name in ("step", *measures)
    }
