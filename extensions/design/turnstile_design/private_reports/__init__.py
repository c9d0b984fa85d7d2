"""What an authority sees of its own weeks: exact, so it stays in the private zone."""
