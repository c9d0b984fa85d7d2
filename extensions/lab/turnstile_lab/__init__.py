"""Attacks on tables of others, and the laboratory of bad releases."""
