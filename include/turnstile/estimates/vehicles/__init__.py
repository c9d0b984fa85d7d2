"""Estimates of buses: how many, how fast, and what is not known of them."""
