"""A published package of ours, as an attacker reads it."""
