"""Keys of what a programme promises: bounds, tables, noise and caps; `read_promises` reads them."""

from __future__ import annotations

from turnstile.privacy.mechanisms.registry import Calibration, MechanismKind
from turnstile.privacy.units import NeighboringRelation, ProtectionUnit
from turnstile.programme.key import OPTIONAL, REQUIRED, Key
from turnstile.programme.spec import Measure

_BOUNDED = {
    "contributes": "must be 1",
    "trips_at_most": "trips of a unit that are counted, over all modes",
    "cells_at_most": "pairs of slot and cell of a unit that are counted, each day its own",
}
_UNIT_KEYS = tuple(
    key
    for unit in ProtectionUnit
    if unit.bound_key is not None
    for key in (
        Key(f"units.{unit}", "section", OPTIONAL, f"bound of a {unit.replace('_', '-')}", ""),
        Key(
            f"units.{unit}.{unit.bound_key}",
            "integer",
            REQUIRED,
            _BOUNDED[unit.bound_key],
            "1" if unit.is_record else "20",
            least=1,
        ),
    )
)
PROMISES: tuple[Key, ...] = (
    Key("units", "section", REQUIRED, "contribution bounds, by unit", ""),
    *_UNIT_KEYS,
    Key(
        "units.NAME.once_per_cell",
        "flag",
        "false",
        "no two counted records of a unit share a cell of any table",
        "true",
    ),
    Key(
        "units.NAME.once_per_finest_cell",
        "flag",
        "false",
        "no two counted records of a unit share a slot and place",
        "true",
    ),
    Key(
        "units.NAME.coarse_cell_at_most",
        "integer",
        OPTIONAL,
        "beside once_per_finest_cell: counted records of a unit, mode and day in a coarser cell",
        "2",
        least=1,
    ),
    Key("tables", "section", REQUIRED, "published tables, by name", ""),
    Key("tables.NAME", "section", REQUIRED, "one table", ""),
    Key(
        "tables.NAME.by",
        "texts",
        REQUIRED,
        "its dimensions; [] for totals by mode and day, beside trips_at_most; of vehicles slot and "
        "some of cell, route, direction, in all tables the same",
        "[tap_on_slot]",
    ),
    Key(
        "tables.NAME.trips_at_most",
        "integer",
        OPTIONAL,
        "trips of a bounded unit that this table counts: a bound of its own",
        "40",
        least=1,
    ),
    Key(
        "tables.NAME.per_cell_at_most",
        "integer",
        OPTIONAL,
        "beside trips_at_most: those of one mode and day in one cell",
        "8",
        least=1,
    ),
    Key(
        "tables.NAME.year_to_date_from",
        "text",
        OPTIONAL,
        "beside trips_at_most, dense_gaussian: each week's draw carries its year so far along, and "
        "sums of 13 weeks and of the year are published; a year is 52 weeks, this is the first one",
        "2016-W27",
    ),
    Key(
        "tables.NAME.measure",
        "choice",
        "count for trips, mean_speed for telemetry",
        "what is measured",
        "buses_over",
        Measure,
    ),
    Key(
        "tables.NAME.clamp_kmh",
        "integer",
        REQUIRED,
        "mean_speed: speeds are clamped to 0 to this, km/h",
        "65",
        least=1,
    ),
    Key(
        "tables.NAME.clamp_minutes",
        "integer",
        REQUIRED,
        "mean_delay: delays are clamped to this early and this late, minutes",
        "15",
        least=1,
    ),
    Key(
        "tables.NAME.limits_kmh",
        "texts",
        REQUIRED,
        "buses_over: integer speed limits, km/h",
        "[40, 60]",
    ),
    Key(
        "tables.NAME.at_least",
        "texts",
        REQUIRED,
        "occupancy: classes of GTFS-realtime; buses that are so full or fuller are counted",
        "[STANDING_ROOM_ONLY]",
    ),
    Key("mechanism", "section", REQUIRED, "the noise", ""),
    Key("mechanism.kind", "choice", REQUIRED, "mechanism", "dense_gaussian", MechanismKind),
    Key(
        "mechanism.unit",
        "choice",
        REQUIRED,
        "the unit that the amount protects; bounded under units",
        "card_day",
        ProtectionUnit,
    ),
    Key("mechanism.rho", "amount", REQUIRED, "dense_gaussian: zCDP of one unit", '"1/8"'),
    Key("mechanism.epsilon", "amount", REQUIRED, "Laplace kinds: epsilon of one unit", '"4"'),
    Key(
        "mechanism.share_of_cap",
        "amount",
        REQUIRED,
        "in place of rho or epsilon: the share of the cap over window_weeks that a week spends",
        '"1/52"',
    ),
    Key(
        "mechanism.joint_marginals",
        "flag",
        "false",
        "dense_gaussian with once_per_finest_cell: slots and places of a tap share one bound",
        "true",
    ),
    Key("mechanism.delta", "amount", REQUIRED, "stability_histogram: delta", '"1e-7"'),
    Key(
        "mechanism.calibration",
        "choice",
        Calibration.TIGHT,
        "stability_histogram: our threshold, or that of the 2017 release",
        "source",
        Calibration,
    ),
    Key("mechanism.budgets", "section", REQUIRED, "calibration source: epsilons by table", ""),
    Key("mechanism.budgets.NAME", "amount", REQUIRED, "replace-one epsilon of a table", '"1"'),
    Key("mechanism.split", "section", REQUIRED, "share of each draw; adds up to 1", ""),
    Key("mechanism.split.NAME", "amount", REQUIRED, "share of a draw", '"1/4"'),
    Key("caps", "sections", REQUIRED, "limits on what a unit may lose", ""),
    Key("caps[N].unit", "choice", REQUIRED, "whose loss", "card", ProtectionUnit),
    Key(
        "caps[N].relation",
        "choice",
        NeighboringRelation.ADD_REMOVE,
        "neighboring relation",
        "add_remove",
        NeighboringRelation,
    ),
    Key("caps[N].epsilon", "amount", OPTIONAL, "cap in epsilon; or write rho", '"40"'),
    Key("caps[N].rho", "amount", OPTIONAL, "cap in rho; or write epsilon", '"1"'),
    Key("caps[N].delta", "amount", OPTIONAL, "delta at which the loss is shown", '"1e-6"'),
    Key(
        "caps[N].window_weeks",
        "integer",
        "52",
        "card and bus: the cap holds for every so many weeks in a row",
        "52",
        least=1,
    ),
    Key(
        "redraws",
        "integer",
        "1",
        "draws that may die in any window of a cap: room for them, and for one correction, is left "
        "beside all releases; 0: none, a draw that dies costs its period, on purpose",
        "0",
        least=0,
    ),
)
