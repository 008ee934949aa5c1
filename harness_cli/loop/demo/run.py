"""`harness demo`: the whole loop in a temporary project, honest about whatever happens."""

import time
from pathlib import Path
from typing import NamedTuple

from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.loop.demo.frozen import frozen_differences, read_freezes
from harness_cli.loop.demo.record import Demo, Narrator
from harness_cli.loop.demo.stages import EVALSET, SPLIT, Loop, base_stage, evolution_stage
from harness_cli.loop.record import evolution_record
from harness_cli.loop.scaffold import make_project
from harness_cli.records.counting import counted
from harness_cli.release.channels import read_channel
from harness_cli.release.rollback import roll_back
from harness_cli.release.verify import verified, verify
from harness_cli.store.project import Project

EVOLUTIONS = 2


class Proof(NamedTuple):
    """What was verified, and what a rollback went back to."""

    verified: bool
    rolled_back_to: str
    verified_after_rollback: bool


async def run_demo(
    folder: Path, narrator: Narrator, *, evolutions: int = EVOLUTIONS, limit: int | None = None
) -> Demo:
    """base → (diagnose → propose → confirm → evaluate → compare → gates)ⁿ → verify → rollback.

    Nothing of the outcome is fixed beforehand: scores are measured here, and a stage that does not
    help is shown and not promoted.
    """
    started = time.monotonic()
    narrator.command(f"harness init {folder}")
    project = Project.read(make_project(folder).root)
    narrator.say(f"   a project in {project.root}, on the policy `{project.config.policy}`,")
    narrator.say("   a deterministic baseline policy: no key, no network, not a language model")
    changed = frozen_differences(project)
    for freeze in read_freezes(project)[1:]:
        narrator.say(f"   frozen again on {freeze.at}: {freeze.reason}")
    for words in changed:
        narrator.say(f"   note: {words} since it was frozen; the base is measured here anew")
    loop = Loop(project=project, narrator=narrator, limit=limit)
    await base_stage(loop)
    for number in range(1, evolutions + 1):
        if not await evolution_stage(loop, number):
            break
    rows, advice = evolution_record(project, evalset=EVALSET, split=SPLIT)
    narrator.say("\nThe record")
    narrator.command("harness log")
    narrator.rows(
        ["stage", "Acc.", "Eff.", "served"],
        [
            [
                r.stage,
                *(f"{100 * (r.scores.get(m) or 0):.2f}" for m in ("accuracy", "effectiveness")),
                "yes" if r.served else "",
            ]
            for r in rows
        ],
    )
    narrator.say(f"   advice: {advice.action}: {'; '.join(advice.reasons)}")
    proof = prove(loop)
    first = loop.selected.config() if loop.selected else None
    return Demo(
        folder=str(project.root),
        policy=first.policy_id if first else "",
        judge=first.judge_id if first else "",
        evalset=f"{EVALSET}/{SPLIT}",
        evalset_digest=load_evalset(project, EVALSET, split=SPLIT).digest,
        frozen=not changed,
        unfrozen=tuple(changed),
        stages=tuple(loop.stages),
        advice=advice.action,
        selected=advice.selected or "",
        seconds=round(time.monotonic() - started, 1),
        verified=proof.verified,
        rolled_back_to=proof.rolled_back_to,
        verified_after_rollback=proof.verified_after_rollback,
    )


def prove(loop: Loop) -> Proof:
    """Verify what serves, roll back where there is something to go back to, verify again."""
    project, narrator = loop.project, loop.narrator
    name = project.config.channel
    narrator.say("\nProof and the way back")
    good = check_served(loop)
    if len(read_channel(project.manifests, name).history) < 2:
        narrator.say("   only the base was promoted: there is nothing to roll back to")
        return Proof(verified=good, rolled_back_to="", verified_after_rollback=good)
    narrator.command(f"harness rollback {name}")
    back = roll_back(
        project,
        name,
        axes=frozenset({"policy", "harness"}),
        by="harness demo",
        reason="the demo shows the way back",
    )
    narrator.say(f"   `{name}` serves {back.harness} again")
    return Proof(
        verified=good,
        rolled_back_to=back.harness or "",
        verified_after_rollback=check_served(loop),
    )


def check_served(loop: Loop) -> bool:
    """Verify the manifest that the channel serves."""
    project, narrator = loop.project, loop.narrator
    served = read_channel(project.manifests, project.config.channel).harness
    if served is None:
        narrator.say("   nothing was promoted, so there is nothing to verify")
        return False
    narrator.command(f"harness manifest verify {served}")
    _, checks = verify(project, served)
    wrong = [c for c in checks if c.outcome == "wrong"]
    open_ = [c for c in checks if c.outcome == "not re-checked"]
    for check in wrong:
        narrator.say(f"   WRONG {check.what}: {check.detail}")
    held = len(checks) - len(wrong) - len(open_)
    narrator.say(
        f"   {held} of {counted(len(checks), 'check')} made anew, {len(open_)} not re-checked"
    )
    return verified(checks)
