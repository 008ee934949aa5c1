"""Names of harness revisions: those of git, the evolution branches, and `evolve/latest`."""

import re

from harness_cli.store.repo import Repo

PREFIX = "evolve/"
LATEST = "evolve/latest"
"""The newest harness there is: the tip of the last `evolve/<n>`, or HEAD where there is none or
HEAD holds it already. A script that evaluates after `harness edit apply` needs no branch number,
and goes on where there was nothing to apply."""
_BRANCH = re.compile(r"refs/heads/evolve/(\d+)$")


def named(repo: Repo, rev: str) -> str:
    """What git is asked for where somebody says `rev`; a branch of that very name goes first."""
    if rev != LATEST or repo.ask("rev-parse", "--verify", "--quiet", f"refs/heads/{LATEST}"):
        return rev
    newest = last_evolution(repo)
    if newest == 0:
        return "HEAD"
    branch = f"{PREFIX}{newest}"
    held = repo.ask("merge-base", "--is-ancestor", branch, "HEAD") is not None
    return "HEAD" if held else branch


def last_evolution(repo: Repo) -> int:
    """The highest n of the branches `evolve/<n>`; 0 where there is none."""
    found = (_BRANCH.match(ref) for ref in repo.refs("refs/heads/evolve/"))
    return max((int(m[1]) for m in found if m), default=0)
