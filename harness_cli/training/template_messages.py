"""Moved to `models/template_messages.py`: a checkpoint policy renders with it as well."""

from harness_cli.models.template_messages import *  # noqa: F403
