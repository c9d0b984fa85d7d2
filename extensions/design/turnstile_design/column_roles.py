"""What becomes of every column of a delivered file: plain data, for the decision sheet.

Fields are those of the layouts; every other column is never read.
"""

from __future__ import annotations

NEVER_READ = "dropped: never read"
ROLES = {
    "card_id": "unit: bounds what one card adds; hashed in the private zone, published nowhere",
    "operator": "unit: with the vehicle, whose number is the operator's own",
    "vehicle_id": "unit: bounds what one vehicle adds; published nowhere",
    "tap_id": "dropped: tells a record that came twice",
    "service_date": "published: as the service day of a cell, with noise",
    "tapped_at": "published: as the slot of a cell, with noise",
    "trip_id": "dropped: tells a record that came twice",
    "ended_at": "published: as the slot of a cell, with noise",
    "end_place": "published: as the location of a cell, with noise",
    "end_latitude": "published: as the location of a cell, with noise",
    "end_longitude": "published: as the location of a cell, with noise",
    "gate": "dropped: tells the records of one gate from those of others",
    "booth": "dropped: with the gate, whose number is the booth's own",
    "entries": "bounded: a record of n is n rides, 10,000 at most",
    "exits": "bounded: a record of n is n rides, 10,000 at most",
    "tap_date": "published: as the service day of a cell, with noise",
    "tap_time": "published: as the slot of a cell, with noise",
    "observed_at": "published: as the slot of a cell, with noise",
    "action": "bounded: tells tap-ons from tap-offs",
    "place": "published: as the location of a cell, with noise",
    "latitude": "published: as the location of a cell, with noise",
    "longitude": "published: as the location of a cell, with noise",
    "coordinates": "published: as the location of a cell, with noise",
    "mode": "published: as the mode of a cell, with noise",
    "trip": "dropped: with source.timetable it says which stops positions are held against",
    "start_date": "dropped: with source.timetable it says of which day the trip is",
    "scheduled_trip": "dropped, unless a list of stop visits names it: then published, with noise",
    "stop_sequence": "dropped, unless a list of stop visits names it: then published, with noise",
    "passengers": "bounded: a record of n passengers is n boardings or alightings",
    "riders": "bounded: a record of riders 0 is set aside, any other is one trip",
    "route": "dropped, unless a list of routes names it: then published, with noise",
    "direction": "dropped, unless a list of directions names it: then published, with noise",
    "fare_product": "dropped, unless a list of fare products names it: then published, with noise",
    "vehicle_trip": "dropped, unless a list of vehicle trips names it: then published, with noise",
    "occupancy": "dropped, unless a table of occupancy asks for it: buses so full, with noise",
    "delay": "dropped, unless a table of delays asks for it: clamped; its mean, with noise",
    "speed": "bounded: clamped; its mean is published, with noise",
    "tap_on_date": "published: as the service day of a cell, with noise",
    "tap_on_time": "published: as the slot of a cell, with noise",
    "tap_on_location": "published: as the location of a cell, with noise",
    "tap_off_date": "bounded: goes with the time of the tap-off",
    "tap_off_time": "published: as the slot of a cell, with noise",
    "tap_off_location": "published: as the location of a cell, with noise",
}
