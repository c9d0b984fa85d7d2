"""Every key of a programme file: type, range, default, meaning, example. Plain data.

`turnstile check --keys` prints it as docs/PROGRAMMES.md; a test loads programmes and compares what
the readers ask for with what stands here. NAME stands for a free name, N for an index in a list.
"""

from __future__ import annotations

import re

from turnstile.programme.key import OPTIONAL, REQUIRED, Key
from turnstile.programme.keys_of_inputs import INPUTS
from turnstile.programme.keys_of_promises import PROMISES
from turnstile.programme.spec import Query

KEYS: tuple[Key, ...] = (
    Key("name", "text", REQUIRED, "the file's own name, without .yaml", "opal"),
    Key("title", "text", REQUIRED, "title of the published package", "Opal taps by place and time"),
    Key("description", "text", REQUIRED, "what is published, in words", "Numbers of tap-ons ..."),
    Key(
        "family",
        "text",
        REQUIRED,
        "budget group: programmes that touch the same people or vehicles share one set of accounts",
        "opal_cards",
    ),
    *INPUTS,
    *PROMISES,
    Key("schedule", "section", OPTIONAL, "when a week is released", ""),
    Key(
        "schedule.final_after_days",
        "integer",
        "0",
        "days after the week until its files are final",
        "4",
        least=0,
    ),
    Key("schedule.weekly_at", "text", "10:00", "time of day in the agency's zone", '"10:00"'),
    Key("schedule.period_days", "integer", "7", "length of a period, days", "31", least=1),
    Key(
        "schedule.first_day",
        "text",
        REQUIRED,
        "periods other than weeks: the first service day of the first one",
        "2021-11-15",
    ),
    Key("approval", "section", OPTIONAL, "who must say yes before publication", ""),
    Key("approval.required", "flag", "false", "whether people are asked at all", "true"),
    Key("approval.persons", "integer", "1", "how many people must approve", "2", least=1),
    Key("approval.role", "text", "release_officer", "their role in people.yaml", "release_officer"),
    Key(
        "approval.not_the_starter",
        "flag",
        "true from two persons on",
        "whoever started the run may not approve it",
        "true",
    ),
    Key("retention", "section", OPTIONAL, "how long private data stay; without it, for ever", ""),
    Key(
        "retention.backfill_days",
        "integer",
        REQUIRED,
        "days after a period in which it may be released or corrected; nothing is deleted earlier",
        "60",
        least=1,
    ),
    Key(
        "retention.raw_days",
        "integer",
        REQUIRED,
        "days after a period until its raw files and rows are deleted",
        "90",
        least=1,
    ),
    Key(
        "retention.exact_days",
        "integer",
        REQUIRED,
        "days after a period until its exact tables and figures are deleted; with "
        "year_to_date_from not before their year is over",
        "120",
        least=1,
    ),
    Key("publish", "section", REQUIRED, "what the package says of itself", ""),
    Key("publish.licence", "text", REQUIRED, "licence of the data, SPDX", "CC-BY-4.0"),
    Key("publish.curator", "text", REQUIRED, "who publishes", "Example Transport Authority"),
    Key("publish.contact", "text", REQUIRED, "where questions go", "open-data@transport.example"),
    Key(
        "publish.synthetic_rows",
        "flag",
        "false",
        "stability_histogram: also one row per counted trip",
        "true",
    ),
    Key(
        "publish.to",
        "texts",
        OPTIONAL,
        "portals that every release is sent to (PORTALS.md)",
        '["s3://bucket/transport"]',
    ),
    Key(
        "publish.holidays",
        "text",
        OPTIONAL,
        "public holidays: CSV with service_date, holiday",
        "domains/holidays_nsw.csv",
    ),
    Key(
        "publish.tides_shapes",
        "flag",
        "false",
        "also as TIDES 1.0 station_activities and stop_visits (PACKAGES.md)",
        "true",
    ),
    Key("meant_for", "texts", OPTIONAL, "queries that the release is meant for", "", Query),
)


def key_at(path: str) -> Key | None:
    """Return the key at a path of a file, free names and indices in lists allowed for.

    Examples:
        >>> key_at("caps[1].rho").path
        'caps[N].rho'
        >>> key_at("tables.on_time.by").path
        'tables.NAME.by'
        >>> key_at("time.slot_minute") is None
        True
    """
    ways = re.sub(r"\[\d+\]", "[N]", path).split(".")
    for key in KEYS:
        known = key.path.split(".")
        if len(known) == len(ways) and all(
            mine in (its, "NAME") for mine, its in zip(known, ways, strict=True)
        ):
            return key
    return None


def reference() -> str:
    """Return the reference as Markdown."""
    head = (
        "# Programme files: every key\n\n"
        "Printed by `turnstile check --keys`, from `programme/keys.py`. NAME stands for a free "
        "name, N for an index in a list. Amounts are exact and stand in quotes.\n\n"
        "| key | type | default | meaning | example |\n|---|---|---|---|---|\n"
    )
    return head + "".join(_row(key) for key in KEYS)


def _row(key: Key) -> str:
    """Return one row of the reference."""
    allowed = "" if key.choices is None else ": " + ", ".join(key.choices)
    least = "" if key.least is None else f", {key.least} or more"
    example = f"`{key.example}`" if key.example else ""
    cells = (f"`{key.path}`", key.kind + allowed + least, key.default, key.meaning, example)
    return f"| {' | '.join(cells)} |\n"
