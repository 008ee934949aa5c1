"""The inventory of a harness state: every skill, tool and hook with its version and digest."""

from harness_cli.records.canonical import canonical_json, digest, sha256
from harness_cli.records.harness import HarnessState
from harness_cli.records.manifest import Module


def inventory(state: HarnessState) -> tuple[Module, ...]:
    """Skills, tools (locked MCP ones among them), hooks and prompt blocks, by kind and name."""
    modules = [
        *(module("skill", s.name, s.version, digest(s)) for s in state.skills),
        *(
            module("tool", t.name, str(t.meta.get("harness.version", "1")), digest(t))
            for t in state.all_tools()
        ),
        *(module("hook", h.name, h.version, digest(h)) for h in state.hooks),
        *(module("block", name, "1", sha256(text.encode())) for name, text in state.blocks.items()),
        *(module("pipeline", name, "1", digest(p)) for name, p in state.pipelines.items()),
    ]
    return tuple(sorted(modules, key=lambda m: (m.kind, m.name)))


def module(kind: str, name: str, version: str, sha: str) -> Module:
    """One line of the inventory."""
    return Module(kind=kind, name=name, version=version, sha256=sha)


def tools_sha256(state: HarnessState) -> str:
    """One digest over every tool schema the policy is offered."""
    return sha256(b"".join(canonical_json(tool) for tool in state.all_tools()))


def differences(claimed: tuple[Module, ...], found: tuple[Module, ...]) -> list[str]:
    """Modules that are missing, extra or changed: what a reconciliation must not find."""
    mine = {(m.kind, m.name): m for m in claimed}
    theirs = {(m.kind, m.name): m for m in found}
    said = [f"{k} `{n}` is bound but not there" for k, n in sorted(mine.keys() - theirs.keys())]
    said += [f"{k} `{n}` is there but not bound" for k, n in sorted(theirs.keys() - mine.keys())]
    said += [
        f"{k} `{n}` changed"
        for k, n in sorted(mine.keys() & theirs.keys())
        if mine[k, n].sha256 != theirs[k, n].sha256
    ]
    return said
