// KEDA's webhook for ScaledObjects on a loopback address; KEDA's own program listens on every address.
package main

import (
	"flag"
	"log"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func main() {
	certificates := flag.String("cert-dir", "", "directory with tls.crt and tls.key")
	port := flag.Int("port", 9443, "port of the webhook")
	health := flag.String("health-probe-bind-address", "127.0.0.1:8081", "address of /readyz")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	must(kedav1alpha1.AddToScheme(scheme.Scheme))
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme.Scheme,
		Metrics:                metrics.Options{BindAddress: "0"},
		HealthProbeBindAddress: *health,
		WebhookServer:          webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *certificates}),
	})
	must(err)
	must((&kedav1alpha1.ScaledObject{}).SetupWebhookWithManager(manager, false))
	must(manager.AddReadyzCheck("webhook", manager.GetWebhookServer().StartedChecker()))
	must(manager.Start(ctrl.SetupSignalHandler()))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
