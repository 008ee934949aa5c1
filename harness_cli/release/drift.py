"""Whether the MCP servers of a harness still list what its lock says."""

from harness_cli.records.harness import HarnessState
from harness_cli.store.project import Project


async def drifted_tools(project: Project, state: HarnessState | None) -> tuple[str, ...] | None:
    """Names of drifted tools; empty when nothing drifted; None when a server did not answer."""
    if state is None:
        return None
    if not state.mcp:
        return ()
    from harness_cli.errors import RolloutError
    from harness_cli.runtime.lock import drift

    try:
        return tuple(await drift(state, catalogue=project.evalsets / "catalogue"))
    except RolloutError:
        return None
