"""What a programme is called in Airflow: its DAG, and an asset for each zone. Pure."""

from __future__ import annotations

_RELEASES = "release_"
ZONES = {
    "ingest": ("landing", "private"),
    "draw": ("private", "embargoed"),
    "publish": ("embargoed", "public"),
}
"""Steps that bring a week from one zone to another."""


def dag_of(programme: str) -> str:
    """Return the identifier of the DAG that releases a programme's weeks."""
    return f"{_RELEASES}{programme}"


def programme_of(dag_id: str) -> str:
    """Return the programme whose weeks a DAG releases; empty for a DAG of another kind."""
    return dag_id.removeprefix(_RELEASES) if dag_id.startswith(_RELEASES) else ""


def asset_of(programme: str, zone: str) -> str:
    """Return the name of what a programme has in a zone, in assets and in lineage."""
    return f"{programme}_{zone}"
