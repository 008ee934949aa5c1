"""Whether the MCP servers of a harness still list what its lock says."""

from harness_cli.errors import HarnessError
from harness_cli.records.harness import HarnessState
from harness_cli.release.gates.facts import Drift
from harness_cli.store.project import Project


async def drifted_tools(project: Project, state: HarnessState | None) -> Drift:
    """Names of drifted tools; empty when nothing drifted; what went wrong, as a text, where a
    server did not answer; None where there is no harness to ask for."""
    if state is None:
        return None
    if not state.mcp:
        return ()
    from harness_cli.runtime.mcp_lock import changes, list_servers

    try:
        listed = await list_servers(
            state.mcp, catalogue=project.evalsets / "catalogue", complete=False
        )
    except HarnessError as exc:
        return str(exc)
    return tuple(f"{c.server}.{c.tool} {c.what}" for c in changes(state.lock, listed))
