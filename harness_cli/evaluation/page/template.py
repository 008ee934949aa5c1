"""Jinja2 templates and static files of the pages; the policy that lets nothing else run.

The content security policy names the digests of our one script and one style sheet, so markup that
came in with data could neither run, load, submit nor be styled; `require-trusted-types-for` makes
the browser refuse any text that a script would turn into markup.
"""

import base64
import hashlib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

PACKAGE = "harness_cli.evaluation.page"
STYLES = ("page.css", "charts.css")
SCRIPTS = ("elements.js", "pieces.js", "detail.js", "items.js", "page.js")


def environment(clean: Callable[[str], str] = str) -> Environment:
    """Templates with autoescaping; an unknown name is an error; every value passes `clean`."""
    made = Environment(
        loader=PackageLoader(PACKAGE, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    made.globals["t"] = words
    return made


def words(en: str, zh: str) -> Markup:
    """A text of the page in both languages; the script shows the chosen one."""
    return Markup('<span data-en="{0}" data-zh="{1}">{0}</span>').format(en, zh)


@cache
def static(names: tuple[str, ...]) -> str:
    """Static files as one text."""
    folder = files(PACKAGE) / "static"
    return "\n".join((folder / name).read_text("utf-8") for name in names)


def policy(*, style: str, script: str) -> str:
    """The content security policy of a page with this one style sheet and script."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(script)}'" if script else "script-src 'none'",
            f"style-src '{_digest(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def shell(*, scripts: tuple[str, ...] = SCRIPTS) -> dict[str, Any]:
    """What every page's frame needs: style, script and their policy."""
    style, script = static(STYLES), static(scripts)
    return {
        "style": Markup(style),
        "script": Markup(script),
        "policy": policy(style=style, script=script),
    }


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
