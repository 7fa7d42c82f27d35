"""Stand-ins for servers of kwok's pods, at the pods' addresses. They serve only a page of metrics."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = 8000
_METRICS = """\
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{model_name="chat"}} {}
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{{model_name="chat"}} 0.1
"""


class MetricsServer(ThreadingHTTPServer):
    """A server that answers every GET with a page of metrics; a context manager that stops it."""

    daemon_threads = True

    def __init__(self, address: str, port: int) -> None:
        super().__init__((address, port), _Metrics)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    page = ""

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class ModelServer(MetricsServer):
    """A server that reports a number of waiting requests as vLLM does."""

    def __init__(self, address: str) -> None:
        super().__init__(address, PORT)
        self.waiting = 0

    @property
    def waiting(self) -> int:
        return self._waiting

    @waiting.setter
    def waiting(self, number: int) -> None:
        self._waiting = number
        self.page = _METRICS.format(number)


class _Metrics(BaseHTTPRequestHandler):
    server: MetricsServer

    def do_GET(self) -> None:
        body = self.server.page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""
