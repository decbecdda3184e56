package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// A scaledObject has the fields of KEDA's resource that the manifest uses. The module of
// KEDA needs the whole client of Kubernetes, which takes minutes to build.
type scaledObject struct {
	APIVersion, Kind string
	Metadata         struct{ Name, Namespace string }
	Spec             struct {
		ScaleTargetRef                   struct{ Name string }
		MinReplicaCount, MaxReplicaCount int
		Triggers                         []struct {
			Type     string
			Metadata struct{ ServerAddress, Query, Threshold string }
		}
	}
}

// The component of KEDA scales the Deployment of stage llm, never to 0. Its query demands no
// workers while a circuit breaker is open.
func TestScalerIgnoresALimitedQueue(t *testing.T) {
	objects := build(t, "production")
	if len(objects.scaled) != 1 {
		t.Fatalf("there are %d scaled objects", len(objects.scaled))
	}
	scaled := objects.scaled[0]
	if target := scaled.Spec.ScaleTargetRef.Name; target != "criticizer-llm" || scaled.Spec.MinReplicaCount < 1 {
		t.Errorf("it scales %s from %d, want criticizer-llm from 1", target, scaled.Spec.MinReplicaCount)
	}
	var base scaledObject
	if err := yaml.UnmarshalStrict(read(t, manifests+"/components/keda/scaledobject.yaml"), &base); err != nil || base.Spec.MinReplicaCount < 1 {
		t.Errorf("the component scales from %d, %v", base.Spec.MinReplicaCount, err)
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("SKIPPED: promtool is not installed (Debian package prometheus)")
	}
	query := scaled.Spec.Triggers[0].Metadata.Query
	for name, tt := range map[string]struct{ open, want int }{
		"closed": {0, 40}, "open": {1, 0},
	} {
		series := ""
		for metric, value := range map[string]int{"queue_depth": 40, "breaker_open": tt.open} {
			for _, worker := range []string{"a", "b"} {
				series += fmt.Sprintf("      - {series: 'criticizer_%s{queue=\"criticizer-llm\",instance=%q}', values: \"%dx5\"}\n", metric, worker, value)
			}
		}
		test := fmt.Sprintf("tests:\n  - interval: 1m\n    input_series:\n%s    promql_expr_test:\n      - {expr: %q, eval_time: 5m, exp_samples: [{labels: \"{}\", value: %d}]}\n", series, query, tt.want)
		file := filepath.Join(t.TempDir(), "query.yml")
		if err := os.WriteFile(file, []byte(test), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", file).CombinedOutput(); err != nil {
			t.Errorf("%s: promtool: %v\n%s", name, err, out)
		}
	}
}
