"""`make bench`: throughput relative to a bare ASGI echo with the same bytes, in the same run, on the same core."""
