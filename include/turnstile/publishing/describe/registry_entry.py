"""`registry_entry.yaml`: the package's programme as the OpenDP Deployments Registry asks for it.

Tier 3 of its schema: from the release card and the programme alone. `status` is Draft: whether and
as what an entry is accepted is the registry's business.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from turnstile.privacy.mechanisms.registry import MechanismKind
from turnstile.privacy.units import ProtectionUnit, Subject
from turnstile.programme.source_spec import Feed, RowShape
from turnstile.publishing.contents import Contents
from turnstile.publishing.written_text import yaml_bytes

_PARAMETERS = ("epsilon", "rho", "delta")


def write(contents: Contents) -> bytes:
    """Return the entry as YAML."""
    return yaml_bytes(registry_entry(contents))


def _variant(kind: MechanismKind) -> str:
    """Return the registry's name of a mechanism's guarantee."""
    if kind.is_thresholded:
        return "Approximate DP"
    return "Zero-concentrated DP" if kind.amount == "rho" else "Pure DP"


def registry_entry(contents: Contents) -> dict[str, Any]:
    """Return the entry as plain values."""
    programme, card = contents.drawn.programme, contents.card
    return {
        "url_slug": programme.name.replace("_", "-"),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": programme.title,
                "data_curators": [programme.publish.curator],
                "intended_use": "Planning of and research on public transport.",
                "data_product_type": "Summary statistics",
                "data_product_region": f"The service area of {programme.publish.curator}",
                "description": programme.description,
                "publication_date": contents.built_at.date().isoformat(),
                "data_product_sector": "Government",
            },
            "dp_variant": {
                "variant_name": _variant(programme.mechanism.kind),
                "data_domain": _data_domain(contents),
                "unprotected_quantities": "; ".join(card["unprotected"]),
            },
            "privacy_loss": _privacy_loss(contents),
            "deployment_model": {
                "model_name": "Central",
                "actors": f"{programme.publish.curator} holds the records, draws the noise and "
                "publishes; anybody may read what is published and the ledger's public entries.",
                "release_type": "Many releases",
                "release_type_details": "One release a period; what all of them add up to stands "
                "in every release card, and a ledger refuses what would pass a cap.",
                "data_source_type": "Dynamic",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": card["post_processing"],
                "composition": card["composition"],
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "Parameters come from a reviewed "
                "programme file and public domain files, never from the records.",
                "mechanisms": _mechanisms(card),
                "justification": "Each charge is written to the ledger before a draw; a release "
                "key has one sealed byte string for ever, which re-issues repeat.",
            },
            "administrative": {
                "sources": f"Release {card['release']}; release_card.json beside this file.",
                "registry_authors": [programme.publish.curator],
            },
        },
    }


def _data_domain(contents: Contents) -> str:
    """Say which data sets are possible."""
    records = records_of(contents.drawn.programme.source.feed)
    outside = f"records outside of the public domain are {contents.card['domain']['rows_outside']}"
    return f"All finite sets of {records}; {outside}."


def records_of(feed: Feed) -> str:
    """Say what the records of a feed are."""
    if feed.shape is RowShape.TELEMETRY:
        return "calls of vehicles at stops" if feed.names_stops else "positions of vehicles"
    if feed.names_nobody:
        return "boardings and alightings that name nobody"
    if feed is Feed.HIRED_TRIPS:
        return "hired trips"
    return "smart-card taps" if feed.joins_taps else "smart-card trips"


def _several_of(unit: ProtectionUnit) -> str:
    """Say of what several are not one unit."""
    if unit.subject is Subject.BUS:
        return "buses"
    return "trips of one person" if unit.is_record else "cards of one person"


def _privacy_loss(contents: Contents) -> dict[str, Any]:
    """Return unit, adjacency and parameters of one release."""
    programme, guarantee = contents.drawn.programme, contents.card["guarantee"]
    unit = programme.mechanism.unit
    figures = guarantee["units"][str(unit)]
    amounts = {
        name: float(Fraction(figures[name])) for name in _PARAMETERS if figures[name] is not None
    }
    if not amounts.get("delta"):
        amounts.pop("delta", None)
    if "epsilon" in amounts:
        amounts.pop("rho", None)
    return {
        "privacy_unit": str(unit),
        "privacy_unit_details": f"Adjacent data sets differ in all records of {unit.noun}; "
        f"{guarantee['neighboring']}. Several {_several_of(unit)} are not one unit.",
        "privacy_parameters": amounts,
        "privacy_parameters_details": "Of one release, for one unit, add or remove; other units "
        "and all releases together stand in release_card.json.",
    }


def _mechanisms(card: dict[str, Any]) -> str:
    """Say which noise each table has."""
    draws = "; ".join(
        f"{draw['table']}/{draw['statistic']}: {draw['noise']} of scale {draw['scale']}"
        for draw in card["draws"]
    )
    return (
        f"Exact integer samplers of OpenDP {card['libraries']['opendp']} with the operating "
        f"system's randomness, no floating point on the way of a draw. {draws}."
    )
