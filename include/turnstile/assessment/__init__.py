"""Every release attacks itself before it is published: attacks, audits, gates, the lab, the report.

Works from published or embargoed bytes, declared parameters and synthetic data. It never sees a
raw row or an exact count: nothing here can import counting, sources or the private zone.
"""
