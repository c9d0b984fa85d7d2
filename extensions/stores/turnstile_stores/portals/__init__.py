"""Portals: folders, S3 stores and CKAN catalogues that a release is sent to, and verified at."""
