"""Airflow DAG `release_itms`: the weekly release of `include/programmes/itms.yaml`."""

from release_dag import release_dag

dag = release_dag("itms", file=__file__)
