"""Files that every package carries as they are; they run with Python alone."""
