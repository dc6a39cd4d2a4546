"""A credential plugin: hands out what a kubeconfig holds, for a few seconds, and notes in a file that it was asked.

python credential_plugin.py KUBECONFIG NOTES
"""

import base64
import datetime
import json
import sys
from pathlib import Path

import yaml

VALID_S = 5
"""Credentials that live so shortly are renewed after half of their life."""


def main(kubeconfig: Path, notes: Path) -> None:
    """Print an ExecCredential."""
    user = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]
    now = datetime.datetime.now(datetime.UTC)
    status = {"expirationTimestamp": f"{now + datetime.timedelta(seconds=VALID_S):%Y-%m-%dT%H:%M:%SZ}"}
    if "token" in user:
        status["token"] = user["token"]
    else:
        status["clientCertificateData"] = base64.b64decode(user["client-certificate-data"]).decode()
        status["clientKeyData"] = base64.b64decode(user["client-key-data"]).decode()
    with notes.open("a") as file:
        file.write("asked\n")
    print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
