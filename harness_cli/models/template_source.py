"""Chat templates by name: a Jinja file, a model's folder, or one of trl's (`trl:qwen3_training`).

trl ships a training template for many families; it is found as a file of the installed package,
which is not imported.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from harness_cli.errors import BadFile, MissingExtra, UnknownName
from harness_cli.models.chat_template import ChatTemplate

TRL: Final = "trl:"


def template_for(root: Path, folder: Path, name: str | None) -> ChatTemplate:
    """The template of a model's folder, or the one `name` puts in its place, with its tokens.

    A path is relative to `root`. Raises `BadFile` where there is none.
    """
    if name is None:
        return ChatTemplate.read(folder)
    where = trl_template(name) if name.startswith(TRL) else root / name
    if not where.exists():
        raise BadFile(f"there is no chat template `{name}`")
    template = ChatTemplate.read(where)
    return template.with_tokens_of(folder) if where.is_file() else template


def trl_template(name: str) -> Path:
    """The file of `trl:NAME`. Raises `MissingExtra` without trl, `UnknownName`."""
    package = find_spec("trl")
    if package is None or not package.submodule_search_locations:
        raise MissingExtra.of(f"the template `{name}`", "train")
    folder = Path(package.submodule_search_locations[0], "chat_templates")
    known = {path.stem: path for path in folder.glob("*.jinja")}
    wanted = name.removeprefix(TRL)
    if wanted not in known:
        raise UnknownName.of("chat template of trl", wanted, known)
    return known[wanted]
