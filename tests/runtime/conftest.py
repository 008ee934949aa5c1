"""A stage for every rollout test."""

import pytest
from live_stage import Stage


@pytest.fixture
def stage():
    return Stage()
