if since 0.16; then
  server+=(--disable-access-log-for-endpoints /health,/metrics,/ping)
else
  server+=(--disable-uvicorn-access-log)
fi
