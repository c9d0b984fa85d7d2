"""Estimates of flows between regions and zones."""
