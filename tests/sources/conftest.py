"""Programmes, landing zones and ingested weeks."""

from ingested_weeks import programme_of, rows_of, zones

__all__ = ["programme_of", "rows_of", "zones"]
