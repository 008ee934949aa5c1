"""The language a viewer writes, for the few texts the runtime says itself."""

from collections.abc import Mapping

from harness_cli.records.request import Request
from harness_cli.runtime.hooks.check_text import comments_of, language


def viewer_language(request: Request) -> str:
    """`zh` or `en` by the script of the comments; `en` where they do not tell."""
    return language(comments_of(request)) or "en"


def in_language(texts: Mapping[str, str], request: Request) -> str:
    """The text for this viewer, else the first there is, else ""."""
    return texts.get(viewer_language(request)) or next(iter(texts.values()), "")
