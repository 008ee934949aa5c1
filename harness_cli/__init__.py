"""The harness-evolution loop: run, evaluate, diagnose, edit, gate, promote."""

__version__ = "0.1.0"
