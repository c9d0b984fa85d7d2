"""Estimates of trips: tap-ons and tap-offs of every mode, as numbers and as tables."""
