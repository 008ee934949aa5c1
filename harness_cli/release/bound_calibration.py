"""The calibration that a manifest binds, made anew as far as the repository allows."""

from harness_cli.errors import HarnessError
from harness_cli.evaluation.labelled import constructed
from harness_cli.harness.parts import judges
from harness_cli.judges.agreeing import measure
from harness_cli.judges.grounded.judge import GroundedJudge
from harness_cli.judges.labels import as_item, as_trajectory
from harness_cli.records.calibration import Calibration, MetricAgreement
from harness_cli.records.manifest import Manifest
from harness_cli.release.checks import Check, compared
from harness_cli.release.gates.judging import record_of
from harness_cli.stats.agreement import Weights, agreement_of
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo

CLOSE = 1e-9
WHAT = "calibration"


def check_calibration(manifest: Manifest, there: Project, trees: frozenset[str]) -> list[Check]:
    """What can be made anew of a bound calibration; nothing where none is bound.

    `there` holds the evalsets of the bound commit, `trees` the tree ids of its judges. Agreement
    and κ come from the bound confusion tables; the grounded judge of this version is run again.
    """
    bound = manifest.predicate.judge
    record = record_of(bound)
    if record is None:
        return []
    checks = [Check(f"{WHAT} numbers", "verified" if _sound(record) else "wrong")]
    if bound.get("standing") != "current":
        told = "the judge or its labels had changed since: it decided nothing"
        return [*checks, Check(f"{WHAT} of the judge", "not re-checked", told)]
    checks.append(Check(f"{WHAT} of the judge", *compared(str(bound.get("id")), record.judge.id)))
    if record.judge.tree is not None:
        known = record.judge.tree if record.judge.tree in trees else None
        checks.append(Check("judge tree", *compared(known, record.judge.tree)))
    if record.source:
        told = f"labels of `{record.source}` are not among the evalsets"
        return [*checks, Check(f"{WHAT} labels", "not re-checked", told)]
    return [*checks, *_made_anew(record, there)]


def _sound(record: Calibration) -> bool:
    """The numbers are those of the confusion tables, and the tables hold every reply."""
    return all(_follows(found, record.n) for found in (record.accuracy, record.effectiveness))


def _follows(found: MetricAgreement, n: int) -> bool:
    if sum(map(sum, found.confusion)) + sum(found.invalid) != n or n == 0:
        return False
    weights: Weights = "quadratic" if found.weights == "quadratic" else "none"
    raw, kappa = agreement_of(found.confusion, found.invalid, weights)
    if abs(raw - found.raw) > CLOSE or (kappa is None) != (found.kappa is None):
        return False
    return kappa is None or abs(kappa - (found.kappa or 0.0)) <= CLOSE


def _made_anew(record: Calibration, there: Project) -> list[Check]:
    """The calibration set of the bound commit, and the judge run on it where that is code."""
    try:
        labels = constructed(there, record.evalset)
    except HarnessError as exc:
        return [Check(f"{WHAT} set", "wrong", str(exc))]
    checks = [Check(f"{WHAT} set", *compared(labels.digest, record.evalset_digest))]
    judge = GroundedJudge()
    if record.judge.tree is not None:
        told = "a panel asks models, which verifying does not"
        return [*checks, Check(f"{WHAT} verdicts", "not re-checked", told)]
    if judge.id != record.judge.id:
        told = f"this version holds {judge.id}"
        return [*checks, Check(f"{WHAT} verdicts", "not re-checked", told)]
    verdicts = [
        judge.verdict(as_item(r, labels.world), as_trajectory(r), labels.world)
        for r in labels.replies
    ]
    report = measure(judge.id, labels.replies, verdicts)
    same = all(
        found is not None and (found.confusion, found.invalid) == (kept.confusion, kept.invalid)
        for found, kept in (
            (report.accuracy, record.accuracy),
            (report.effectiveness, record.effectiveness),
        )
    )
    return [*checks, Check(f"{WHAT} verdicts", "verified" if same else "wrong")]


def judge_trees(project: Project, rev: str | None) -> frozenset[str]:
    """Tree ids of every judge of the harness at a revision; none where it is not here."""
    repo = Repo.open(project.harness)
    try:
        files = repo.files(rev or "HEAD", project.harness)
    except HarnessError:
        return frozenset()
    return frozenset(repo.tree_id(part) for part in judges(files).values())
