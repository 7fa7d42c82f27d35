"""Stand-ins for the model servers of kwok's pods, at the pods' addresses. They serve only metrics."""

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


class ModelServer(ThreadingHTTPServer):
    """A server that reports a number of waiting requests as vLLM does; a context manager that stops it."""

    def __init__(self, address: str) -> None:
        super().__init__((address, PORT), _Metrics)
        self.waiting = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Metrics(BaseHTTPRequestHandler):
    server: ModelServer

    def do_GET(self) -> None:
        body = _METRICS.format(self.server.waiting).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""
