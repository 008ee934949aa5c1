"""`harness ab assign|report`: online A/B tests on users."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from harness_cli.commands._options import HERE, Folder, Json, Quiet, within

if TYPE_CHECKING:
    from harness_cli.evaluation.ab.report import AbReport

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
User = Annotated[str, typer.Option("--user", metavar="COLUMN", help="Column of user ids.")]
Arms = Annotated[
    list[str] | None,
    typer.Option("--arm", metavar="NAME=SHARE", help="An arm and its share, e.g. control=0.9."),
]


@app.callback()
def group() -> None:
    """Online A/B tests: stable buckets, uplift with intervals."""


@app.command()
def assign(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV of users, - for standard input.")
    ],
    salt: Annotated[str, typer.Option(help="Name of the experiment: another salt, other arms.")],
    arm: Arms = None,
    user: User = "user_id",
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Default: stdout.")] = None,
    as_json: Json = False,
    directory: Folder = HERE,
    quiet: Quiet = False,
) -> None:
    """Give every user an arm: sha256(salt ‖ user id) as a number in [0, 1).

    Rows go through as they are, with the columns `arm` and `bucket` added. Users beyond all shares
    have no arm.
    """
    from harness_cli.commands._show import emit_json, note
    from harness_cli.errors import UsageError
    from harness_cli.evaluation.ab.assigning import write_assigned
    from harness_cli.evaluation.shares import parse_arms

    shares = parse_arms(arm or ())
    if not shares:
        raise UsageError("no arm is named", hint="--arm control=0.9 --arm treatment=0.1")
    if as_json and out is None:
        raise UsageError("with --json the rows need a file", hint="-o FILE")
    with _source(directory, file) as source, _target(within(directory, out)) as target:
        counts = write_assigned(source, target, name=file.name, user=user, salt=salt, shares=shares)
    users = counts.total()
    named = {**{name: counts[name] for name in shares}, **({"": counts[""]} if counts[""] else {})}
    if as_json:
        emit_json({"users": users, "arms": named, "shares": shares, "file": str(out)})
    elif not quiet:
        note(f"{users:,} users: {_sizes(named, users)}")


@app.command()
def report(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Users, CSV or Parquet.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(help="gmv, orders/visits, turns>1 …; default: every column of numbers."),
    ] = None,
    control: Annotated[
        str | None, typer.Option(help="Arm to hold others against; default: the first --arm.")
    ] = None,
    arm: Arms = None,
    user: User = "user_id",
    arm_column: Annotated[str, typer.Option(metavar="COLUMN", help="Column of arms.")] = "arm",
    salt: Annotated[
        str | None, typer.Option(help="Checks every user's arm against its bucket.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap samples.")] = 10_000,
    as_json: Json = False,
    directory: Folder = HERE,
    quiet: Quiet = False,
) -> None:
    """Arm sizes, sample-ratio check, relative uplift of per-user metrics with intervals.

    One row a user. Exit 0 whatever the outcome.
    """
    from harness_cli.commands._show import emit_json
    from harness_cli.evaluation.ab.report import ab_report
    from harness_cli.evaluation.ab.users import read_users
    from harness_cli.evaluation.shares import parse_arms

    shares = parse_arms(arm or ())
    users = read_users(
        directory / file,
        user=user,
        arm=arm_column,
        control=control or next(iter(shares), None),
        metrics=metric or (),
    )
    found = ab_report(users, shares=shares, salt=salt, seed=seed, resamples=resamples)
    if as_json:
        emit_json(found)
    else:
        _show(found, quiet=quiet)


def _show(found: "AbReport", *, quiet: bool) -> None:
    from harness_cli.commands._show import line, note, table
    from harness_cli.evaluation.ab.report import COLUMNS, remarks, rows

    table(COLUMNS, rows(found))
    if found.sample_ratio is not None and found.sample_ratio.mismatch:
        note("warning: sample ratio mismatch, p < 0.001")
    if not quiet:
        for remark in remarks(found):
            line(remark)


def _sizes(named: Mapping[str, int], users: int) -> str:
    return ", ".join(
        f"{name or 'no arm'} {n:,} ({100 * n / users:.2f} %)" if users else name
        for name, n in named.items()
    )


@contextmanager
def _source(directory: Path, file: Path) -> Iterator[IO[str]]:
    """Lines of the file, or of standard input."""
    from harness_cli.errors import BadFile

    if str(file) == "-":
        yield sys.stdin
        return
    path = directory / file
    if not path.is_file():
        raise BadFile(f"no file `{file}`", hint="a CSV with a header, or - for standard input")
    with path.open(encoding="utf-8", newline="") as opened:
        yield opened


@contextmanager
def _target(out: Path | None) -> Iterator[IO[str]]:
    """Standard output, or a file that appears whole or not at all."""
    import io

    from harness_cli.records.canonical import atomic_file

    if out is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(out) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        yield text
        text.flush()
        text.detach()
