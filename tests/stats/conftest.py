"""Shared machines are slow at times: examples have no deadline."""

from hypothesis import settings

settings.register_profile("patient", deadline=None, derandomize=True)
settings.load_profile("patient")
