#!/usr/bin/env bash
# Once a day: what Airflow's database and the task logs hold is forgotten after KEEP_DAYS days. The
# ledger, the zones and the journal of runs are not touched.
set -euo pipefail
trap "exit 0" TERM INT

: "${KEEP_DAYS:?how many days are kept}"
logs=${AIRFLOW__LOGGING__BASE_LOG_FOLDER:?where the task logs lie}
while true; do
    before=$(date --utc --date "-$KEEP_DAYS days" +%Y-%m-%dT00:00:00+00:00)
    airflow db clean --clean-before-timestamp "$before" --skip-archive --yes
    find "$logs" -type f -mtime "+$KEEP_DAYS" -delete
    find "$logs" -mindepth 1 -type d -empty -mtime +1 -delete
    sleep 1d &
    wait $!  # a signal ends the wait, not the day
done
