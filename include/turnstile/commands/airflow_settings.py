"""Settings of Airflow that undo what Turnstile relies on, read as its own processes read them.

Without Airflow, whose commands write a file of settings where there is none.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from turnstile.errors import InputError

_A_PLUGIN = "privacy_page.py"
_HOME, _FILE = "AIRFLOW_HOME", "AIRFLOW_CONFIG"
_METRICS = ("statsd_on", "statsd_datadog_enabled", "otel_on")
_DURATIONS = "how long count and draw took is sent, which depends on how many rows there were"
_ON = frozenset({"true", "t", "1"})


class AirflowSettings(NamedTuple):
    """Options as an environment and its `airflow.cfg` state them.

    Args:
        env: of this process.
        parser: of the file; None if there is none.
    """

    env: Mapping[str, str]
    parser: configparser.RawConfigParser | None

    @classmethod
    def of_process(cls) -> AirflowSettings:
        """Read the environment, and the file of its Airflow if it has any setting of one.

        Raises:
            InputError: the file is none of settings.
            OSError: it may not be read.
        """
        env = os.environ  # noqa: TID251 - not ours
        path = Path(_expanded(env.get(_FILE) or f"{_home(env)}/airflow.cfg"))
        is_set = any(name.startswith("AIRFLOW__") or name in {_HOME, _FILE} for name in env)
        if not is_set or not path.exists():  # one in the default place may be another Airflow's
            return cls(env, None)
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(path.read_text(encoding="utf-8"))
        except (configparser.Error, UnicodeDecodeError):
            rule = "is no file of settings: Airflow cannot read it either"
            raise InputError(where=str(path), field="settings of Airflow", rule=rule) from None
        return cls(env, parser)

    @property
    def is_any(self) -> bool:
        """Whether anything states one, so that silence means something."""
        return self.parser is not None or any(name.startswith("AIRFLOW__") for name in self.env)

    def option(self, section: str, name: str) -> str | None:
        """Return an option; None where it is not stated, or where a command gives it."""
        value = self.env.get(variable := f"AIRFLOW__{section}__{name}".upper())
        if value is None and not {f"{variable}_CMD", f"{variable}_SECRET"} & self.env.keys():
            value = self.parser.get(section, name, fallback=None) if self.parser else None
        return None if value is None else value.partition("#")[0].strip()

    def harms(self, plugins: Path) -> Iterator[str]:
        """Yield which option does harm, and which.

        Args:
            plugins: our own folder of them.
        """
        if self.option("core", "fernet_key") == "":
            yield (
                "[core] fernet_key is empty: passwords of connections lie open in Airflow's "
                "database; set one, then save each connection and variable again"
            )
        if self._is_on("core", "simple_auth_manager_all_admins") and self._is_simple:
            yield (
                "[core] simple_auth_manager_all_admins is on: everybody is an administrator "
                "without a name, so that nobody can be told to have approved"
            )
        sent = [name for name in _METRICS if self._is_on("metrics", name)]
        if sent and not self.option("metrics", "metrics_allow_list"):
            yield (
                f"[metrics] {sent[0]} without metrics_allow_list: {_DURATIONS}; take the list of "
                "docker-compose.yaml"
            )
        if self._is_on("traces", "otel_on"):
            yield f"[traces] otel_on: {_DURATIONS}"
        folder = self.option("core", "plugins_folder") or f"{_home(self.env)}/plugins"
        is_stated = self.parser is not None or self.option("core", "plugins_folder") is not None
        if is_stated and not Path(_expanded(folder), _A_PLUGIN).is_file():
            yield f"[core] plugins_folder, {folder}, lacks {_A_PLUGIN}: release DAGs need {plugins}"

    @property
    def _is_simple(self) -> bool:
        """Whether Airflow's own manager of logins is in use, as it is by default."""
        return "Simple" in (self.option("core", "auth_manager") or "Simple")

    def _is_on(self, section: str, name: str) -> bool:
        return (self.option(section, name) or "").lower() in _ON


def _home(env: Mapping[str, str]) -> str:
    """Return where an Airflow of this environment has its file and, by default, its plugins."""
    return env.get(_HOME) or "~/airflow"


def _expanded(path: str) -> str:
    """Return a path as Airflow reads it; one of a login that is unknown stays as it is."""
    return os.path.expanduser(os.path.expandvars(path))  # noqa: PTH111 - raises nothing
