"""Feeds to canonical rows: files of the landing zone, the layouts understood, the sample makers."""
