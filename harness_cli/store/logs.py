"""What the program does, as JSON lines: `-v` to stderr, `HARNESS_LOG` to stderr or a file.

The only module that configures the standard `logging`. Rooms write through
`logging.getLogger("harness.<room>")`, with what belongs to the event in `extra`; without `-v` and
`HARNESS_LOG` nothing is configured and an event costs one comparison. Secrets are masked in every
line. Other libraries are heard from level `warning` on: their debug lines quote whole prompts.

    HARNESS_LOG=info              stderr, as -v          HARNESS_LOG=debug   stderr, as -vv
    HARNESS_LOG=run.jsonl         appended, level info
    HARNESS_LOG=debug:run.jsonl   appended, that level
"""

import json
import logging
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from harness_cli.errors import UsageError
from harness_cli.store.redact import Redactor

VARIABLE = "HARNESS_LOG"
NAME = "harness"
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """A log record as one line of JSON: when, level, logger, event, what belongs to it, pid."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end; every text in it redacted."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        value: dict[str, Any] = {
            "at": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **{k: _plain(v) for k, v in vars(record).items() if k not in _STANDARD},
            "pid": record.process,
        }
        if record.exc_info:
            value["trace"] = self.formatException(record.exc_info)
        return json.dumps(self._redactor.value(value), ensure_ascii=False)


def start_logs(verbosity: int = 0, environment: Mapping[str, str] | None = None) -> None:
    """Listen as `HARNESS_LOG` and `-v` (1) or `-vv` (2) say; neither: do nothing.

    May be called again when the options are known; a later call adds what is missing.
    Raises `UsageError` when `HARNESS_LOG` names no level and no file that can be written.
    """
    wanted = wanted_logs(environment, verbosity)
    logger, root = logging.getLogger(NAME), logging.getLogger()
    known = {h.get_name() for h in root.handlers}
    for target, level in wanted.items():
        if (name := f"{NAME}:{target}") not in known:
            root.addHandler(_handler(name, target, level))
    if wanted:
        least = min(wanted.values())
        logger.setLevel(min(least, logger.level or least))


def hush(*libraries: str) -> None:
    """Errors alone of these libraries: their warnings about themselves are no news to a user."""
    for name in libraries:
        logging.getLogger(name).setLevel(logging.ERROR)
        warnings.filterwarnings("ignore", module=rf"{name}(\..*)?")


def ended(argv: Sequence[str], code: object, seconds: float, error: BaseException | None) -> None:
    """The command is over; the error behind its exit code goes along, with its trace at debug."""
    logger = logging.getLogger(NAME)
    about: dict[str, Any] = {"argv": list(argv), "exit": code or 0, "seconds": round(seconds, 3)}
    if error is not None:
        about |= {"error": type(error).__name__, "reason": str(error)}
    trace = error if error is not None and logger.isEnabledFor(logging.DEBUG) else None
    logger.info("command ended", extra=about, exc_info=trace)


def wanted_logs(environment: Mapping[str, str] | None, verbosity: int) -> dict[str, int]:
    """File name, or "" for stderr → level."""
    import os

    said = (os.environ if environment is None else environment).get(VARIABLE, "").strip()
    wanted: dict[str, int] = {}
    if said:
        level, colon, target = said.partition(":")
        if level.lower() in LEVELS:
            wanted[target] = LEVELS[level.lower()]
        else:
            wanted[said] = logging.INFO
        if colon and not target:
            raise UsageError(f"{VARIABLE}: `{said}` names no file", hint=f"{VARIABLE}=debug:FILE")
    if verbosity:
        more = logging.DEBUG if verbosity > 1 else logging.INFO
        wanted[""] = min(more, wanted.get("", more))
    return wanted


def _handler(name: str, target: str, level: int) -> logging.Handler:
    try:
        handler: logging.Handler = (
            logging.FileHandler(target, encoding="utf-8")
            if target
            else logging.StreamHandler(sys.stderr)
        )
    except OSError as exc:
        raise UsageError(
            f"{VARIABLE}: `{target}` cannot be written: {exc.strerror}",
            hint=f"a level ({', '.join(LEVELS)}), a file, or LEVEL:FILE",
        ) from exc
    handler.set_name(name)
    handler.setLevel(level)
    handler.setFormatter(JsonLines(Redactor.from_environment()))
    return handler


def _plain(value: Any) -> Any:
    """What JSON knows; anything else as its text."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
