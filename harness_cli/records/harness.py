"""The harness state h = (S, T, P, K) of TR §3.1 as one frozen value, and its parts."""

from typing import Any, Literal

import msgspec

HOOK_EVENTS = (
    "request",
    "before_model",
    "after_model",
    "before_tool",
    "after_tool",
    "before_reply",
    "after_reply",
)
HookEventName = Literal[
    "request",
    "before_model",
    "after_model",
    "before_tool",
    "after_tool",
    "before_reply",
    "after_reply",
]
HookAction = Literal["allow", "rewrite", "retry", "deny", "fallback", "suppress"]


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """One `skills/<name>/SKILL.md`, in the Agent Skills format."""

    name: str
    description: str
    body: str
    license: str | None = None
    compatibility: str | None = None
    metadata: dict[str, str] = {}
    allowed_tools: tuple[str, ...] = ()
    path: str = ""

    @property
    def kind(self) -> str:
        """`reply` or `strategy` (`metadata.harness.kind`; a foreign Skill counts as reply)."""
        return self.metadata.get("harness.kind", "reply")

    @property
    def version(self) -> str:
        """`metadata.harness.version`, `0` when a foreign Skill has none."""
        return self.metadata.get("harness.version", "0")


class Tool(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename={"input_schema": "inputSchema", "output_schema": "outputSchema", "meta": "_meta"},
):
    """One tool in MCP shape; how it runs stands under `_meta` in keys of ours."""

    name: str
    description: str = ""
    title: str | None = None
    input_schema: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] = {}
    icons: tuple[Any, ...] = ()
    meta: dict[str, Any] = {}

    @property
    def executor(self) -> str:
        """`sandbox` (default), `python`, `http`, `mcp` or `builtin`: `_meta.harness.executor`."""
        return str(self.meta.get("harness.executor", "sandbox"))

    @property
    def operation(self) -> str:
        """What the executor calls it: unchanged when the tool is renamed."""
        return str(self.meta.get("harness.operation", self.name))

    @property
    def argument_names(self) -> dict[str, str]:
        """Our argument name → the executor's, where they differ."""
        return dict(self.meta.get("harness.arguments", {}))

    @property
    def mutates(self) -> bool:
        """True unless `annotations.readOnlyHint` says otherwise (MCP's own default)."""
        return not self.annotations.get("readOnlyHint", False)


class McpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One MCP server of `tools/mcp.yaml`, named by our alias."""

    transport: Literal["stdio", "http"] = "stdio"
    command: tuple[str, ...] = ()
    """argv; `{python}` and `{catalogue}` are filled in."""
    env: dict[str, str] = {}
    url: str | None = None
    headers_env: dict[str, str] = {}
    """Header name → environment variable that holds its value."""
    start_timeout_s: float = 10.0
    call_timeout_s: float = 5.0
    tools: tuple[str, ...] = ()
    """The tools to expose; empty means all it lists."""


class McpFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`tools/mcp.yaml`."""

    schema: int = 1
    servers: dict[str, McpServer] = {}


class LockedTool(msgspec.Struct, frozen=True, kw_only=True):
    """What a server listed for one tool when it was locked, and its digest."""

    sha256: str
    tool: Tool


class McpLock(msgspec.Struct, frozen=True, kw_only=True):
    """`tools/mcp.lock.json`: alias → tool → what was listed. The policy sees the locked text."""

    schema: int = 1
    servers: dict[str, dict[str, LockedTool]] = {}


class Constraint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number the prompt states, with the range in which it may move."""

    value: int
    range: tuple[int, int]
    unit: str = ""


class Block(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of the pipeline: a template under `prompts/blocks/` and when it is shown."""

    name: str
    when: str | None = None
    """A condition on the request, see `harness.prompts.CONDITIONS`."""
    role: Literal["system", "user"] = "system"


class Pipeline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`prompts/pipeline.yaml` or a variant `prompts/pipeline.<variant>.yaml`."""

    schema: int = 1
    blocks: tuple[Block, ...]
    constraints: dict[str, Constraint] = {}


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One built-in check of a declarative hook. `with` holds its settings."""

    check: str
    with_: dict[str, Any] = msgspec.field(default={}, name="with")


class Hook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`hooks/<name>.yaml`: checks and what follows when one of them objects, or a command."""

    schema: int = 1
    name: str
    version: str = "1"
    event: HookEventName
    description: str = ""
    priority: int = 100
    """Lower runs first; ties by name."""
    tools: tuple[str, ...] = ("*",)
    """Shell patterns on the tool's name, for `before_tool` and `after_tool`."""
    when: str | None = None
    """The same conditions as a prompt block's."""
    checks: tuple[Check, ...] = ()
    action: HookAction = "deny"
    message: str = ""
    """Told to the policy on `retry`, in the observation on `deny`; `{reason}` is filled in."""
    max_retries: int = 1
    command: tuple[str, ...] = ()
    """argv of a command hook; a first word under `hooks/` is a file of the harness."""
    timeout_s: float = 2.0
    on_failure: Literal["closed", "open"] = "closed"


class Replies(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`replies.yaml`: what is said when nothing else can be, by reason, then language."""

    schema: int = 1
    conservative: dict[str, str]
    """Language code → text for a private channel; a public one stays silent."""
    refusal: dict[str, str] = {}


class HarnessState(msgspec.Struct, frozen=True, kw_only=True):
    """h = (S, T, P, K): everything of `harness_repo/` that governs the agent at inference time."""

    id: str
    """Git tree id of the content, without `judges/` and `failure_classes/`."""
    commit: str | None = None
    dirty: bool = False
    """Made from uncommitted files; such a state cannot be promoted."""
    skills: tuple[Skill, ...] = ()
    tools: tuple[Tool, ...] = ()
    """In-tree tools, by name. Those of MCP servers come from the lock."""
    mcp: dict[str, McpServer] = {}
    lock: McpLock = McpLock()
    pipelines: dict[str, Pipeline] = {}
    """`default` is `pipeline.yaml`; a variant carries its own name."""
    blocks: dict[str, str] = {}
    hooks: tuple[Hook, ...] = ()
    """In the order in which they run: priority, then name."""
    fallback: str = ""
    replies: Replies = Replies(conservative={})
    files: dict[str, bytes] = {}
    """Every file of the content by its path, for command hooks, python tools and diffs."""

    def skill(self, name: str) -> Skill | None:
        """The skill of that name, if there is one."""
        return next((s for s in self.skills if s.name == name), None)

    def all_tools(self) -> tuple[Tool, ...]:
        """In-tree tools and locked MCP tools, by name: the registry T of TR §3.1.

        An in-tree tool of the executor `mcp` stands for a server's tool, under another name or in
        other words; that one is not offered beside it.
        """
        stands = {tool.operation for tool in self.tools if tool.executor == "mcp"}
        listed = [t.tool for server in self.lock.servers.values() for t in server.values()]
        mcp = [tool for tool in listed if tool.name not in stands]
        return tuple(sorted([*self.tools, *mcp], key=lambda tool: tool.name))

    def server_of(self, tool: str) -> str | None:
        """The alias of the MCP server that serves a tool; None for an in-tree one."""
        for alias, listed in self.lock.servers.items():
            if any(t.tool.name == tool for t in listed.values()):
                return alias
        return None
