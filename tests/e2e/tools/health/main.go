// What kstatus (which Helm and Flux use) and Argo CD's health script say about objects, read as JSON from standard
// input: one line of JSON for each. The argument is the script. Argo CD opens these libraries for it, and no others.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	luajson "layeh.com/gopher-json"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type verdict struct {
	Kstatus string `json:"kstatus"`
	Message string `json:"message"`
	Health  string `json:"health"`
	Text    string `json:"text"`
	Error   string `json:"error,omitempty"`
}

func main() {
	script, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var raw json.RawMessage
		if err := in.Decode(&raw); err == io.EOF {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			log.Fatal(err)
		}
		if err := out.Encode(judge(object, string(script))); err != nil {
			log.Fatal(err)
		}
	}
}

func judge(object *unstructured.Unstructured, script string) verdict {
	found := verdict{}
	if result, err := status.Compute(object); err != nil {
		found.Error = err.Error()
	} else {
		found.Kstatus, found.Message = result.Status.String(), result.Message
	}
	if err := health(object, script, &found); err != nil {
		found.Error = err.Error()
	}
	return found
}

func health(object *unstructured.Unstructured, script string, found *verdict) error {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		call := lua.P{Fn: state.NewFunction(open), NRet: 0, Protect: true}
		if err := state.CallByParam(call, lua.LString(name)); err != nil {
			return err
		}
	}
	limit, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(limit)
	encoded, err := json.Marshal(object.Object)
	if err != nil {
		return err
	}
	value, err := luajson.Decode(state, encoded)
	if err != nil {
		return err
	}
	state.SetGlobal("obj", value)
	if err := state.DoString(script); err != nil {
		return err
	}
	table, isTable := state.Get(-1).(*lua.LTable)
	if !isTable {
		return fmt.Errorf("the script returned a %s", state.Get(-1).Type())
	}
	found.Health, found.Text = table.RawGetString("status").String(), table.RawGetString("message").String()
	return nil
}
