"""The role table of a report: who taught, rewarded, judged (TR App. E.1)."""

from harness_cli.records.run import Report

ROLE_COLUMNS = ("role", "name", "played by")


def role_rows(report: Report) -> list[tuple[str, ...]]:
    """One row a role that the project gives."""
    return [(r.role, r.name, "; ".join(r.plays)) for r in report.run.roles]


def role_lines(report: Report) -> list[str]:
    """The same as text."""
    return [f"{role} {name} ({played})" for role, name, played in role_rows(report)]
