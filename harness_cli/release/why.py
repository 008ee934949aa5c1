"""A verified manifest in words: what holds, what does not, and on whose word."""

from harness_cli.errors import HarnessError
from harness_cli.records.counting import counted
from harness_cli.records.manifest import Manifest
from harness_cli.release.channels import read_manifest
from harness_cli.release.checks import Check
from harness_cli.release.ssh import Trust
from harness_cli.store.project import Project

MEANS = {
    "manifest": "the file itself",
    "file name": "the manifest speaks of itself under its own name",
    "subjects": "its subjects are the policy and the harness that it binds",
    "gate settings": "the gates are those it was decided by",
    "gate file": "those gates are the ones that were committed",
    "limits": "its time limits are the ones that were committed",
    "policy settings": "the policy is set as was committed",
    "outcome": "every enforced gate passed",
    "signature": "an allowed signer vouches for these bytes",
    "envelope": "the envelope holds this manifest, and an allowed signer vouches for it",
    "release tag": "the tag of this release names a commit that holds it",
    "history": "the manifest was not edited since it was made",
    "dates": "runs, approvals and manifest follow one another in time",
    "harness tree": "the harness is the one that was measured",
    "tool schemas": "its tools take what they took",
    "MCP lock": "its servers are locked to what they listed",
    "inventory": "every skill, tool and hook is the one that was released",
    "evidence file": "the file of evidence is the one that was bound",
    "authors": "the people who made the edit are known",
    "full trajectories": "the dialogues behind the scores",
}
"""What a check means for a release manager."""


def allowed(manifest: Manifest) -> list[str]:
    """Why it was let through, by its own record: every gate's answer, and against whom."""
    bound = manifest.predicate
    lines = [
        f"policy {bound.policy['id']} in harness {bound.harness['tree'][:12]} was allowed on "
        f"{bound.created} beside {bound.incumbent or 'no incumbent'}, because:"
    ]
    for gate in bound.gates:
        watched = " (only watched)" if gate.mode == "dry_run" else ""
        lines.append(f"  {gate.outcome} {gate.name}{watched}: {gate.summary}")
    return lines


def reasons(project: Project, name: str, checks: list[Check], trust: Trust) -> list[str]:
    """Why it was allowed, then one line per thing that was checked, the wrong ones first, and a
    last line that sums up."""
    lines = []
    for outcome, word in (("wrong", "does NOT hold"), ("verified", "holds"), ("", "not looked at")):
        for check in checks:
            if check.outcome == outcome or (not outcome and check.outcome == "not re-checked"):
                told = f" ({check.detail})" if check.detail else ""
                lines.append(f"{word}: {meaning(check.what)}{told}")
    wrong = sum(check.outcome == "wrong" for check in checks)
    end = (
        f"{counted(wrong, 'thing')} wrong: serve nothing that rests on it" if wrong else "it holds"
    )
    try:
        why = allowed(read_manifest(project.manifests, name))
    except HarnessError:
        why = []  # the checks say what is wrong with the file
    return [
        f"{name}:",
        *(f"  {line}" for line in [*why, *(["of this:"] if why else [])]),
        *(f"  {line}" for line in lines),
        f"  {trusted(project, trust)}",
        f"  {end}",
    ]


def meaning(what: str) -> str:
    """A check's name in words."""
    if what in MEANS:
        return MEANS[what]
    kind, _, name = what.partition(" ")
    return {
        "gate": f"the gate `{name}` decides on the evidence as is recorded",
        "evalset": f"the items of `{name}` are those that were measured",
        "evidence": f"the evidence of run `{name}` is what was bound",
        "rollouts": f"the dialogues of run `{name}` come to these scores when checked again",
    }.get(kind, what)


def trusted(project: Project, trust: Trust) -> str:
    """Whose word a signature's standing rests on."""
    if trust.allowed is None:
        return "nobody is listed as an allowed signer: what is not signed rests on git alone"
    if trust.allowed.resolve().is_relative_to(project.root.resolve()):
        return (
            f"allowed signers come from the repository itself (`{trust.allowed.name}`): who "
            "writes it can list themselves; --allowed-signers FILE takes your own"
        )
    return f"allowed signers come from `{trust.allowed}`"
