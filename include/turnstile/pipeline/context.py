"""One release as the steps see it: programme, key, folders, ledger and clock, opened by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from turnstile.errors import InputError
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import Attempt, ReleaseKey
from turnstile.ledger.revisions import next_after
from turnstile.pipeline.draw.planned_release import PlannedRelease, Statement
from turnstile.pipeline.revision_in_force import words_that_allow
from turnstile.programme.calendar.periods import period_named
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import bound_programme, load_programme
from turnstile.programme.spec import Programme
from turnstile.release.zone_copies import Copies, zones
from turnstile.release.zones import write_atomically
from turnstile.service_calendar import parse_period
from turnstile.settings import Settings, system_clock

_ALTHOUGH = "although_nothing_changed"


@dataclass(frozen=True)  # without slots: the plan is remembered in the instance
class Release(PlannedRelease):
    """Everything that a step needs, except rows: a release with all of its ledger and its copies.

    Args:
        ledger: open ledger.
    """

    ledger: Ledger

    @property
    def copies(self) -> Copies:
        """The copies of zones that its steps work on."""
        return zones(self.settings).of_release(self.key, self.programme.source, self.week)

    @property
    def statement(self) -> Statement:
        """Reason and approver of a correction, None for a first release, and its public note.

        They stand in the ledger, where people allowed it, else where `turnstile run` put them.

        Raises:
            InputError: a correction was never explained.
        """
        if self.key.revision == 0:
            return None, None, ""
        words = words_that_allow(self.ledger, self.key, self.programme, self.settings)
        if words:
            notes = dict.fromkeys(word.public_note for word in words if word.public_note)
            return (
                "; ".join(word.reason for word in words),
                ", ".join(word.person for word in words),
                "; ".join(notes),
            )
        key, path = self.key, self.folders.private / "revision.json"
        if not path.exists():
            again = f"turnstile run {key.programme} --week {key.period} --revision {key.revision}"
            rule = f"has no stated reason; start it with {again} --reason TEXT"
            raise InputError(where=str(key), field="revision", rule=rule)
        statement = json.loads(path.read_bytes())
        return statement["reason"], statement["approver"], statement.get("public_note", "")

    @property
    def may_change_nothing(self) -> bool:
        """Whether whoever began a correction by hand said that it may be of what it corrects."""
        path = self.folders.private / "revision.json"
        return path.exists() and bool(json.loads(path.read_bytes()).get(_ALTHOUGH))


def open_release(
    programme: str,
    week: str,
    revision: int = 0,
    *,
    opened: Callable[[Settings], Ledger] = open_ledger,
) -> Release:
    """Open a release by name; a sealed one under the text of its programme that it is bound to.

    Args:
        programme: its name.
        week: or days of another period.
        revision: 0 is the first release.
        opened: how the ledger is opened; for a look, `open_ledger_to_look`, which makes none.

    Raises:
        InputError: no such programme or week, or days of another number than the programme says.
    """
    settings = Settings.from_environment()
    spec = load_programme(programme, settings.include)
    if revision < 0:
        rule = "0 is the first release of a period; a correction counts up"
        raise InputError(where="--revision", field="revision", rule=rule)
    named, ledger = parse_period(week, where="--week"), opened(settings)
    key = ReleaseKey(spec.name, str(named), revision)
    spec = as_bound(spec, ledger.revision(key).sealed, settings.include)
    period = period_named(spec, week)
    return Release(
        settings=settings,
        programme=spec,
        domain=load_domain(spec, settings.include),
        week=period,
        key=key,
        ledger=ledger,
        clock=system_clock,
    )


def correction_of(release: Release) -> Release:
    """Return the correction that may follow a release, opened as its draw opens it.

    It goes by the programme file as it is now, whatever text what it corrects is bound to.
    """
    after = next_after(release.key)
    return open_release(
        after.programme, after.period, after.revision, opened=lambda _: release.ledger
    )


def as_bound(present: Programme, sealed: Attempt | None, include: Path) -> Programme:
    """Return the text of a programme that a release goes by; what is not sealed goes by the file.

    Who approves is read from the file in any case. It binds no release, and DAG, page and the
    question to people go by the file: an earlier text that asks more people than are asked now
    would hold what was sealed under it for ever.

    Args:
        present: the file as it is.
        sealed: the attempt that has the bytes of the release, if any has.
        include: folder of programmes.
    """
    if sealed is None:
        return present
    bound = bound_programme(present.name, sealed.bindings.programme_digest, include)
    return present if bound is None else replace(bound, approval=present.approval)


def state_revision(
    release: Release, words: Mapping[str, str], *, although_nothing_changed: bool
) -> None:
    """Write down a correction that is made by hand.

    Args:
        release: the correction.
        words: `reason`, `approver`, and the `public_note` that the public is told.
        although_nothing_changed: whether it may be of what it corrects.
    """
    content = json.dumps({**words, _ALTHOUGH: although_nothing_changed}, sort_keys=True)
    write_atomically(release.folders.private / "revision.json", content.encode())
