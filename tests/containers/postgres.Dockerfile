# Stand-in for postgres:15, of Debian's packages: initdb once, the init scripts, then listen.
FROM python:3.11-slim-bookworm
RUN mkdir -p /etc/postgresql-common \
    && echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf \
    && apt-get update && apt-get install --yes --no-install-recommends postgresql-15 \
    && mkdir -p /var/lib/postgresql/data && chown postgres /var/lib/postgresql/data
ENV PATH=/usr/lib/postgresql/15/bin:$PATH
COPY postgres-entry.sh /
STOPSIGNAL SIGINT
ENTRYPOINT ["/postgres-entry.sh"]
