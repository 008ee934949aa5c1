"""`harness train mtp`: the job as every other, then the table of its arms."""

from pathlib import Path

from harness_cli.commands._show import note, table
from harness_cli.commands._training import Wish, read_job, train
from harness_cli.records.mtp import Drafting, MtpArm, MtpComparison
from harness_cli.records.reader import read_json
from harness_cli.store.project import Project
from harness_cli.training.job_folder import JobFolder


def train_mtp(directory: Path, wish: Wish, *, as_json: bool, quiet: bool) -> None:
    """Train a head; the arms on stderr's side of things stay a table on stdout."""
    train(directory, wish, as_json=as_json, quiet=quiet)
    if as_json or wish.dry_run or wish.background or wish.engine != "here":
        return
    name = read_job(directory, wish).name
    folder = JobFolder.of(Project.find(directory).root, name)
    path = folder.path / "arms.json"
    if path.is_file():
        show_arms(read_json(path, MtpComparison, name=str(path)))
        if not quiet:
            note(f"curves: {folder.path / 'loss.svg'}")


def show_arms(found: MtpComparison) -> None:
    """METHODS §7's arms: first and last loss, accept length by each way of sampling."""
    table(
        ("arm", "policy", "loss at step 1", "last 25", "accept len greedy", "exact", "lossy",
         "accept rate", "greedy = plain"),
        [_row(arm) for arm in found.arms],
    )  # fmt: skip


def _row(arm: MtpArm) -> tuple[str | float | None, ...]:
    by_way = {d.way: d for d in arm.drafting}
    greedy = by_way.get("greedy")
    return (
        arm.name,
        arm.policy,
        arm.first_loss,
        arm.last_loss,
        *(_length(by_way.get(way)) for way in ("greedy", "exact", "lossy")),
        greedy.accept_rate if greedy else None,
        {True: "yes", False: "NO", None: None}[greedy.same_as_plain if greedy else None],
    )


def _length(found: Drafting | None) -> str | None:
    return f"{found.accept_length:.2f}" if found else None
