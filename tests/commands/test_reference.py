"""docs/cli.md is the program's own help."""

from pathlib import Path

from program import TABLE, options

from harness_cli.commands.reference import COMMON, reference

DOC = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_is_current():
    """`python -m harness_cli.commands.reference docs/cli.md` makes it anew."""
    assert DOC.read_text() == reference()


def test_every_command_and_every_option_stands_in_it():
    text = DOC.read_text()
    for name, command in TABLE.items():
        assert f"    harness {name} " in text, name
        for option, param in options(command).items():
            if param.name not in COMMON and not param.hidden:
                assert option in text, (name, option)


def test_no_row_is_broken_by_a_bar():
    for row in DOC.read_text().splitlines():
        if row.startswith("|"):
            assert row.replace("\\|", "").count("|") == 3, row
