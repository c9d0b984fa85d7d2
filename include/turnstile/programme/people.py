"""Who holds which role: `include/people.yaml`, reviewed by people like the programmes."""

from __future__ import annotations

from pathlib import Path

from turnstile.errors import InputError
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
