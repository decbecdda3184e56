package e2e

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/criticizer/criticizer/review"
)

// A worker takes a rotated key without a restart. If the new file is unusable, the old
// key stays in use (security 9.3.5). The log has the name of the secret, never its value
// (security 9.3.3).
func TestKeyIsRotatedWithoutARestart(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(4)...)) // the answers about one change are asked for once
	var validKey atomic.Value
	validKey.Store("first-key")
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+validKey.Load().(string) {
			http.Error(w, `{"error":{"message":"no"}}`, http.StatusUnauthorized)
			return
		}
		in.model.ServeHTTP(w, r)
	}))
	t.Cleanup(endpoint.Close)
	in.write("key", 0o600, "first-key\n")
	commands := in.env // starter does not read the key
	in.env = append(slices.Clone(commands), "CRITICIZER_LLM_BASE_URL="+endpoint.URL+"/v1", "OPENAI_API_KEY=", "OPENAI_API_KEY_FILE="+in.path("key"))
	in.startWorker()
	in.env = commands
	waitForLog := func(text string) {
		t.Helper()
		waitFor(t, text+" in the log", func() bool { return strings.Contains(in.log.String(), text) })
	}
	mustReview := func(changelist string) {
		t.Helper()
		if a := in.mustStart("--wait", changelist); a.State != review.JobSucceeded {
			t.Errorf("changelist %s: %+v", changelist, a)
		}
	}
	mustReview("1")

	in.write("key", 0o600, "")
	waitForLog(`"secret not reloaded: the old one stays in use"`) // the worker polls the file
	mustReview("2")

	in.write("key", 0o600, "second-key\nfirst-key\n")
	waitForLog(`"secret reloaded","secret":"OPENAI_API_KEY"`)
	mustReview("3")
	waitForLog(`"model key in use","key":"old"`)
	validKey.Store("second-key")
	mustReview("4")
	waitForLog(`"model key in use","key":"new"`)
	if strings.Contains(in.log.String(), "second-key") || in.countRows("dead_letters", "true") != 0 {
		t.Errorf("the log shows the key, or a review was dead-lettered:\n%s", in.log)
	}
}
