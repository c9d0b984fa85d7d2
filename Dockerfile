# One image for every service of docker-compose.yaml.
FROM python:3.11-slim-bookworm

ENV AIRFLOW_HOME=/opt/airflow \
    OPENBLAS_NUM_THREADS=1 \
    PATH=/opt/turnstile/.venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

RUN useradd --uid 50000 --create-home airflow \
    && mkdir -p /opt/airflow/logs /opt/turnstile /var/lib/turnstile-witness \
        /var/lib/turnstile/public /var/lib/turnstile/embargoed /var/lib/turnstile/operations \
    && chown -R airflow /opt/airflow /var/lib/turnstile /var/lib/turnstile-witness

WORKDIR /opt/turnstile

# The lock is complete and has every hash: nothing else is resolved (docs/adr/0002).
COPY requirements.lock ./
RUN python -m venv .venv \
    && .venv/bin/pip install --no-cache-dir --no-deps --require-hashes -r requirements.lock

COPY pyproject.toml ./
COPY include/ include/
COPY dags/ dags/
COPY plugins/ plugins/
COPY docker/ docker/
RUN .venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation -e . \
    && .venv/bin/python -m compileall -q include dags plugins

USER airflow
CMD ["airflow", "version"]
