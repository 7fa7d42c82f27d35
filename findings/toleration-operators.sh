#!/usr/bin/env bash
# k8s.io/kubernetes v1.37.2, the validation of pods in the API server, run from its Go module.
#
# A toleration with the operator Gt or Lt is refused unless the feature gate TaintTolerationComparisonOperators is on, and
# the message lists the refused operator among the supported values. So the reader looks for another spelling of a value
# that is spelt right, and nothing names the gate.
# Source: validateTolerations in pkg/apis/core/validation/validation.go has one list of values for both cases.
# Seen: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
version=1.37.2 parts=v0.37.2
go mod init finding > /dev/null 2>&1
source=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
# Its own parts are folders beside it there, which its module does not have; they are published as modules.
{
	sed -e 's/^module .*/module finding/' -e "s|^\(	k8s.io/[a-z-]* =>\) ./staging/src/\(k8s.io/[a-z-]*\)|\1 \2 $parts|" "$source/go.mod"
	echo "require k8s.io/kubernetes v$version"
} > go.mod
cat > main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/validation"
)

func main() {
	tolerations := []core.Toleration{{Key: "cores", Operator: "Gt", Value: "5"}}
	for _, err := range validation.ValidateTolerations(tolerations, field.NewPath("tolerations"), validation.PodValidationOptions{}) {
		fmt.Println(err.ErrorBody())
	}
}
GO
seen=$(GOFLAGS=-mod=mod go run .)
echo "k8s.io/kubernetes v$version: $seen"
[ "$seen" = 'Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"' ]
