module modelhooks/tests/e2e/tools/traefik

go 1.26.0

require (
	github.com/go-acme/lego/v4 v4.27.0
	github.com/traefik/traefik/v3 v3.5.4
)
