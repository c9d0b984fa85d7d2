"""Validation of ingested weeks: figures, Great Expectations, findings without numbers."""
