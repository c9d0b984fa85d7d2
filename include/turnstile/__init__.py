"""Turnstile: recurring, differentially private releases of public-transport data."""
