"""Where a job's chat template and tokenizer lie: a file, a model's folder, or one of trl's.

trl ships a training template for many families (`trl:qwen3_training`); it is found as a file of the
installed package, which is not imported.
"""

from pathlib import Path

from harness_cli.errors import BadFile, UsageError
from harness_cli.models.template_source import template_place
from harness_cli.training.masking import Tools
from harness_cli.training.tokens import FILE


def tools_for(root: Path, template: str, tokenizer: str | None) -> Tools:
    """Both, by the names of a job; paths are relative to `root`.

    Raises `BadFile` where one is missing, `UsageError` where a template that is no model's folder
    comes without a tokenizer.
    """
    where = template_place(root, template)
    if tokenizer is None:
        if not (where / FILE).is_file():
            raise UsageError(
                f"the template `{template}` comes without a tokenizer",
                hint=f"--tokenizer PATH: `{FILE}`, or a model's folder that holds it",
            )
        return Tools(where, where)
    if not (root / tokenizer).exists():
        raise BadFile(f"there is no tokenizer `{tokenizer}`")
    return Tools(where, root / tokenizer)
