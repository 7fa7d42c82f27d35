"""The process around the application: transport limits, TLS with reload, graceful stop, logs. No word of any kind."""
