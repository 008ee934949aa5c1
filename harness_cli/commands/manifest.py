"""`harness manifest verify|archive|sign|export|show|diff|list`: release manifests. No network."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_cli.commands._completing import channel_names, manifest_names
from harness_cli.commands._manifest_files import Name, archive, export
from harness_cli.commands._options import HERE, Folder, Json, Quiet, within

if TYPE_CHECKING:
    from harness_cli.records.manifest import Approval
    from harness_cli.store.project import Project

app = typer.Typer(
    rich_markup_mode=None, no_args_is_help=True, help="Verify, show, diff, list release manifests."
)


@app.command()
def verify(
    name: Annotated[
        str | None,
        typer.Argument(help="A manifest's id; default: all.", autocompletion=manifest_names),
    ] = None,
    channel: Annotated[
        str | None, typer.Option(help="What this channel serves now.", autocompletion=channel_names)
    ] = None,
    allowed_signers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="HARNESS_ALLOWED_SIGNERS",
            help="Whose signatures count, kept outside the repository; unsigned does not hold.",
        ),
    ] = None,
    revoked_signers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", envvar="HARNESS_REVOKED_SIGNERS", help="Revoked keys (KRL or keys)."
        ),
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="YYYYMMDD", help="Keys as they were valid on this day.")
    ] = None,
    why: Annotated[bool, typer.Option("--why", help="In words: what holds and what not.")] = False,
    rollouts: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Dialogues to check again: an archive or a folder of runs. Default: its archive.",
        ),
    ] = None,
    dsse: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An envelope of it as well: same bytes, allowed key."),
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make every bound digest anew and decide the gates again. Exit 0 or 1."""
    from harness_cli.commands._show import emit_json, line, note, table
    from harness_cli.release.enveloped import check_envelope, enveloped
    from harness_cli.release.signing import trust_of
    from harness_cli.release.verify import check_all, verified
    from harness_cli.release.why import reasons
    from harness_cli.store.project import Project

    project = Project.find(directory)
    trust = trust_of(
        project, within(directory, allowed_signers), within(directory, revoked_signers), at
    )
    envelope = within(directory, dsse)
    names = [enveloped(envelope, name)] if envelope else _asked(project, name, channel)
    found = {n: check_all(project, n, trust, within(directory, rollouts)) for n in names}
    if envelope:
        found[names[0]].append(check_envelope(project, names[0], envelope, trust))
    good = all(verified(checks) for checks in found.values())
    if as_json:
        emit_json({"verified": good, "manifests": found})
    for n, checks in ({} if as_json else found).items():
        if why:
            for text in reasons(project, n, checks, trust):
                line(text)
            continue
        shown = [c for c in checks if c.outcome == "wrong"] if quiet else checks
        if shown:
            table(["what", "outcome", "detail"], [[c.what, c.outcome, c.detail] for c in shown])
        open_ = sum(c.outcome == "not re-checked" for c in checks)
        line(f"{n}: {'verified' if verified(checks) else 'WRONG'} ({open_} not re-checked)")
    if not good:
        note("error: a manifest does not hold")
        note("\nhint: the lines marked `wrong` say what differs; serve nothing that rests on it")
        raise typer.Exit(1)


def _asked(project: "Project", name: str | None, channel: str | None) -> list[str]:
    """The manifests that were named, that a channel serves, or all of them."""
    from harness_cli.errors import UsageError
    from harness_cli.release.channels import manifest_names as all_names
    from harness_cli.release.channels import read_channel

    if name is not None:
        names = [name]
    elif channel is not None:
        served = read_channel(project.manifests, channel)
        names = sorted({n for n in (served.policy, served.harness) if n})
    else:
        names = all_names(project.manifests)
    if not names:
        raise UsageError("there is no manifest to verify", hint="`harness promote` makes one")
    return names


app.command()(archive)
app.command()(export)


@app.command()
def sign(
    name: Name,
    key: Annotated[
        Path | None,
        typer.Option(metavar="KEY", envvar="HARNESS_SIGNING_KEY", help="SSH key that signs."),
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Sign a manifest that is there already, and tag its commit; without a key tag it alone."""
    from harness_cli.commands._show import emit_json, line
    from harness_cli.release.later import sign_later
    from harness_cli.store.project import Project

    done = sign_later(Project.find(directory), name, key and directory / key.expanduser())
    if as_json:
        emit_json(done)
    elif not quiet:
        line(f"signed by: {done.by or 'nobody'}")
        line(f"tag: {done.tag or 'none, this is no git repository'}")


@app.command()
def show(
    name: Annotated[
        str | None,
        typer.Argument(help="Default: what the channel serves.", autocompletion=manifest_names),
    ] = None,
    channel: Annotated[
        str | None,
        typer.Option(help="Whose; default: the project's.", autocompletion=channel_names),
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What a manifest binds, who approved it, and what its gates said."""
    from harness_cli.commands._show import emit_json, line, table
    from harness_cli.release.channels import read_manifest
    from harness_cli.release.serves import manifest_of
    from harness_cli.store.project import Project

    project = Project.find(directory)
    name = name or manifest_of(project, channel or project.config.channel)
    manifest = read_manifest(project.manifests, name)
    if as_json:
        emit_json(manifest)
        return
    bound = manifest.predicate
    rows = [
        ["created", bound.created],
        ["policy", f"{bound.policy['name']} ({bound.policy['id']})"],
        ["harness tree", bound.harness["tree"]],
        ["harness commit", bound.harness.get("commit")],
        ["modules", len(bound.inventory)],
        ["judge", bound.judge.get("id")],
        ["incumbent", bound.incumbent],
        *(["approved by", _approval(a)] for a in bound.approvals),
        ["edited by", ", ".join(bound.authors or ()) or "nobody since the base"],
    ]
    table(["bound", "value"], rows, title=bound.id)
    if not quiet:
        line()
        table(["gate", "outcome", "summary"], [[g.name, g.outcome, g.summary] for g in bound.gates])


def _approval(approval: "Approval") -> str:
    told = "by signature" if approval.signature else "by name"
    comment = f": {approval.comment}" if approval.comment else ""
    return f"{approval.by}, {approval.at}, {told}{comment}"


@app.command()
def diff(
    a: Name, b: Name, directory: Folder = HERE, as_json: Json = False, quiet: Quiet = False
) -> None:
    """What differs between two manifests: switches, modules, evalsets, judge."""
    from harness_cli.commands._show import emit_json, line, table
    from harness_cli.release.channels import read_manifest
    from harness_cli.release.manifest import manifest_differences
    from harness_cli.store.project import Project

    manifests = Project.find(directory).manifests
    rows = manifest_differences(read_manifest(manifests, a), read_manifest(manifests, b))
    if as_json:
        emit_json({"a": a, "b": b, "differences": [list(row) for row in rows]})
    elif not rows:
        line("the same")
    elif not quiet:
        table(["what", a, b], rows)


@app.command(name="list")
def list_(directory: Folder = HERE, as_json: Json = False, quiet: Quiet = False) -> None:
    """Every manifest, oldest first, and the channels that serve it."""
    from harness_cli.commands._show import emit_json, line, table
    from harness_cli.release.channels import list_channels, list_manifests
    from harness_cli.store.project import Project

    project = Project.find(directory)
    serving: dict[str, list[str]] = {}
    for channel in list_channels(project.manifests):
        for axis in ("policy", "harness"):
            serving.setdefault(getattr(channel, axis) or "", []).append(f"{channel.name}/{axis}")
    rows = [
        {
            "id": name,
            "created": m.predicate.created,
            "policy": m.predicate.policy["name"],
            "harness": m.predicate.harness["tree"],
            "serves": serving.get(name, []),
        }
        for name, m in list_manifests(project.manifests).items()
    ]
    if as_json:
        emit_json({"manifests": rows})
    elif quiet:
        for row in rows:
            line(str(row["id"]))
    else:
        table(
            ["id", "created", "policy", "harness", "serves"],
            [
                [r["id"], r["created"], r["policy"], r["harness"][:12], ", ".join(r["serves"])]
                for r in rows
            ],
        )
