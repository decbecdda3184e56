package workflows_test

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// TestContract checks the names by which the programs of the triggers start workflows: they
// do not link the functions.
func TestContract(t *testing.T) {
	t.Parallel()
	for want, function := range map[string]any{contract.ReviewChangelist: workflows.ReviewChangelist, contract.SettleShelf: workflows.SettleShelf} {
		if name := runtime.FuncForPC(reflect.ValueOf(function).Pointer()).Name(); !strings.HasSuffix(name, "."+want) {
			t.Errorf("workflow %s is named %s", name, want)
		}
	}
	for queue, want := range map[string]string{contract.QueueBookkeeping: "workflows", contract.QueueLLM: "llm", contract.QueueFetch: "fetch"} {
		if got := contract.StageOf(queue); got != want {
			t.Errorf("the stage of %s is %q, want %q", queue, got, want)
		}
	}
}
