"""What is wrong with a serving job, before anything is started."""

from collections.abc import Iterable
from typing import Literal

from harness_cli.errors import BadFile
from harness_cli.harness.findings import Finding
from harness_cli.records.counting import counted


def error(rule: str, message: str, fix: str = "") -> Finding:
    """What would not serve, or would serve something else than was meant."""
    return _made("error", rule, message, fix)


def warning(rule: str, message: str, fix: str = "") -> Finding:
    """What serves, and a person should know."""
    return _made("warning", rule, message, fix)


def _made(level: Literal["error", "warning"], rule: str, message: str, fix: str) -> Finding:
    return Finding(path="serve.yaml", level=level, rule=f"serve/{rule}", message=message, fix=fix)


def refuse(name: str, findings: Iterable[Finding]) -> None:
    """Raise `BadFile` with every error there is, each with its fix."""
    wrong = [f for f in findings if f.level == "error"]
    if not wrong:
        return
    lines = "\n".join(f"  {f.message}" + (f": {f.fix}" if f.fix else "") for f in wrong)
    raise BadFile(f"{name}: {counted(len(wrong), 'error')} before anything was started\n{lines}")
