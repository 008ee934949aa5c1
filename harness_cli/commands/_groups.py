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

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands one may name."""
        return [name for name in super().list_commands(ctx) if name != DEFAULT]
