"""The feeds that are understood, one module each: its columns, its SQL, its made-up records."""
