"""Pods that expose metrics: a counter that rises by 40 in a second, and a gauge of 20.

Called by the tests of scraping.
"""

from typing import Any

PROGRAM = """
import os, time, http.server
from http.server import BaseHTTPRequestHandler as Base
class Handler(Base):
    started = time.monotonic()
    def do_GET(self):
        body = "# TYPE jobs counter\\njobs_total %f\\nqueue_depth 20\\n" % ((time.monotonic() - self.started) * 40)
        self.send_response(200 if self.path == "/stats" else 404)
        self.end_headers()
        self.wfile.write(body.encode())
    def log_message(self, *_):
        pass
http.server.HTTPServer((os.environ["POD_IP"], 8000), Handler).serve_forever()
"""
ANNOTATIONS = {"prometheus.io/scrape": "true", "prometheus.io/port": "8000", "prometheus.io/path": "/stats"}


def exposing_deployment(name: str, *, replicas: int = 1) -> dict[str, Any]:
    """A Deployment of such pods, labelled `app: NAME`, on port 8000 of their own addresses."""
    container = {"name": "c", "image": "python", "command": ["python3", "-c", PROGRAM]}
    template = {
        "metadata": {"labels": {"app": name}, "annotations": ANNOTATIONS},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}
