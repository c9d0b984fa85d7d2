"""Servers that an authority may keep landing files at: a real one of each kind, of its own.

The SSH server is Debian's, Azurite is npm's, those of S3 and Google are emulators in Python; the
clients that put files there are of the providers' environment (`make env-providers`).
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from made_homes import ROOT
from ports import free_port

PYTHON = ROOT / ".venv-providers/bin/python"
AZURITE = shutil.which("azurite-blob") or str(
    ROOT / ".venv-providers/node_modules/.bin/azurite-blob"
)
ACCOUNT, KEY = (
    "devstoreaccount1",
    (  # Azurite's own, which its documentation names
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    ),
)
Put = Callable[[dict[str, bytes]], None]


@contextmanager
def _served(*command: str, port: int, folder: Path) -> Iterator[None]:
    """A server of its own, until the block ends."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)  # noqa: S603
        try:
            for _ in range(300):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert process.poll() is None, (folder / "server.log").read_text()
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)


@contextmanager
def sftp(folder: Path) -> Iterator[tuple[str, dict[str, str], Put]]:
    server = shutil.which("sshd", path="/usr/sbin:/usr/bin")
    if server is None:
        pytest.skip("OpenSSH's server is not here: apt-get install openssh-server")
    Path("/run/sshd").mkdir(exist_ok=True)
    port, out = free_port(), folder / "out/2016-W30"
    for key in ("host", "user"):
        subprocess.run(  # noqa: S603
            ["/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True
        )
    shutil.copy(folder / "user.pub", folder / "authorized")
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nStrictModes no\n"
        f"AuthorizedKeysFile {folder}/authorized\nPidFile {folder}/pid\nUsePAM no\n"
        "PermitRootLogin yes\nSubsystem sftp internal-sftp\n"
    )

    def put(files: dict[str, bytes]) -> None:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (out / name).write_bytes(content)

    extra = {"key_file": str(folder / "user"), "no_host_key_check": True}
    given = {"conn_type": "sftp", "host": "127.0.0.1", "port": port, "login": _me(), "extra": extra}
    with _served(server, "-D", "-e", "-f", str(folder / "config"), port=port, folder=folder):
        yield f"sftp://authority{folder}/out/{{week}}", {"AUTHORITY": json.dumps(given)}, put


def _me() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


def _by(code: str, environment: dict[str, str]) -> Put:
    """Put objects by the client of the providers' environment."""

    def put(files: dict[str, bytes]) -> None:
        named = json.dumps({name: content.decode() for name, content in files.items()})
        subprocess.run(  # noqa: S603
            [PYTHON, "-c", code],
            input=named,
            text=True,
            check=True,
            env=clean_environment() | environment,
        )

    return put


def clean_environment() -> dict[str, str]:
    """What a process of the providers' environment needs to start."""
    return {"PATH": "/usr/bin:/bin", "HOME": "/tmp"}  # noqa: S108 - nothing is written there


@contextmanager
def s3(folder: Path) -> Iterator[tuple[str, dict[str, str], Put]]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    put = _by(
        "import boto3,json,sys\n"
        f"c=boto3.client('s3',endpoint_url='{url}',region_name='us-east-1',"
        "aws_access_key_id='a',aws_secret_access_key='b')\n"
        "c.create_bucket(Bucket='city')\n"
        "for n,t in json.load(sys.stdin).items():"
        " c.put_object(Bucket='city',Key='out/2016-W30/'+n,Body=t.encode())\n",
        {},
    )
    extra = {"endpoint_url": url, "region_name": "us-east-1"}
    given = {"conn_type": "aws", "login": "a", "password": "b", "extra": extra}
    server = (str(Path(sys.executable).with_name("moto_server")), "-p", str(port))
    with _served(*server, port=port, folder=folder):
        yield "s3://authority/city/out/{week}", {"AUTHORITY": json.dumps(given)}, put


@contextmanager
def gs(folder: Path) -> Iterator[tuple[str, dict[str, str], Put]]:
    port = free_port()
    host = {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}"}
    put = _by(
        "import json,sys\nfrom google.auth.credentials import AnonymousCredentials as A\n"
        "from google.cloud import storage\nc=storage.Client(project='p',credentials=A())\n"
        "b=c.bucket('city')\n"
        "b.exists() or c.create_bucket('city')\n"
        "for n,t in json.load(sys.stdin).items():"
        " b.blob('out/2016-W30/'+n).upload_from_string(t)\n",
        host,
    )
    given = {"conn_type": "google_cloud_platform", "extra": {"is_anonymous": True, "project": "p"}}
    server = ("gcp-storage-emulator", "start", "--host=127.0.0.1", f"--port={port}", "--in-memory")
    command = (str(PYTHON.with_name(server[0])), *server[1:])
    with _served(*command, port=port, folder=folder):
        yield "gs://authority/city/out/{week}", {"AUTHORITY": json.dumps(given)} | host, put


@contextmanager
def wasb(folder: Path) -> Iterator[tuple[str, dict[str, str], Put]]:
    if not Path(AZURITE).exists():
        pytest.skip("Azurite is not here: npm install azurite")
    port = free_port()
    text = (
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
        f"BlobEndpoint=http://127.0.0.1:{port}/{ACCOUNT};"
    )
    put = _by(
        "import json,sys\nfrom azure.storage.blob import BlobServiceClient as B\n"
        f"c=B.from_connection_string({text!r}).get_container_client('city')\n"
        "c.exists() or c.create_container()\n"
        "for n,t in json.load(sys.stdin).items():"
        " c.upload_blob('out/2016-W30/'+n,t.encode(),overwrite=True)\n",
        {},
    )
    given = {"conn_type": "wasb", "extra": {"connection_string": text}}
    command = (AZURITE, "--blobPort", str(port), "--location", str(folder), "--skipApiVersionCheck")
    with _served(*command, port=port, folder=folder):
        yield "wasb://authority/city/out/{week}", {"AUTHORITY": json.dumps(given)}, put


SERVERS = {"sftp": sftp, "s3": s3, "gs": gs, "wasb": wasb}
