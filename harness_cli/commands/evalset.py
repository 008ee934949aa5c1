"""`harness evalset list|new|split|check|digest|seal|export|import|synth`."""

from pathlib import Path
from typing import Annotated

import typer

from harness_cli.commands._completing import (
    evalset_names,
    import_kinds,
    judges_or_none,
    policy_names,
    split_names,
    words,
)
from harness_cli.commands._options import HERE, Folder, Json, Quiet, within
from harness_cli.commands._own_sets import new
from harness_cli.commands._own_sets import split as split_items
from harness_cli.records.counting import counted

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Make, split, check, seal and export evalsets.",
)
Name = Annotated[
    str, typer.Argument(help="A folder under evalsets/.", autocompletion=evalset_names)
]
Reason = Annotated[str | None, typer.Option(help="Why a sealed split is opened.")]
app.command()(new)
app.command(name="split")(split_items)


@app.command(name="list")
def list_evalsets(directory: Folder = HERE, as_json: Json = False, quiet: Quiet = False) -> None:
    """The evalsets of this project, their splits and what is sealed."""
    from harness_cli.commands._show import emit_json, line, table
    from harness_cli.evaluation.evalsets import load_header, names
    from harness_cli.store.project import Project

    project = Project.find(directory)
    headers = [load_header(project, name) for name in names(project)]
    if as_json:
        emit_json({"evalsets": headers})
    elif quiet:
        for header in headers:
            line(header.name)
    else:
        rows = [
            (h.name, split, n, h.agent, "sealed" if split in h.seal.splits else "", h.provenance)
            for h in headers
            for split, n in (h.splits or {"": 0}).items()
        ]
        table(("evalset", "split", "items", "agent", "seal", "provenance"), rows)


@app.command()
def check(
    evalsets: Annotated[
        list[str] | None, typer.Argument(help="Default: all.", autocompletion=evalset_names)
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read every line: schema, ids, counts, digests. Exit 2 when something is wrong."""
    from harness_cli.commands._show import emit_json, line
    from harness_cli.errors import BadFile
    from harness_cli.evaluation.evalsets import findings, names
    from harness_cli.store.project import Project

    project = Project.find(directory)
    found = {name: findings(project, name) for name in evalsets or names(project)}
    wrong = sum(len(lines) for lines in found.values())
    if as_json:
        emit_json({"evalsets": found})
    else:
        for name, lines in found.items():
            for text in lines:
                line(text)
            if not quiet:
                line(
                    f"{name}: {counted(len(lines), 'finding')}"
                    if lines
                    else f"{name}: nothing wrong"
                )
    if wrong:
        spoiled = sum(bool(v) for v in found.values())
        raise BadFile(f"{counted(wrong, 'finding')} in {counted(spoiled, 'evalset')}")


@app.command()
def digest(
    name: Name,
    split: Annotated[
        str | None, typer.Option(help="Default: every split.", autocompletion=split_names)
    ] = None,
    freeze: Annotated[
        bool, typer.Option("--freeze", help="Write the digests into evalset.yaml.")
    ] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """SHA-256 of the canonical JSON of each split's items; opens nothing."""
    from harness_cli.commands._show import emit_json, line
    from harness_cli.errors import UnknownName
    from harness_cli.evaluation import sealing
    from harness_cli.evaluation.evalsets import split_digests
    from harness_cli.store.project import Project

    project = Project.find(directory)
    if freeze:
        sealing.freeze(project, name)
    digests = split_digests(project, name)
    if split is not None and split not in digests:
        raise UnknownName.of("split", split, digests)
    shown = digests if split is None else {split: digests[split]}
    if as_json:
        emit_json({"evalset": name, "digests": shown})
        return
    for key, value in shown.items():
        line(value if quiet else f"{key}  {value}")


@app.command()
def seal(
    name: Name,
    splits: Annotated[
        list[str], typer.Argument(help="Splits to seal.", autocompletion=split_names)
    ],
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Freeze the digests and let splits be opened only with a reason, which is logged."""
    from harness_cli.commands._show import emit_json, line
    from harness_cli.errors import UnknownName
    from harness_cli.evaluation import sealing
    from harness_cli.evaluation.evalsets import load_header
    from harness_cli.store.project import Project

    project = Project.find(directory)
    known = load_header(project, name).splits
    for split in splits:
        if split not in known:
            raise UnknownName.of("split", split, known)
    header = sealing.freeze(project, name, seal=tuple(splits))
    if as_json:
        emit_json({"evalset": name, "sealed": header.seal.splits, "digests": header.digests})
    elif not quiet:
        line(f"sealed {', '.join(header.seal.splits)} of {name}; commit evalset.yaml")


@app.command()
def export(
    name: Name,
    split: Annotated[
        str | None, typer.Option(help="Default: dev.", autocompletion=split_names)
    ] = None,
    reason: Reason = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,  # noqa: ARG001  every verb has it
) -> None:
    """The items of one split as JSONL on stdout (a JSON list with --json)."""
    import msgspec

    from harness_cli.commands._show import emit_json, line
    from harness_cli.evaluation.evalsets import load_evalset
    from harness_cli.store.project import Project

    evalset = load_evalset(Project.find(directory), name, split=split, reason=reason)
    if as_json:
        emit_json({"evalset": evalset.ref, "items": list(evalset.items)})
        return
    for item in evalset.items:
        line(msgspec.json.encode(item).decode())


@app.command(name="import")
def import_file(
    kind: Annotated[
        str,
        typer.Argument(
            help="csv, evals-json, ifeval, inspect, jsonl, openai-chat, otel, promptfoo, tau-bench "
            "or tau2 (docs/imports.md).",
            autocompletion=import_kinds,
        ),
    ],
    file: Annotated[Path, typer.Argument(help="The file.")],
    name: Annotated[
        str | None, typer.Option(help="Of the evalset; default: from the file.")
    ] = None,
    tasks: Annotated[
        Path | None, typer.Option(help="Task list: other task ids in FILE are refused.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="What answered, where FILE is silent.")] = None,
    simulator: Annotated[
        str | None, typer.Option(help="What played the user, where FILE is silent.")
    ] = None,
    rescore: Annotated[
        bool, typer.Option("--rescore", help="Score the answers here: assertions and a judge.")
    ] = False,
    judge: Annotated[
        str | None,
        typer.Option(help="Of --rescore; default: grounded.", autocompletion=judges_or_none),
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A file of another tool as an evalset, and as a run where it holds answers.

    Nothing is written when anything is wrong with the file. An imported run is never promoted.
    """
    from harness_cli.commands._importing import bring, show_brought_in

    made = bring(
        kind,
        within(directory, file),
        directory,
        name=name,
        tasks=within(directory, tasks),
        policy=policy,
        simulator=simulator,
        rescore=rescore,
        judge=judge,
    )
    show_brought_in(made, as_json=as_json, quiet=quiet)


@app.command()
def synth(
    name: Annotated[
        str,
        typer.Argument(
            help="tool_robustness or prompt_robustness.",
            autocompletion=words("tool_robustness", "prompt_robustness"),
        ),
    ],
    seed: Annotated[int, typer.Option(help="The same seed makes the same items.")] = 20261129,
    count: Annotated[
        int | None, typer.Option(min=1, help="Items; default: as many as TR has.")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Words the comments and checks them; default: the role task_generator, "
            "without one (or with `none`) the committed templates.",
            autocompletion=policy_names,
        ),
    ] = None,
    save_as: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Folder; default: NAME.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Write over a set that holds other items.")
    ] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Build a robustness set from the scenario seeds; every item is solved before it is kept.

    A policy that writes or filters items is recorded and kept out of headlines on the set.
    """
    from harness_cli.commands._synthesis import build, show_built
    from harness_cli.store.project import Project

    made = build(
        Project.find(directory),
        name,
        seed=seed,
        count=count,
        policy=policy,
        save_as=save_as or name,
        replace=replace,
    )
    show_built(made, as_json=as_json, quiet=quiet)
