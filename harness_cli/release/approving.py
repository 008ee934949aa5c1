"""An approval by signature: a person's yes to one pair, which nobody else can say for them."""

from pathlib import Path

import msgspec

from harness_cli.errors import UsageError
from harness_cli.records.manifest import Approval
from harness_cli.release.candidate import Pair
from harness_cli.release.channels import list_manifests, read_channel
from harness_cli.release.clock import now, refuse_clock
from harness_cli.release.people import approval_payload, check_approval
from harness_cli.release.promote import record_approval
from harness_cli.release.signing import signed_by, trust_of
from harness_cli.release.ssh import APPROVAL, sign
from harness_cli.store.project import Project


def approve(project: Project, pair: Pair, key: Path, *, comment: str = "") -> Approval:
    """The approval of a pair, signed, checked and on record.

    It is in the name that the allowed signers give the key. Raises `UsageError` where there is no
    such file, or where the key is not in it for approvals.
    """
    trust = trust_of(project)
    if trust.allowed is None:
        raise UsageError(
            "nobody is allowed to approve by signature: there is no file of allowed signers",
            hint=f"{project.config.manifests}/allowed_signers, see docs/release.md",
        )
    _, by = signed_by(b"who signs with this key", key, trust, APPROVAL)
    approval = Approval(by=by, at=now(), subject=pair.subject, comment=comment)
    channel = read_channel(project.manifests, project.config.channel)
    refuse_clock(approval.at, channel, list_manifests(project.manifests).values())
    signature = sign(approval_payload(approval), key, APPROVAL).decode()
    signed = msgspec.structs.replace(approval, signature=signature)
    problem = check_approval(signed, trust).problem
    if problem:
        raise UsageError(f"the approval does not hold: {problem}")
    record_approval(project, signed)
    return signed
