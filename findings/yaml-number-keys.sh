#!/usr/bin/env bash
# sigs.k8s.io/yaml v1.6.0 (kubectl's YAML reader, over go.yaml.in/yaml/v2), read from its Go module.
#
# A key that is a number becomes a field name by way of a 32-bit float where it was written with a point or an exponent:
# two keys that differ in YAML become one field, and the later value replaces the earlier one without an error. A whole
# number keeps its digits. So a map by size or by port, written as 16777216.0 and 16777217.0, loses an entry.
# Source: convertToJSONableObject in yaml.go formats keys with strconv.FormatFloat(key, 'g', -1, 32).
# Seen: {"1.6777216e+07":"one of two","16777217":"a whole number"}, in either order of the two values.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > go.mod <<'MOD'
module finding

go 1.23

require sigs.k8s.io/yaml v1.6.0
MOD
cat > main.go <<'GO'
package main

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

func main() {
	out, err := yaml.YAMLToJSON([]byte("16777216.0: one of two\n16777217.0: one of two\n16777217: a whole number\n"))
	if err != nil {
		panic(err)
	}
	fmt.Println(string(out))
}
GO
GOFLAGS=-mod=mod go mod tidy > /dev/null 2>&1
seen=$(go run .)
echo "sigs.k8s.io/yaml v1.6.0: $seen"
[ "$seen" = '{"1.6777216e+07":"one of two","16777217":"a whole number"}' ]
