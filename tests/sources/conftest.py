"""Programmes, landing zones and ingested weeks."""

from ingested_weeks import ingested, programme_of, rows_of, zones

__all__ = ["ingested", "programme_of", "rows_of", "zones"]
