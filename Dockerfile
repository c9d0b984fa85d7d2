# One image for every service of docker-compose.yaml: what runs, without tests and lint.
# In production pin the base by digest: --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:...
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
FROM ${PYTHON_IMAGE} AS build

ENV PYTHONDONTWRITEBYTECODE=1
WORKDIR /opt/turnstile

# The lock is complete and has every hash: nothing else is resolved (docs/adr/0002). An operator's own
# pip.conf is there for this step alone.
COPY requirements-runtime.lock ./
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf python -m venv .venv \
    && .venv/bin/pip install --no-cache-dir --no-deps --require-hashes -r requirements-runtime.lock

COPY pyproject.toml ./
COPY include/ include/
COPY extensions/ extensions/
COPY dags/ dags/
COPY plugins/ plugins/
COPY docker/ docker/
# Compiled here: no process of the image writes beside the code.
RUN .venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation -e . \
        $(printf -- '-e %s ' extensions/*) \
    && .venv/bin/python -m compileall -q include extensions dags plugins

FROM ${PYTHON_IMAGE}

ENV AIRFLOW_HOME=/opt/airflow \
    PATH=/opt/turnstile/.venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# A volume takes its owner from the image's folder.
RUN useradd --uid 50000 --create-home airflow \
    && mkdir -p /opt/airflow/logs /var/lib/turnstile-keys /var/lib/turnstile-witness \
        /var/lib/turnstile/landing /var/lib/turnstile/private/failures \
        /var/lib/turnstile/public /var/lib/turnstile/embargoed /var/lib/turnstile/operations \
    && chown -R airflow /opt/airflow /var/lib/turnstile /var/lib/turnstile-* \
    && chmod -R 0700 /var/lib/turnstile/landing /var/lib/turnstile/private /var/lib/turnstile-keys

COPY --from=build /opt/turnstile /opt/turnstile
WORKDIR /opt/turnstile
USER airflow
CMD ["airflow", "version"]
