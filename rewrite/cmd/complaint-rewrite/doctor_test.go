package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/rewrite"
)

// Doctor runs all checks, and names what is wrong with its fix.
func TestDoctor(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	namespace, where := temporaltest.New(t)
	refuse := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refuse {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, `{"data": [{"id": "m"}]}`)
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"TEMPORAL_ADDRESS": where.Address, "TEMPORAL_NAMESPACE": where.Name, "REDACTION_KEY": "a key of this test, long enough",
		"OPENAI_BASE_URL": server.URL + "/v1", "OPENAI_API_KEY": "a key of this test", "ROUTE_MODEL": "m",
	} {
		b.env["COMPLAINT_REWRITE_"+name] = value
	}
	for _, text := range []string{"you never clean", "you never cook"} {
		b.must(t, nil, "enqueue", "--file", writeJobs(t, with("text", text)))
	}
	for _, w := range rewrite.Workers() {
		action := &client.ScheduleWorkflowAction{ID: string(w), Workflow: string(w), TaskQueue: "none"}
		testkit.NoError(t, namespace.Schedule(t.Context(), time.Hour, false, action))
	}
	examine := func(want ...string) {
		t.Helper()
		out, err := b.run(t, "doctor", "--json")
		var results []operator.CheckResult
		testkit.NoError(t, json.Unmarshal([]byte(out), &results))
		var failed []string
		for _, r := range results {
			if r.Status == operator.StatusFail {
				failed = append(failed, r.Check)
			}
			if r.Status == operator.StatusWarn || (r.Status != operator.StatusOK) != (r.Fix != "") {
				t.Errorf("%+v", r)
			}
		}
		if len(results) != 8 || !slices.Equal(failed, want) || (err != nil) != (want != nil) {
			t.Errorf("%d results, %v failed, %v; want %v", len(results), failed, err, want)
		}
	}
	examine()

	conn := b.db.Conn(t) // an expired message does not hide a wrong keyset
	if _, err := conn.Exec(t.Context(), `update complaint_rewrite.messages set stored_at = now() - interval '2 days', expires_at = now() - interval '1 day'
		where 'message:' || id = (select text_ref from complaint_rewrite.requests order by created_at desc limit 1)`); err != nil {
		t.Fatal(err)
	}
	refuse, b.env["COMPLAINT_REWRITE_KEYSET"] = true, b.must(t, nil, "keyset")
	examine("database", "openai")
}
