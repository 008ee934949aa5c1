"""`harness status`: what serves, what waits for whom, the proven pairs."""

import typer

from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(rich_markup_mode=None)


@app.command()
def status(directory: Folder = HERE, as_json: Json = False, quiet: Quiet = False) -> None:
    """What serves, what waits for whom, the grid of proven (policy, harness) pairs."""
    from harness_cli.commands._show import emit_json, line, table
    from harness_cli.loop.status import status_of
    from harness_cli.store.project import Project

    found = status_of(Project.find(directory))
    if as_json:
        emit_json(found)
        return
    if found.channels:
        table(
            ["channel", "policy", "harness", "since", "by", "proven"],
            [
                [
                    c.channel,
                    c.policy,
                    (c.harness or "")[:12],
                    c.since,
                    c.by,
                    _yes(c.proven),
                ]
                for c in found.channels
            ],
        )
    else:
        line("no channel serves anything yet")
    for c in () if quiet else found.channels:
        line(f"{c.channel}: policy of {c.policy_manifest}, harness of {c.harness_manifest}")
    if found.channels and not found.live and not quiet:
        line("live: no process on this machine reports what it serves")
    if found.live:
        table(
            ["served", "policy", "desired", "harness", "desired", "agrees", "at"],
            [
                [
                    s.name,
                    s.policy or "does not answer",
                    s.desired,
                    (s.harness or "–")[:12],
                    (s.desired_harness or "–")[:12],
                    _yes(s.agrees),
                    s.url,
                ]
                for s in found.live
            ],
        )
    if found.waiting:
        table(["waits", "for", "command"], [[w.what, w.who, w.command] for w in found.waiting])
    if found.grid and not quiet:
        table(
            ["policy", "harness", "verdict", "by", "runs", "newest run"],
            [
                [p.policy, p.harness[:12], p.verdict, p.manifest, p.runs, p.newest]
                for p in found.grid
            ],
            title="pairs",
        )


def _yes(holds: bool) -> str:
    return "yes" if holds else "NO"
