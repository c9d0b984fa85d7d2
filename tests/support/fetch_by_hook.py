"""Fetches a week by Airflow's own hooks, as the task does: `fetch_by_hook.py ADDRESS LANDING`.

Run by a Python that has the providers; connections come from `AIRFLOW_CONN_*`.
"""

import dataclasses
import sys
from pathlib import Path
from types import SimpleNamespace

from landing_servers import server_of

from turnstile.pipeline.landing.fetching import address_of, fetch_new
from turnstile.programme.loading import load_programme
from turnstile.service_calendar import parse_period
from turnstile.settings import Settings

given, landing = sys.argv[1:]
settings = dataclasses.replace(Settings.from_environment(), landing_from=f"opal={given}")
address = address_of("opal", settings)
assert address is not None
programme = load_programme("opal", settings.include)
source = dataclasses.replace(programme.source, marker="opal/{week}.done")
programme = dataclasses.replace(programme, source=source)
nothing = SimpleNamespace(entries=list)  # no week was deleted
for name in fetch_new(
    programme, parse_period("2016-W30"), Path(landing), nothing, (address, server_of(address))
):
    sys.stdout.write(f"fetched {name}\n")
