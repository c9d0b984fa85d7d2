"""The look that the first week of a programme has before anything is charged.

What only files show and nobody has decided stops it: ids that may be one in several spellings, a
column that may say enter or leave and is not read. A programme of which a week is sealed is
promised already, and is not stopped.
"""

from __future__ import annotations

from turnstile.errors import InputError, ProgrammeError
from turnstile.look.asked import Asked
from turnstile.look.fields_found import asks_for_action
from turnstile.look.looking import look_at
from turnstile.look.page import write_page
from turnstile.pipeline.context import Release
from turnstile.programme.spec import Programme
from turnstile.sources.ingest.snapshot import Snapshot, folder_of


def action_unsaid(programme: Programme) -> ProgrammeError | None:
    """Return that nobody has decided what a tap does; None where somebody has, or a standard."""
    source = programme.source
    is_said = source.without_action is not None or "action" in dict(source.columns)
    if is_said or not asks_for_action(source.feed):
        return None
    rule = (
        "nobody has decided it: name the column that says whether a tap enters or leaves "
        "(columns: {action: action}, whatever it is called), or, if every record is a tap-on, "
        "state source.without_action: enter"
    )
    return ProgrammeError(where=f"{programme.name}.yaml", field="source.columns.action", rule=rule)


def require_decided(release: Release, snapshot: Snapshot) -> None:
    """Look at the files of a programme's first week, and write the private page.

    Args:
        release: whose files are in the landing zone.
        snapshot: what was read of them.

    Raises:
        InputError: something has to be decided first; the page says what would do.
        ProgrammeError: nobody has decided what a tap does.
    """
    name, settings = release.programme.name, release.settings
    weeks = release.ledger.weeks(name).values()
    if any(week.last_sealed is not None for week in weeks):
        return
    if (unsaid := action_unsaid(release.programme)) is not None:
        raise unsaid
    look = look_at(
        Asked(
            programme=release.programme,
            undecided=frozenset(),
            week=release.week,
            landing=settings.landing,
            private=settings.private,
            memory=settings.memory_limit,
            snapshot=snapshot,
        )
    )
    if not look.is_ready:  # else the page that `turnstile look` wrote stays, with what stops a week
        folder = folder_of(settings.private, name, str(release.week), "look")
        page = write_page(look, f"{name} {release.week}", folder)
        open_keys = "; ".join(
            f"{decision.key}: {decision.why}" for decision in look.decisions if decision.must
        )
        rule = f"nobody has decided, and nothing is charged: {open_keys}; {look.offers} "
        rule += f"stand in {page} (turnstile look {name} --week {release.week})"
        raise InputError(where=str(release.key), field="first week", rule=rule)
