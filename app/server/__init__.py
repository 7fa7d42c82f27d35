"""The process around the application: transport limits, TLS with reload, graceful stop, logs. It knows no kind."""
