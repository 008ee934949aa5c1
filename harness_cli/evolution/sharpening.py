"""A run's diagnosis with a model's classes, where a model is configured."""

from harness_cli.evolution.classes import load_classes
from harness_cli.evolution.diagnose import Maker
from harness_cli.evolution.model_classes import sharpen
from harness_cli.evolution.propose.make import ROLE
from harness_cli.evolution.session import FILE, Examined, module_in, previous_diagnosis
from harness_cli.models.open import open_policy
from harness_cli.records.canonical import write_json
from harness_cli.records.diagnosis import Diagnosis
from harness_cli.store.project import Project


def sorter(project: Project, policy: str | None) -> str | None:
    """The policy that sorts failures: the named one, or the role that proposes, or none."""
    return policy or project.config.roles.get(ROLE)


async def sharpened(project: Project, seen: Examined, made: Diagnosis, policy: str) -> Diagnosis:
    """The diagnosis as the model sorts it, written into the run's folder in its place."""
    model = open_policy(*project.policy(policy), root=project.root)
    try:
        done = await sharpen(
            model,
            made,
            seen.material,
            Maker(seen.material, module_in(seen)),
            classes=load_classes(project.harness),
            previous=previous_diagnosis(project, seen),
        )
    finally:
        await model.close()
    write_json(seen.run.path / FILE, done)
    return done
