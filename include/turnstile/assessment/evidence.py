"""What a release is judged by beside its sealed bytes: all of it public, declared or synthetic."""

from __future__ import annotations

from dataclasses import dataclass, field

from turnstile.assessment.attacks.timetable_view import TimetableView
from turnstile.assessment.audits.pipeline_copy import PipelineCopy
from turnstile.ledger.balances.charged_releases import ChargedRelease
from turnstile.ledger.records import AccountBalance
from turnstile.release.numbers import Vector


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a release is judged by beside its sealed bytes.

    Args:
        balances: of the family's accounts, for the loss so far.
        charged: what the family was charged for, this release included; nothing but it if empty.
        copy: of the pipeline, for the audit on synthetic units.
        sealed_digests: SHA-256 of every sealed file that lies under embargo for the key; None
            where no folder is looked at.
        earlier: numbers of other releases of the group, newest first; noise that served them must
            not serve again.
        timetable: what the programme's public timetable shows; None where it names none.
    """

    balances: tuple[AccountBalance, ...] = ()
    charged: tuple[ChargedRelease, ...] = ()
    copy: PipelineCopy = field(default_factory=PipelineCopy)
    sealed_digests: tuple[str, ...] | None = None
    earlier: tuple[tuple[Vector, ...], ...] = ()
    timetable: TimetableView | None = None
