"""Who holds which role: `include/people.yaml`, reviewed by people like the programmes."""

from __future__ import annotations

from pathlib import Path

from turnstile.errors import InputError, ProgrammeError
from turnstile.programme.spec import Programme
from turnstile.programme.yaml_text import plain_yaml

PEOPLE_FILE = "people.yaml"


def holders(role: str, include: Path) -> frozenset[str]:
    """Return the people who hold a role; nobody where the file or the role is missing.

    Args:
        role: as a programme's `approval.role` names it.
        include: folder of the reviewed files.

    Raises:
        InputError: the file is not a list of names for each role.
    """
    path = include / PEOPLE_FILE
    if not path.exists():
        return frozenset()
    roles = plain_yaml(path) or {}
    is_right = isinstance(roles, dict) and all(
        isinstance(names, list) and all(isinstance(name, str) for name in names)
        for names in roles.values()
    )
    if not is_right:
        rule = "write a list of user names for each role: release_officer: [ada, grace]"
        raise InputError(where=PEOPLE_FILE, field="role", rule=rule)
    return frozenset(roles.get(role, ()))


def require_people(programme: Programme, include: Path) -> None:
    """Refuse a programme that asks for more people than hold the role: it could never be approved.

    Raises:
        ProgrammeError: too few hold it today.
        InputError: the file is not a list of names for each role.
    """
    asked = programme.approval
    named = len(holders(asked.role, include))
    if asked.required and named < asked.persons:
        rule = (
            f"asks for {asked.persons} of the role {asked.role}, and include/{PEOPLE_FILE} names "
            f"{named}, so that no release could be approved after its charge; name who may approve "
            "there, or ask for fewer people or another role"
        )
        where = f"{programme.name}.yaml"
        raise ProgrammeError(where=where, field="approval.persons", rule=rule)
