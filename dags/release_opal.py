"""Airflow DAG `release_opal`: the weekly release of `include/programmes/opal.yaml`."""

from release_dag import release_dag

dag = release_dag("opal", file=__file__)
