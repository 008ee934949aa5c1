"""Moved to `models/chat_template.py`: a checkpoint policy renders with it as well."""

from harness_cli.models.chat_template import *  # noqa: F403
