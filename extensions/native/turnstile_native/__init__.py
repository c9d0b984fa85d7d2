"""A native Airflow for one machine: started, asked for weeks, watched and stopped.

Nothing here imports Airflow: it is started as processes and spoken to over its REST API.
"""
