"""Chat templates by name: a Jinja file, a model's folder, one of trl's (`trl:qwen3_training`), or
our own for small models (`harness:compact`), in which a tool is one line and not a JSON schema.

trl ships a training template for many families; it is found as a file of the installed package,
which is not imported.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from harness_cli.errors import BadFile, MissingExtra, UnknownName
from harness_cli.models.chat_template import ChatTemplate

TRL: Final = "trl:"
OWN: Final = "harness:"
COMPACT: Final = Path(__file__).with_name("compact.j2")


def template_for(root: Path, folder: Path, name: str | None) -> ChatTemplate:
    """The template of a model's folder, or the one `name` puts in its place, with its tokens.

    A path is relative to `root`. Raises `BadFile` where there is none.
    """
    if name is None:
        return ChatTemplate.read(folder)
    where = template_place(root, name)
    template = ChatTemplate.read(where)
    return template.with_tokens_of(folder) if where.is_file() else template


def template_place(root: Path, name: str) -> Path:
    """Where the template of that name lies. Raises `BadFile` where it lies nowhere."""
    if name.startswith(TRL):
        return trl_template(name)
    if name.startswith(OWN):
        if name.removeprefix(OWN) != COMPACT.stem:
            raise UnknownName.of("chat template of ours", name, [OWN + COMPACT.stem])
        return COMPACT
    where = root / name
    if not where.exists():
        raise BadFile(f"there is no chat template `{name}`")
    return where


def is_packaged_template(name: str) -> bool:
    """Whether a name is of a package's template and no path."""
    return name.startswith((TRL, OWN))


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
