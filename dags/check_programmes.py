"""No DAG: an import error that names the programme files which have no Airflow DAG, being broken.

A file of its own, because Airflow takes down every DAG of a file that has an import error.
"""

from release_dag import broken_programmes

from turnstile.errors import TurnstileError

if broken := broken_programmes(__file__):
    raise TurnstileError(broken)
