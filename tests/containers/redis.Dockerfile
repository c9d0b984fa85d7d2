# Stand-in for redis:7.2-bookworm, of Debian's packages: runs the command that is given.
FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends redis-server \
    && mkdir /data && chown redis /data
WORKDIR /data
USER redis
