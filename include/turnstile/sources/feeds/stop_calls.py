"""Calls of vehicles at stops, of feeds that name the stop and state no position.

What such a record says of a vehicle is when it was at a stop, and how late. Its row has no position
(0, 0) and no speed; tables are by stop or route, and never by hexagon. What is not observed, a
forecast or a call that did not take place, is set aside; so is a status that nobody explains.
"""

from __future__ import annotations

from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds.layout import carried_sql, delay_sql, set_aside, week_rules
from turnstile.sources.feeds.zoned import ServiceClock, stamped_sql
from turnstile.sources.ingest.identity import another_form_rule

_FIELDS = ("vehicle_id", "observed_at", "stop", "delay")


def typed_sql(
    programme: Programme, week: ServicePeriod, relation: str, unit: str = "vehicle_id"
) -> str:
    """Return the SELECT from the fields of records to canonical telemetry.

    Args:
        programme: says how they are read.
        week: that is read.
        relation: SQL of the fields `_FIELDS` and categories as texts, `is_observed`, and
            `is_known`, false of a word of status that the feed's standard lacks.
        unit: SQL of what a row's vehicle is called, once its id is in form.
    """
    clock = ServiceClock(programme.time.day_starts)
    source, zone = programme.source, programme.time.zone
    asked = "delay_s" in programme.carried
    return f"""
        SELECT {unit} AS vehicle_id, utc AS observed_at_utc, day AS service_date,
            {clock.minute("(60 * hour(local) + minute(local))")} AS minute_of_day,
            0.0 AS latitude, 0.0 AS longitude, 0 AS speed_milli_kmh,
            {carried_sql(programme)}
            {delay_sql(source) if asked else "NULL"} AS delay_s,
            NULL AS occupancy,
            CASE
                WHEN NOT is_known THEN 'unknown_status'
                WHEN NOT coalesce(is_observed, false) THEN 'not_observed'
                WHEN day IS NULL THEN 'unparsable_timestamp'
                {week_rules("day", programme, week)}
                WHEN vehicle_id IS NULL THEN 'null_vehicle'
                {another_form_rule(source)}
                WHEN stop IS NULL THEN 'null_stop'
            END AS broken_rule,
            {set_aside(_FIELDS)} AS fields
        FROM (
            SELECT *, {clock.day("local")} AS day
            FROM {stamped_sql(relation, "observed_at", zone, week, source)}
        )
    """
