"""The calibration that this repository commits holds for the judge and the set that it ships."""

from pathlib import Path

from harness_cli.evaluation.calibrating import standing_of
from harness_cli.store.project import Project

ROOT = Path(__file__).parents[2]


def test_the_grounded_judges_calibration_is_current():
    found = standing_of(Project.read(ROOT), "grounded")
    assert found.standing == "current", (
        f"{'; '.join(found.changes)}: harness judge calibrate --judge grounded, then carry the "
        "numbers over to docs/judge_agreement.md"
    )


def test_docs_state_what_the_record_holds():
    record = standing_of(Project.read(ROOT), "grounded").record
    text = (ROOT / "docs" / "judge_agreement.md").read_text()
    assert record.judge.id in text
    for found in (record.accuracy, record.effectiveness):
        assert f"| {100 * found.raw:.1f} % |" in text
        assert f"| {found.kappa:.3f} |" in text
    for kind in record.kinds:
        row = next(line for line in text.splitlines() if line.startswith(f"| `{kind.kind}` |"))
        assert f"{kind.caught} of {kind.n}" in row.replace("*", "")
        assert row.endswith(f"| {kind.alike} |")
