"""What counts as somebody else's answer."""

import pytest

from harness_cli.records.chat import ChatReply
from harness_cli.records.trajectory import Route, Step, StopReason, Trajectory

FALLBACK = (Step(index=0, messages=(), reply=ChatReply(content="x"), fallback=True),)


@pytest.mark.parametrize(
    ("made", "fell_back"),
    [
        ({}, False),
        ({"route": Route.COMPACT, "stop": StopReason.TIMEOUT}, True),
        ({"route": Route.SUPPRESSED, "stop": StopReason.GATE_FAILED}, True),
        ({"route": Route.CONSERVATIVE, "stop": StopReason.MAX_ROUNDS}, True),
        ({"route": Route.SUPPRESSED, "stop": StopReason.REFUSED}, False),
        ({"steps": FALLBACK}, True),
    ],
)
def test_a_refusal_is_the_policys_own_answer_and_a_fallback_is_not(made, fell_back):
    assert Trajectory(request_id="r", **made).fell_back is fell_back
