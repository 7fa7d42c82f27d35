"""The controllers and gateways that stand beside modelhooks in a cluster, real ones: `make world-test`."""
