"""The task that copies a week's new files from where the authority keeps them, before the wait."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from step_task import of_run

from turnstile.errors import LandingAway, TurnstileError
from turnstile.pipeline.landing.fetching import address_of, fetch_new
from turnstile.programme.loading import load_programme
from turnstile.service_calendar import parse_period
from turnstile.sources.ingest.landing import has_files

if TYPE_CHECKING:
    from airflow.sdk import Context
    from run_reports import RunOfWeek

    from turnstile.pipeline.landing.fetching import Address

_log = logging.getLogger("turnstile")


class FetchNew(BaseOperator):
    """Copy what is new at the authority's server (`TURNSTILE_LANDING_FROM`) into the landing zone.

    Each file comes whole or not at all. The wait after it looks there again, for what comes later,
    and waits for a server that is away. Settings that the server refuses stop the run at once.
    Of a sealed week it is what `ask_revision` then asks about. A week whose files retention has
    deleted is left alone.
    """

    def __init__(self, *, programme: str, **operator: Any) -> None:  # noqa: ANN401 - Airflow's own
        super().__init__(**operator)
        self.programme = programme

    def execute(self, context: Context) -> str:
        """Copy; return a sentence without a name of a file."""

        def act(run: RunOfWeek) -> str:
            try:
                return fetched_words(fetch_for(run))
            except LandingAway as away:
                said = f"{away_words(away)}; the wait after this task asks again"
            _log.warning("%s", said)
            return said

        return of_run(self.programme, self.task_id, context, act)


def fetch_for(run: RunOfWeek) -> int | None:
    """Copy what is new of a run's week; return how many files that were, None if nobody answered.

    A sealed week needs no file: its bytes are re-issued whether the server answers or not.

    Raises:
        LandingAway: the server is away, or an object is written to or went, and the week is not
            sealed.
        TurnstileError: no address; of a week that is not sealed a missing provider, what the
            server refuses, or a store of our own that is away.
        OSError: a file cannot be written here, and the week is not sealed.
    """
    address = address_of(run.programme, run.settings)
    if address is None:
        return 0
    try:
        return _fetched(run, address)
    except Exception as error:
        if not run.is_sealed():
            raise
        why = error if isinstance(error, TurnstileError) else type(error).__name__
        _log.warning("whether files of %s came again is not known: %s", run.key, why)
        return None


def _fetched(run: RunOfWeek, address: Address) -> int:
    """Copy what is new at an address; return how many files that were."""
    from landing_servers import asked_at

    from turnstile.ledger.of_deployment import open_ledger

    programme = load_programme(run.programme, run.settings.include)
    period, landing = parse_period(run.week), run.settings.landing
    if run.is_sealed() and not has_files(landing, programme.source.landing, period):
        return 0  # somebody took them away: raw data of a sealed week do not come back by a click
    ledger = open_ledger(run.settings)
    return len(fetch_new(programme, period, landing, ledger, (address, asked_at(address))))


def away_words(away: LandingAway) -> str:
    """Say that nobody can be asked for files now."""
    return f"the server of the files is away, or writes to one ({away.problem})"


def fetched_words(number: int | None) -> str:
    """Say how many files came."""
    if number is None:
        return "nobody could be asked; the sealed bytes stand, and clearing this task asks again"
    return "no new file" if not number else f"{number} new file{'s' if number > 1 else ''}"
