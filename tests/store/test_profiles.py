"""The three profiles of time bounds that a project has before it sets its own."""

import pytest

from harness_cli.records.config import Limits
from harness_cli.runtime.clock import Meter
from harness_cli.store.project import PROFILES

TABLE = {
    "production": (4, 3.0, 2.0, 5.0, 10.0, 15.0, True),
    "replay": (4, None, None, 5.0, None, 15.0, False),
    "offline": (4, None, None, 5.0, None, None, False),
}


@pytest.mark.parametrize("name", PROFILES)
def test_the_profiles_bound_what_the_method_says(name):
    found = PROFILES[name]
    assert TABLE[name] == (
        found.rounds,
        found.first_call_s,
        found.later_call_s,
        found.tool_s,
        found.trajectory_s,
        found.end_to_end_s,
        found.enforce_end_to_end,
    )


def test_offline_a_slow_policy_is_not_cut_off_in_its_last_call_either():
    offline = Meter(PROFILES["offline"])
    assert offline.fallback_s() == offline.model_s(first=True)[0] == Limits().call_ceiling_s
    assert Meter(PROFILES["production"]).fallback_s() < 5
