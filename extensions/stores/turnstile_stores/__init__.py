"""Zones in object storage: buckets, and the folders that steps work on as copies of them."""
