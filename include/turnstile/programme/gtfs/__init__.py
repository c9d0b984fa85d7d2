"""The public timetable of a programme, from its GTFS feed."""
