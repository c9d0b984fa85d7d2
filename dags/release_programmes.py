"""Airflow DAGs of every programme of `include/programmes` that has no DAG file of its own."""

from release_dag import dags_without_a_file

globals().update(dags_without_a_file(__file__))
