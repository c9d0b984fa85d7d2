"""Gates: what may stop a publication."""
