"""Whether a programme's releases tell anything that naive tables do not, at its typical volume.

The planner says it, on a made city: nothing is read from rows.
"""

from __future__ import annotations

from pathlib import Path

from turnstile.errors import ProgrammeError
from turnstile.extensions import PLANNING, brought, installed
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import Programme


def no_gain(programme: Programme, domain: PublicDomain, include: Path) -> ProgrammeError | None:
    """Return that nothing is learned, unless something is, or the programme accepts it.

    None too where no volume is stated, where the extension design is not installed, and of tables
    that the planner does not know.

    Args:
        programme: any.
        domain: its public cells.
        include: folder of `domains/`.
    """
    is_known = programme.typical_volume and "estimate_tables" in installed(PLANNING)
    if programme.accept_no_gain or not is_known:
        return None
    planner = brought(PLANNING, "estimate_tables", asked_by="typical_volume")
    sentences = planner.nothing_learned(programme, domain, include, programme.typical_volume)
    if not sentences:
        return None
    rule = (
        f"{' '.join(sentences)} Choose a coarser grain (turnstile plan {programme.name} --grains), "
        "or say in accept_no_gain why it is released all the same"
    )
    where = f"{programme.name}.yaml"
    return ProgrammeError(where=where, field="typical_volume", rule=rule)
