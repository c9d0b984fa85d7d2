"""Attacks, audits and gates: from published or embargoed bytes and declared parameters alone."""
