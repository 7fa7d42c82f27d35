"""`make bench`: ratios to a bare ASGI echo, same bytes, same run, one core for the server and one for the load."""
