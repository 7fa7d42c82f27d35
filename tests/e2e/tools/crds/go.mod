module modelhooks/tests/e2e/tools/crds

go 1.26.0

// Nothing is compiled from these: their folders in the module cache hold the
// CustomResourceDefinitions of the child kinds that are optional.
require (
	github.com/envoyproxy/ai-gateway v1.0.0
	github.com/envoyproxy/gateway v1.9.1
	github.com/kedacore/keda/v2 v2.18.3
	github.com/llm-d/llm-d-workload-variant-autoscaler v0.7.0
	github.com/prometheus-operator/prometheus-operator v0.85.0
	istio.io/api v1.32.0
	sigs.k8s.io/gateway-api v1.4.0
	sigs.k8s.io/gateway-api-inference-extension v1.3.0
	sigs.k8s.io/lws v0.7.0
)
