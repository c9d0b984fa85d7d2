"""What a package may hold: every file, column and field, each with its source. Plain data.

A package is made from sealed noisy numbers, the plan, the ledger and synthetic data, so everything
in it has one of these sources. What has none here is not published, whoever wrote it, and
`turnstile assess` finds it in a package whose manifest agrees. A new field is one entry here, a
column one in `programme.fields`, a file one in `files`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from turnstile.programme.field import PUBLIC_ROLES, Role


class Source(StrEnum):
    """Where a published value comes from."""

    NOISY_INTEGER = "noisy integer, as drawn"
    POST_PROCESSING = "made from noisy integers alone"
    DECLARED = "parameter that was declared before the data were read"
    LEDGER = "amount or digest of the ledger"
    SYNTHETIC = "synthetic units and made-up tables"
    CODE = "the code, the same in every package"


D, L, P, S = Source.DECLARED, Source.LEDGER, Source.POST_PROCESSING, Source.SYNTHETIC
# Keys that stand for any unit, for any name that was declared, for whatever a record holds.
UNIT, NAME, ANYTHING = "{unit}", "{name}", "{anything}"
_LOSS = dict.fromkeys(
    ("epsilon", "epsilon_replace", "rho", "rho_replace", "delta", "epsilon_at_delta_1e-6"), D
)
_ERROR = dict.fromkeys(
    ("table", "mode", "cells", "standard_deviation", "half_width_90", "half_width_95"), D
)
_RISK = dict.fromkeys(
    ("unit", "who", "is_worst", "weeks", "best_guess", "epsilon_at_delta_1e-6", "sentence"), D
)
Fields = Mapping[str, Any]

CARD: Fields = {
    **dict.fromkeys(
        (
            *("release", "title", "description", "service_week", "service_days", "time_zone"),
            *("curator", "contact", "licence", "composition", "unprotected", "post_processing"),
            *("built_at", "plan_sha256", "programme_sha256"),
        ),
        D,
    ),
    "gaps": D,
    "absent_days": D,
    "sealed_sha256": L,
    "burned_draws": L,
    "guarantee": {
        **dict.fromkeys(
            (
                *("neighboring", "mechanism", "without_card", "service_day", "not_counted"),
                *("trips", "identity"),
            ),
            D,
        ),
        "counted": {NAME: D},
        "bounds": {
            UNIT: dict.fromkeys(
                ("contributions_max", "once_per_cell", "once_per_finest_cell", "coarse_cell_max"), D
            )
        },
        "units": {UNIT: _LOSS},
    },
    "draws": {
        **_ERROR,
        **dict.fromkeys(("statistic", "noise", "scale", "threshold", "step"), D),
        "sensitivity": {UNIT: dict.fromkeys(("l0", "l1", "l2_squared"), D)},
    },
    "terms": {
        **dict.fromkeys(("records", "rows_outside", "modes", "joint"), D),
        "tables": {
            NAME: {
                **dict.fromkeys(("by", "bounded", "records_at_most", "range"), D),
                "limits": dict.fromkeys(("by", "at_most"), D),
                "year_to_date": dict.fromkeys(("from", "multiples", "not_held"), D),
            }
        },
    },
    "charges": dict.fromkeys(("draws", "postings"), L),
    "windows": dict.fromkeys(("unit", "weeks", "window", "epsilon", "rho", "delta"), L),
    "errors": dict.fromkeys(("estimates", "sums_of_measured_cells"), _ERROR),
    # Recomputed from public bytes by `turnstile estimates verify`, which is the stricter check.
    "estimates": {
        **dict.fromkeys(("model", "read_as", "withheld", "seed_sha256"), D),
        "earlier": dict.fromkeys(("release", "manifest_sha256"), L),
        "promise": {ANYTHING: D},
        "errors": {ANYTHING: P},
        "correlations": {ANYTHING: P},
    },
    "above_noise": dict.fromkeys(("table", "statistic", "cells", "above", "by_noise_at_most"), P),
    "domain": dict.fromkeys(("version", "sha256", "rows_outside"), D),
    "cumulative": dict.fromkeys(
        (
            *("family", "unit", "scope", "epsilon_before", "epsilon_after"),
            *("rho_before", "rho_after", "delta_before", "delta_after"),
        ),
        L,
    ),
    "ledger": dict.fromkeys(("sequence", "head_sha256"), L),
    "libraries": {NAME: D},
}
PLAN: Fields = {
    **dict.fromkeys(
        (
            *("programme", "week", "revision", "programme_digest", "domain_digest"),
            "plan_digest",
        ),
        D,
    ),
    "events": dict.fromkeys(
        (
            *("table", "statistic", "noise", "scale", "blocks", "sensitivities", "delta"),
            *("threshold", "joint", "own_records", "mechanism", "step", "carried"),
        ),
        D,
    ),
}
DESCRIPTOR: Fields = {
    **dict.fromkeys(
        (
            *("$schema", "name", "title", "description", "version", "created", "keywords"),
            *("homepage", "image"),
        ),
        D,
    ),
    "sources": {"title": D},
    "privacy": {"card": D, "guarantee": {UNIT: _LOSS}},
    "licenses": dict.fromkeys(("name", "path", "title"), D),
    "contributors": dict.fromkeys(("title", "roles", "email", "path"), D),
    "resources": {
        **dict.fromkeys(
            (
                *("name", "path", "format", "mediatype", "description", "bytes", "hash", "type"),
                *("encoding", "title"),
            ),
            P,
        ),
        "schema": {
            "fields": dict.fromkeys(("name", "type", "title", "description", "unit", "role"), D),
            "primaryKey": D,
            "missingValues": D,
        },
    },
}
MANIFEST: Fields = {
    **dict.fromkeys(("key", "sealed_sha256"), L),
    "files": dict.fromkeys(("path", "bytes", "sha256"), P),
}
ASSESSMENT: Fields = {
    **dict.fromkeys(("release", "sealed_sha256", "plan_sha256", "weeks_so_far"), L),
    **dict.fromkeys(("passed", "headline"), P),
    "gates": dict.fromkeys(
        (
            *("gate", "passed", "statement", "false_alarm", "detects", "is_applicable"),
            *("outcome", "reached_by"),
        ),
        P,
    ),
    "audits": dict.fromkeys(
        (
            *("draw", "unit", "epsilon_claimed", "delta", "epsilon_at_least", "confidence"),
            *("guesses", "right", "is_refuted"),
        ),
        S,
    ),
    "what_an_audit_means": D,
    "loss_by_unit": {UNIT: dict.fromkeys(("epsilon", "rho", "delta"), D)},
    "risk_by_unit": _RISK,
    "risk_over_weeks": {
        **dict.fromkeys(("weeks", "average_half_width_95"), D),
        "best_guess": {NAME: D},
        "epsilon_at_delta_1e-6": {UNIT: D},
    },
    "averaging": {NAME: dict.fromkeys(("draws", "half_width_95", "guess_right"), D)},
    "differencing": dict.fromkeys(
        ("total", "parts", "mode", "terms", "half_width_95", "own_half_width_95"), D
    ),
    "reconstruction_of_synthetic_table": dict.fromkeys(
        ("margins", "from_cells", "from_least_squares", "from_linear_program"), S
    ),
    "membership_simulated_by_week": S,
    "timetable": {
        **dict.fromkeys(
            (
                *("feed", "feed_sha256", "days", "cells_with_service", "cells_of_one_vehicle"),
                *("cells_of_one_stop", "stops_without_a_cell", "meaning", "cells_not_listed"),
            ),
            D,
        ),
        "cells": dict.fromkeys(
            (
                *("mode", "slot", "area", "days", "one_vehicle", "one_stop", "trip_ids"),
                "stop_ids",
            ),
            D,
        ),
    },
    "ledger": dict.fromkeys(("unit", "scope", "epsilon", "rho", "cap_epsilon", "weeks_left"), L),
    "limits": D,
    "formulas": dict.fromkeys(("what", "formula", "source"), D),
}
# The index of a series (`series/index.json`), and what a withdrawal leaves.
SERIES: Fields = {
    **dict.fromkeys(("programme", "title", "description", "curator", "contact"), D),
    "licence": dict.fromkeys(("name", "path"), D),
    **dict.fromkeys(("latest", "ledger_sequence"), L),
    "periods": {
        **dict.fromkeys(("period", "first_day", "last_day"), D),
        **dict.fromkeys(
            (
                *("state", "revision", "path", "manifest_sha256"),
                *("published_at", "stated_at"),
            ),
            L,
        ),
        "withdrawn": dict.fromkeys(("revision", "withdrawn_at", "reason"), L),
    },
    "totals": {
        **dict.fromkeys(("period", "mode", "what", "half_width_95"), D),
        "total": P,
    },
    "tables": {
        "name": D,
        "versions": {
            **dict.fromkeys(("version", "path", "periods"), D),
            "columns": dict.fromkeys(("name", "type"), D),
        },
    },
    "files": dict.fromkeys(("path", "bytes", "sha256"), P),
}
SERIES_PACKAGES: Fields = {
    "columns": D,
    "packages": {
        NAME: {
            "tables": {NAME: D},
            "gaps": D,
            "manifest_sha256": L,
            "totals": SERIES["totals"],
        }
    },
}
TOMBSTONE: Fields = {
    **dict.fromkeys(("release", "state", "withdrawn_at", "reason", "manifest_sha256"), L),
    "ledger": dict.fromkeys(("sequence", "entry_sha256"), L),
}
JSON_FILES: Mapping[str, Fields] = {
    "release_card.json": CARD,
    "plan.json": PLAN,
    "datapackage.json": DESCRIPTOR,
    "manifest.json": MANIFEST,
    "assessment.json": ASSESSMENT,
}
# Beside those of the registry (`files`), which name their own sources.
OTHER_FILES: Mapping[str, Source] = {"assessment.html": S}
TABLE_FOLDERS: Mapping[str, frozenset[Role]] = {
    "measurements": frozenset({Role.KEY, Role.GAP, Role.DIMENSION, Role.MEASUREMENT}),
    "tables": PUBLIC_ROLES,
    "estimates": PUBLIC_ROLES,
}
# Of a planned table; buses beside mean speeds, and as many equal rows as a count.
ROLL_UPS = ("", "_hourly", "_daily", "_buses", "_rows", "_13_weeks", "_year_to_date")
METADATA = frozenset({b"ARROW:schema", b"turnstile.gaps"})
