// What Argo CD says about the health of objects, read as JSON from standard input: one line of JSON for each. The
// argument is its ConfigMap as JSON, whose customizations Argo CD's settings read as they do in a cluster.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/argo-cd/v3/util/settings"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"
)

type verdict struct {
	Health string `json:"health"`
	Text   string `json:"text"`
	Error  string `json:"error,omitempty"`
}

func main() {
	overrides, err := customizations(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var raw json.RawMessage
		if err := in.Decode(&raw); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			log.Fatal(err)
		}
		if err := out.Encode(judge(object, overrides)); err != nil {
			log.Fatal(err)
		}
	}
}

// customizations returns what Argo CD reads from a file with its ConfigMap.
func customizations(file string) (lua.ResourceHealthOverrides, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	configMap := &corev1.ConfigMap{}
	if err := json.Unmarshal(text, configMap); err != nil {
		return nil, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "argocd-secret", Namespace: configMap.Namespace, Labels: configMap.Labels},
		Data:       map[string][]byte{"server.secretkey": []byte("none"), "admin.password": []byte("none")},
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	manager := settings.NewSettingsManager(ctx, fake.NewClientset(configMap, secret), configMap.Namespace)
	overrides, err := manager.GetResourceOverrides()
	return overrides, err
}

func judge(object *unstructured.Unstructured, overrides lua.ResourceHealthOverrides) verdict {
	status, err := health.GetResourceHealth(object, overrides)
	if err != nil {
		return verdict{Error: err.Error()}
	}
	if status == nil {
		return verdict{Error: "no health check"}
	}
	return verdict{Health: string(status.Status), Text: status.Message}
}
