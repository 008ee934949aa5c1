"""PyYAML's safe loader and dumper in the forms that this program reads and writes.

Reading: duplicate keys are errors, dates stay text, truth values and whole numbers are those of
YAML 1.2, no NUL in a text, no infinite number. What an untouched `CSafeLoader` does for any
document in Python (a search for the tag of every scalar, tables of what is being constructed) is
done here for plain data alone; whatever is not plain goes its way, errors included. Same for
writing.
"""

import math
import operator
import re
from functools import lru_cache
from typing import Any, Final

import yaml

_CORE: Final = "tag:yaml.org,2002:"
_STR, _MAP, _SEQ = f"{_CORE}str", f"{_CORE}map", f"{_CORE}seq"
_BOOL, _INT = f"{_CORE}bool", f"{_CORE}int"
_SHORT: Final = 64
"""Characters of the longest scalar whose tag is remembered."""


class _Remembering:
    """Finds the tag of a plain scalar once; a base of loaders and dumpers."""

    yaml_implicit_resolvers: dict[Any, list[tuple[str, re.Pattern[str]]]]
    yaml_path_resolvers: dict[Any, Any]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()

        def found(value: str) -> str:
            rules = cls.yaml_implicit_resolvers
            for tag, pattern in [*rules.get(value[:1], ()), *rules.get(None, ())]:
                if pattern.match(value):
                    return str(tag)
            return _STR

        cls._tag = staticmethod(lru_cache(maxsize=8192)(found))  # type: ignore[attr-defined]
        cls._long_tag = staticmethod(found)  # type: ignore[attr-defined]

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """The tag of a node that has none written."""
        if kind is yaml.ScalarNode:
            if not implicit[0]:
                return _STR
            tag = self._tag if len(value) <= _SHORT else self._long_tag  # type: ignore[attr-defined]
            return tag(value)
        return _SEQ if kind is yaml.SequenceNode else _MAP

    # No rule here depends on the path of a node. They are called around every node, so they are
    # functions of C that take the same arguments and do nothing.
    descend_resolver: Any = staticmethod(operator.is_)
    ascend_resolver: Any = staticmethod(tuple)


class Loader(_Remembering, yaml.CSafeLoader):
    """The safe loader, with duplicate keys as errors and dates left as text.

    Truth values and whole numbers are those of YAML 1.2: `on`, `off`, `yes`, `no` are words (a
    hook's setting is called `on`, Norwegian is `no`), `12:30` is no number in base 60.
    """

    yaml_implicit_resolvers = {
        first: [rule for rule in rules if rule[0] not in (_BOOL, _INT)]
        for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._aliases = "*" in stream

    def construct_document(self, node: Any) -> Any:
        """The document as plain data. With aliases in it PyYAML sees to one object for each."""
        return super().construct_document(node) if self._aliases else self._plain(node)

    def _plain(self, node: Any) -> Any:
        kind, tag = type(node), node.tag
        if kind is yaml.ScalarNode:
            return _no_nul(self, node) if tag == _STR else self.construct_object(node, deep=True)
        if kind is yaml.MappingNode and tag == _MAP:
            return _mapping(self, node, self._plain)
        if kind is yaml.SequenceNode and tag == _SEQ:
            return [self._plain(child) for child in node.value]
        return self.construct_object(node, deep=True)


class Strings(yaml.CBaseLoader):
    """Every scalar as the text that stands in the file: `1.0` stays `1.0`, `yes` stays `yes`."""


def _mapping(loader: Any, node: yaml.MappingNode, of: Any = None) -> dict[Any, Any]:
    if not isinstance(node, yaml.MappingNode):
        raise yaml.constructor.ConstructorError(
            None, None, f"expected a mapping, but found a {node.id}", node.start_mark
        )
    made = of or (lambda inner: loader.construct_object(inner, deep=True))
    keys: dict[Any, None] = {}
    for key_node, _ in node.value:
        key = made(key_node)
        if not isinstance(key, str | int | float | bool | type(None)):
            raise yaml.constructor.ConstructorError(
                None, None, "a key must be plain text", key_node.start_mark
            )
        if key in keys:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key `{key}` stands twice", key_node.start_mark
            )
        keys[key] = None
    return {key: made(value) for key, (_, value) in zip(keys, node.value, strict=True)}


def _finite(loader: Any, node: yaml.ScalarNode) -> float:
    """Infinity and NaN bound nothing, and JSON has no way to write them down."""
    number = float(loader.construct_yaml_float(node))
    if not math.isfinite(number):
        raise yaml.constructor.ConstructorError(
            None, None, "a number must be finite", node.start_mark
        )
    return number


def _no_nul(loader: Any, node: yaml.ScalarNode) -> str:
    """Text; `"\\0"` in it names no file and no variable, and no person means it."""
    text = str(node.value if type(node) is yaml.ScalarNode else loader.construct_scalar(node))
    if "\0" in text:
        raise yaml.constructor.ConstructorError(
            None, None, "a text must not hold NUL", node.start_mark
        )
    return text


Loader.add_implicit_resolver(
    _BOOL, re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
Loader.add_implicit_resolver(
    _INT, re.compile(r"^(?:[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+)$"), list("-+0123456789")
)
Loader.add_constructor(_MAP, _mapping)
Loader.add_constructor(f"{_CORE}float", _finite)
Loader.add_constructor(_STR, _no_nul)
Loader.add_constructor(
    f"{_CORE}timestamp",
    lambda loader, node: loader.construct_scalar(node),  # type: ignore[arg-type]
)
Strings.add_constructor(_MAP, _mapping)


class Plain(yaml.SafeDumper):
    """For people: key order kept, no aliases, text of several lines as a block."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  the signature is PyYAML's
        """Everything is written out."""
        return True


class FastPlain(_Remembering, yaml.CSafeDumper):
    """The same by libyaml's emitter."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  the signature is PyYAML's
        """Everything is written out."""
        return True

    def represent_data(self, data: Any) -> Any:
        """The node of a value: plain data here, anything else as PyYAML has it."""
        kind = type(data)
        if kind is str:
            return yaml.ScalarNode(_STR, data, style="|" if "\n" in data else None)
        node = self.represent_data
        if kind is dict:
            pairs = [(node(key), node(value)) for key, value in data.items()]
            return yaml.MappingNode(_MAP, pairs, flow_style=False)
        if kind is list:
            return yaml.SequenceNode(_SEQ, [node(value) for value in data], flow_style=False)
        return super().represent_data(data)


def _text_block(dumper: Any, data: str) -> yaml.ScalarNode:
    """Text of several lines as a block, which a person can read and edit."""
    style = "|" if "\n" in data else None
    node: yaml.ScalarNode = dumper.represent_scalar(_STR, data, style=style)
    return node


Plain.add_representer(str, _text_block)
FastPlain.add_representer(str, _text_block)
