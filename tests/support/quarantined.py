"""How many rows broke each rule, as the private zone keeps it."""

from __future__ import annotations

from turnstile.sources.ingest.snapshot import TOTALS, PrivateCounts, Snapshot, counts_of


def quarantine_counts(snapshot: Snapshot) -> PrivateCounts:
    """Return how many rows broke each rule, zeros included."""
    counts = counts_of(snapshot)
    return PrivateCounts({rule: counts[rule] for rule in counts if rule not in TOTALS})
