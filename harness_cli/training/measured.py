"""What may never become training data: splits that measure.

A policy trained on items it is tested with measures its memory. Only `train` and `dev` are open, a
sealed split never is.
"""

from harness_cli.errors import UsageError
from harness_cli.evaluation.evalsets import load_header
from harness_cli.records.run import EvalsetRef
from harness_cli.store.project import Project

OPEN = ("train", "dev")


def refuse_measuring(project: Project, evalset: EvalsetRef) -> None:
    """Raise `UsageError` for a run over items that a policy is tested with."""
    split = evalset.split
    if split not in OPEN:
        said = f"split `{split}`" if split else "no split"
        raise UsageError(
            f"`{evalset.name}` ({said}) is no training data: only `train` and `dev` are",
            hint="what is trained on measures nothing any more; run a split that is open",
        )
    header = load_header(project, evalset.name)
    if split in header.seal.splits:
        raise UsageError(f"`{evalset.name}` {split} is sealed: it is never training data")
    if header.role == "judge" or header.agent == "bare":
        what = "calibrates judges" if header.role == "judge" else "tests a bare policy"
        raise UsageError(f"`{evalset.name}` {what}: it is no training data of a harness agent")
