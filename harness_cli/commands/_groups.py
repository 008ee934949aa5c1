"""A verb that is a group with a default command: `harness edit` and `harness edit show FILE`."""

from typing import Any

from typer.core import TyperGroup

DEFAULT = "default"
"""Name under which a module registers the command that runs when no other is named."""


class DefaultGroup(TyperGroup):
    """Runs the command `default` unless the first word names another one.

    So the names of the other commands are reserved: no run or file can be given by one of them.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command's name first where no command is named."""
        if ctx.resilient_parsing and not args:  # a shell asks what may come next
            return list(super().parse_args(ctx, args))
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = [DEFAULT, *args]
        return list(super().parse_args(ctx, args))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The default command's options stand in the group's help, then the commands."""
        default = self.commands[DEFAULT]
        with formatter.section("Options"):
            rows = [p.get_help_record(ctx) for p in default.get_params(ctx)]
            formatter.write_dl([row for row in rows if row is not None])
        self.format_commands(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The commands, and what the default command takes in their place."""
        default = self.commands[DEFAULT]
        inner = default.make_context(DEFAULT, [], parent=ctx, resilient_parsing=True)
        found = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("-"):
            found += default.shell_complete(inner, incomplete)
        else:
            arguments = [p for p in default.params if p.param_type_name == "argument"]
            found += [c for a in arguments[:1] for c in a.shell_complete(inner, incomplete)]
        return list({item.value: item for item in found}.values())

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands one may name."""
        return [name for name in super().list_commands(ctx) if name != DEFAULT]
