"""Watching releases: what runs did, what people must know, and what the budget page shows.

Reads the ledger, the public zone and the embargoed zone; never the private zone. Knows no Airflow:
`plugins/` and `dags/` bring its words to people.
"""
