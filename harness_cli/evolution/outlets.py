"""Where a failure class goes next: decided by the side at fault."""

OUTLETS = {
    "harness": "an edit (`harness edit`)",
    "policy": "a training example: the failed reply and a passing one as a pair",
    "tool": "a bug report to whoever runs the tool",
    "judge": "an edit of the judge (`harness edit --judge NAME`)",
    "evalset": "a corrected item",
    "simulator": "a bug report to whoever keeps the simulator",
}
"""Side → what helps. An edit of the harness for a fault of another side hides it."""
