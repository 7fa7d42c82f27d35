// What a gateway asks an endpoint picker: `extproc ADDRESS pick BODY [HEADER=VALUE...]` prints the headers that the
// picker sets, `extproc ADDRESS health SERVICE` the status that a kubelet's probe reads.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	context, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	answer, err := ask(context, os.Args[1], os.Args[2], os.Args[3:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func ask(context context.Context, address, question string, arguments []string) (map[string]string, error) {
	if question == "health" {
		connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		request := &grpc_health_v1.HealthCheckRequest{Service: arguments[0]}
		answer, err := grpc_health_v1.NewHealthClient(connection).Check(context, request)
		if err != nil {
			return nil, err
		}
		return map[string]string{"status": answer.Status.String()}, nil
	}
	// Gateways do not verify the picker's certificate either: it signs one itself.
	secure := credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(secure))
	if err != nil {
		return nil, err
	}
	stream, err := extproc.NewExternalProcessorClient(connection).Process(context)
	if err != nil {
		return nil, err
	}
	headers := &core.HeaderMap{}
	for _, each := range append([]string{":method=POST", ":path=/v1/chat/completions", "content-type=application/json"}, arguments[1:]...) {
		name, value, _ := strings.Cut(each, "=")
		headers.Headers = append(headers.Headers, &core.HeaderValue{Key: name, RawValue: []byte(value)})
	}
	for _, request := range []*extproc.ProcessingRequest{
		{Request: &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: &extproc.HttpHeaders{Headers: headers}}},
		{Request: &extproc.ProcessingRequest_RequestBody{
			RequestBody: &extproc.HttpBody{Body: []byte(arguments[0]), EndOfStream: true},
		}},
	} {
		if err := stream.Send(request); err != nil {
			return nil, err
		}
	}
	answer, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	if refused := answer.GetImmediateResponse(); refused != nil {
		return map[string]string{"status": refused.GetStatus().GetCode().String()}, nil
	}
	found := map[string]string{}
	for _, option := range answer.GetRequestHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
		found[option.Header.Key] = option.Header.Value + string(option.Header.RawValue)
	}
	return found, nil
}
