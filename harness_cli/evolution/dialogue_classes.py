"""Failure classes of dialogues that another tool simulated (τ-bench and its like) or logged.

The classes of a project are about its own harness; these are about any agent that acts for a user.
"""

from harness_cli.records.diagnosis import FailureClass

DIALOGUE_CLASSES = (
    FailureClass(
        id="simulator-at-fault",
        name="User simulator at fault",
        definition="The simulated user left its script, or hung up before its wish could be met.",
        facts="finding:simulator_*",
        side="simulator",
    ),
    FailureClass(
        id="needless-transfer",
        name="Needless transfer",
        definition="The user was handed to a person although the task can be done.",
        facts="finding:needless_transfer",
        side="policy",
    ),
    FailureClass(
        id="over-action",
        name="Over-action",
        definition="Something was changed that the task does not ask for.",
        facts="finding:over_action",
        side="policy",
    ),
    FailureClass(
        id="skipped-action",
        name="Skipped action",
        definition="A call that the task needs was never made.",
        facts="tool_not_called:* or finding:action_missing",
        side="policy",
    ),
    FailureClass(
        id="user-not-guided",
        name="User not guided",
        definition="A step that the user had to take was not brought about.",
        facts="finding:user_action_missing",
        side="policy",
    ),
    FailureClass(
        id="wrong-arguments",
        name="Wrong arguments",
        definition="The right call was made with other arguments than the task needs.",
        facts="wrong_arguments:*",
        side="policy",
    ),
    FailureClass(
        id="not-communicated",
        name="Not communicated",
        definition="Something the user asked to know was never said.",
        facts="finding:not_communicated",
        side="policy",
    ),
    FailureClass(
        id="conduct",
        name="Conduct",
        definition="A rule on how to behave does not hold.",
        facts="finding:conduct",
        side="policy",
    ),
    FailureClass(
        id="tool-failed",
        name="Tool failed",
        definition="A tool timed out, was not there, or gave what nobody can read.",
        facts="tool_error:*:timeout or tool_error:*:unavailable or tool_error:*:malformed",
        side="tool",
    ),
    FailureClass(
        id="malformed-call",
        name="Malformed call",
        definition="A call whose arguments are no JSON object.",
        facts="malformed_call:*",
        side="policy",
    ),
    FailureClass(
        id="cut-short",
        name="Cut short",
        definition="The dialogue ran into a limit of the benchmark.",
        facts="stopped:* or loop:*",
        side="policy",
    ),
    FailureClass(
        id="wrong-end-state",
        name="Wrong end state",
        definition="All calls were made, and yet the outcome is another: order, repeats, or more.",
        facts="finding:wrong_end_state",
        side="policy",
    ),
)
