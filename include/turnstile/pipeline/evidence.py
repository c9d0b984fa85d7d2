"""Gathers what the gates need beside the sealed bytes; nothing of it is read from rows.

The audit's synthetic units go through the product's own bounding and counting here, because the
assessment itself cannot reach the private zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import islice

from turnstile.assessment.attacks.timetable_view import view
from turnstile.assessment.audits.pipeline_copy import PipelineCopy
from turnstile.assessment.cell_labels import labels_of_domain
from turnstile.assessment.evidence import Evidence
from turnstile.durable_files import SEALED
from turnstile.ledger.balances.charged_releases import ChargedRelease
from turnstile.ledger.custody.folders import release_folders
from turnstile.ledger.records import ReleaseKey
from turnstile.pipeline.context import Release
from turnstile.pipeline.preflight import trials
from turnstile.pipeline.trials.public_files import timetable_of
from turnstile.pipeline.trials.sampler_fits import misfits_of
from turnstile.release.numbers import Vector
from turnstile.release.sealed import decode
from turnstile.release.zones import digest_of
from turnstile.service_calendar import parse_period

_EARLIER_MOST = 26  # releases whose noise is compared: what a few CPU seconds read and compare


def evidence_of(release: Release) -> Evidence:
    """Return what a sealed release is judged by."""
    embargoed = release.folders.embargoed
    charged = release.ledger.charged(release.programme.family)
    named = timetable_of(release.programme, release.settings.include, release.week.days)
    return Evidence(
        balances=tuple(release.ledger.balance(release.programme.family)),
        charged=charged,
        copy=PipelineCopy(
            observed=trials(release),
            misfits=misfits_of(release.plan.events, release.settings.small_worlds),
        ),
        sealed_digests=tuple(
            sorted(digest_of(path.read_bytes()) for path in embargoed.glob(f"{SEALED}*"))
        ),
        earlier=_earlier(release, charged),
        timetable=None if named is None else view(named, labels_of_domain(release.domain)),
    )


def _earlier(release: Release, charged: Sequence[ChargedRelease]) -> tuple[tuple[Vector, ...], ...]:
    """Return what was sealed for other keys of the group and stands unaltered, newest first."""
    events = {str(entry.key): entry.events for entry in charged if entry.key != release.key}
    folders = {key: of for key, of in release_folders(release.settings.embargoed) if key in events}
    read = (
        (events[key], path.stem, path.read_bytes())
        for key in sorted(folders, key=_age, reverse=True)
        for path in sorted(folders[key].glob(f"{SEALED}*.parquet"), reverse=True)
    )
    unaltered = (
        (key_events, content)
        for key_events, name, content in read
        if name.endswith(digest_of(content)[:16])
    )
    return tuple(
        tuple(
            Vector(event, table.service_date, table.values)
            for event, table in zip(key_events, decode(content).tables, strict=False)
        )
        for key_events, content in islice(unaltered, _EARLIER_MOST)
    )


def _age(name: str) -> tuple[date, int, str]:
    """Return when the period of a release begins, its revision and its programme, to sort by."""
    key = ReleaseKey.parse(name)
    return parse_period(key.period).first_day, key.revision, key.programme
