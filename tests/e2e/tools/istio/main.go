// Prints what Istio makes of Kubernetes objects on standard input for the Envoy of a Gateway: routes and clusters, as JSON.
//
//	istioroutes NAMESPACE GATEWAY < objects.yaml
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/testing"

	"istio.io/istio/pilot/pkg/features"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pilot/test/xds"
	"istio.io/istio/pkg/config/schema/gvr"
	"istio.io/istio/pkg/kube"
	"istio.io/istio/pkg/kube/kclient/clienttest"
	"istio.io/istio/pkg/log"
	"istio.io/istio/pkg/test"
)

func main() {
	options := log.DefaultOptions()
	options.OutputPaths = []string{"stderr"}
	if err := log.Configure(options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := test.Wrap(func(t test.Failer) { run(t, os.Args[1], os.Args[2]) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(t test.Failer, namespace, gateway string) {
	features.EnableGatewayAPIInferenceExtension = true
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		t.Fatal(err)
	}
	objects, configs := split(string(input))
	server := xds.NewFakeDiscoveryServer(t, xds.FakeOptions{
		KubernetesObjectString: objects,
		ConfigString:           configs,
		KubeClientModifier: func(client kube.Client) {
			clienttest.MakeCRD(t, client, gvr.InferencePool)
			applyServices(client.Kube().(*fake.Clientset))
		},
	})
	proxy := &model.Proxy{
		Type:            model.Router,
		ConfigNamespace: namespace,
		IPAddresses:     []string{"192.0.2.1"},
		Labels:          map[string]string{"gateway.networking.k8s.io/gateway-name": gateway},
		Metadata: &model.NodeMetadata{
			Namespace: namespace,
			Labels:    map[string]string{"gateway.networking.k8s.io/gateway-name": gateway},
		},
	}
	// What Istio makes for InferencePools arrives in several steps, so the translation counts once it stays the same.
	var result []byte
	for same := 0; same < 3; {
		next := translated(t, server, proxy)
		if bytes.Equal(next, result) {
			same++
		} else {
			result, same = next, 0
		}
		time.Sleep(200 * time.Millisecond)
	}
	if _, err := os.Stdout.Write(result); err != nil {
		t.Fatal(err)
	}
}

func translated(t test.Failer, server *xds.FakeDiscoveryServer, proxy *model.Proxy) []byte {
	proxy = server.SetupProxy(proxy)
	result := map[string][]json.RawMessage{"routes": {}, "clusters": {}}
	for _, each := range server.Routes(proxy) {
		result["routes"] = append(result["routes"], text(t, each))
	}
	for _, each := range server.Clusters(proxy) {
		result["clusters"] = append(result["clusters"], text(t, each))
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// Istio applies a Service for each InferencePool, and the API server in memory cannot apply what does not exist.
func applyServices(client *fake.Clientset) {
	client.PrependReactor("patch", "services", func(action testing.Action) (bool, runtime.Object, error) {
		service := &corev1.Service{}
		patch := action.(testing.PatchAction)
		if err := json.Unmarshal(patch.GetPatch(), service); err != nil {
			return true, nil, err
		}
		err := client.Tracker().Create(patch.GetResource(), service, patch.GetNamespace())
		if errors.IsAlreadyExists(err) {
			err = client.Tracker().Update(patch.GetResource(), service, patch.GetNamespace())
		}
		return true, service, err
	})
}

// Istio's own kinds are read from a store of configurations, all others from the API server.
func split(input string) (objects, configs string) {
	for _, each := range strings.Split(input, "\n---\n") {
		if strings.Contains(each, "apiVersion: networking.istio.io/") {
			configs += each + "\n---\n"
		} else {
			objects += each + "\n---\n"
		}
	}
	return objects, configs
}

func text(t test.Failer, message proto.Message) json.RawMessage {
	result, err := protojson.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return result
}
