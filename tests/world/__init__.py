"""Tests beside real controllers and gateways of other projects: `make world-test`."""
