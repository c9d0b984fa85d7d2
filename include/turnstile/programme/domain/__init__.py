"""The public cells of a programme: read from files, built from public sources, chosen."""
