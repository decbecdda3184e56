package e2e

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/operatorservice/v1"

	"github.com/criticizer/criticizer/workflows/contract"
)

// A diagnosis is an entry of the output of criticizer doctor --json.
type diagnosis struct{ Check, Status, Detail, Fix string }

// doctor runs criticizer doctor --json with additional environment variables.
func (in *installation) doctor(env []string, args ...string) (found []diagnosis, status int) {
	in.t.Helper()
	r := in.execute(env, "criticizer", append([]string{"doctor", "--json"}, args...)...)
	in.decode(r, &found)
	return found, r.status
}

// login creates a database login that has only one role, and returns its URL.
func (in *installation) login(role string) string {
	in.t.Helper()
	name := "login_" + strings.ToLower(rand.Text())
	in.exec("create role " + name + " login password 'of-a-test' in role " + role)
	conn := in.database.Conn(in.t)
	in.t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), "drop role "+name); err != nil {
			in.t.Error(err)
		}
	})
	address, err := url.Parse(in.database.URL.Reveal())
	if err != nil {
		in.t.Fatal(err)
	}
	address.User = url.UserPassword(name, "of-a-test")
	return address.String()
}

// checks lists the names of the checks, each once.
func checks(found []diagnosis) []string {
	var names []string
	for _, d := range found {
		if !slices.Contains(names, d.Check) {
			names = append(names, d.Check)
		}
	}
	return names
}

// hasDiagnosis reports whether a check has the status and its detail names the subject.
// Every check that is not ok has a fix.
func hasDiagnosis(found []diagnosis, check, status, subject string) bool {
	return slices.ContainsFunc(found, func(d diagnosis) bool {
		return d.Check == check && d.Status == status && strings.Contains(d.Detail, subject) && (status == "ok") == (d.Fix == "")
	})
}

// hasFix reports whether the fix of a check contains a command.
func hasFix(found []diagnosis, check, command string) bool {
	return slices.ContainsFunc(found, func(d diagnosis) bool { return d.Check == check && strings.Contains(d.Fix, command) })
}

func TestDoctorOfHealthyInstallation(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	in.startWorker()
	waitFor(t, "a worker on every queue", func() bool {
		found, _ := in.doctor(nil)
		return !hasDiagnosis(found, "temporal", "warn", "polls")
	})
	found, status := in.doctor(nil)
	if status != 0 {
		t.Errorf("status %d: %+v", status, found)
	}
	want := []string{"config", "secrets", "oncall", "postgres", "temporal", "breakers", "p4", "allowlist", "model", "mail"}
	if got := checks(found); !slices.Equal(got, want) {
		t.Errorf("checks are %q, want %q", got, want)
	}
	// Warnings about the test cluster, the test's namespace, p4sim and pages.
	known := map[string]string{"oncall": "no pages", "postgres": "superuser", "temporal": "for 1d0h", "p4": "12h00m"}
	for _, d := range found {
		if d.Status != "ok" && (d.Status != "warn" || !strings.Contains(d.Detail, cmp.Or(known[d.Check], "\x00"))) {
			t.Errorf("%+v", d)
		}
	}
}

// doctor reports each fault in its own check, with a fix, and runs the other checks.
func TestDoctorReportsEachFault(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(refusing.Close)
	swarmAt := func(url string) []string {
		return []string{"CRITICIZER_SWARM_URL=" + url, "CRITICIZER_SWARM_USER=bot", "CRITICIZER_SWARM_TICKET=of-a-test"}
	}
	in.write("old-key", 0o600, "a key")
	complete, err := os.ReadFile(in.path("criticizer.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	in.write("no-journal.yaml", 0o600, regexp.MustCompile(`, journal: \{.*?\}`).ReplaceAllString(string(complete), ""))
	longAgo := time.Now().Add(-100 * 24 * time.Hour)
	if err := os.Chtimes(in.path("old-key"), longAgo, longAgo); err != nil {
		t.Fatal(err)
	}
	const unreachable = "127.0.0.1:1"
	for name, tt := range map[string]struct {
		env                    []string
		check, status, subject string
	}{
		"configuration":   {[]string{"CRITICIZER_LLM_MODEL=", "CRITICIZER_P4_TIMEOUT=-1s"}, "config", "fail", "p4.timeout"},
		"an old secret":   {[]string{"OPENAI_API_KEY_FILE=" + in.path("old-key")}, "secrets", "warn", "OPENAI_API_KEY"},
		"no database":     {[]string{"CRITICIZER_DATABASE_URL=postgres://u@" + unreachable + "/d"}, "postgres", "fail", ""},
		"a missing role":  {[]string{"CRITICIZER_DATABASE_URL=" + in.login("criticizer_fetch")}, "postgres", "fail", "criticizer_llm"},
		"no Temporal":     {[]string{"CRITICIZER_TEMPORAL_ADDRESS=" + unreachable}, "temporal", "fail", unreachable},
		"no namespace":    {[]string{"CRITICIZER_TEMPORAL_NAMESPACE=missing"}, "temporal", "fail", "missing"},
		"short retention": {nil, "temporal", "warn", "replayed"},
		"no worker":       {nil, "temporal", "warn", "workflows, fetch, redact, llm, notify, retention"},
		"no p4 command":   {[]string{"CRITICIZER_P4_COMMAND=/nowhere/p4"}, "p4", "fail", "/nowhere/p4"},
		"a missing path":  {[]string{"CRITICIZER_P4_ALLOWED_PATHS=//depot/...,//depot/missing/..."}, "p4", "warn", "//depot/missing/..."},
		"an allow list that is not applied": {
			[]string{"CRITICIZER_P4_ALLOWED_PATHS=//depot/a/..."}, "allowlist", "fail", "version 1",
		},
		"an invalid allow list": {[]string{"CRITICIZER_P4_ALLOWED_PATHS=//depot/*"}, "allowlist", "fail", `"//depot/*"`},
		"no model":              {[]string{"CRITICIZER_LLM_BASE_URL=http://" + unreachable + "/v1"}, "model", "fail", ""},
		"a short redaction key": {[]string{"CRITICIZER_REDACTION_KEY=short"}, "model", "fail", "redaction key"},
		"no mail server":        {[]string{"CRITICIZER_MAIL_SERVER=smtp+insecure://127.0.0.1:1"}, "mail", "fail", ""},
		"no journal":            {[]string{"CRITICIZER_CONFIG=" + in.path("no-journal.yaml")}, "journal", "warn", ""},
		"an unreachable journal": {
			[]string{
				"CRITICIZER_MAIL_JOURNAL_SERVER=imap+insecure://j@127.0.0.1:1", "CRITICIZER_MAIL_JOURNAL_PASSWORD=of a test",
			}, "journal", "fail", "",
		},
		"an unreachable bounce mailbox": {
			[]string{
				"CRITICIZER_MAIL_BOUNCES_SERVER=imap+insecure://b@127.0.0.1:1", "CRITICIZER_MAIL_BOUNCES_PASSWORD=of a test",
			}, "bounces", "fail", "",
		},
		"a missing secret":              {[]string{"CRITICIZER_RAW_KEYSET="}, "config", "fail", "CRITICIZER_RAW_KEYSET"},
		"an unreachable webhook":        {[]string{"CRITICIZER_WEBHOOK_URL=http://" + unreachable + "/services/of-a-test"}, "webhook", "fail", ""},
		"an unreachable P4 Code Review": {swarmAt("http://" + unreachable), "swarm", "fail", ""},
		"a P4 Code Review that rejects": {swarmAt(refusing.URL), "swarm", "fail", "401"},
	} {
		t.Run(name, func(t *testing.T) {
			found, status := in.doctor(tt.env)
			if !hasDiagnosis(found, tt.check, tt.status, tt.subject) {
				t.Errorf("want %s of %s about %q in %+v", tt.status, tt.check, tt.subject, found)
			}
			if tt.status == "fail" && status != 1 || len(checks(found)) < 8 {
				t.Errorf("status %d, checks are %q", status, checks(found))
			}
			if out, err := json.Marshal(found); err != nil || bytes.Contains(out, []byte("of-a-test")) {
				t.Errorf("doctor prints a password: %s", out)
			}
		})
	}
}

// doctor names what the state of a server lacks, with the command that helps: an expired
// ticket, a permission, a search attribute, which is a warning because the next worker adds it,
// the schema of another build, and, in a new installation, the schema and Perforce's key.
func TestDoctorOfBrokenServers(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	found, status := in.doctor([]string{"CRITICIZER_LLM_BASE_URL=http://127.0.0.1:1/v1"}, "--roles", "fetch,redact")
	if want := []string{"config", "secrets", "postgres", "temporal", "breakers", "p4", "allowlist"}; status != 0 || !slices.Equal(checks(found), want) {
		t.Errorf("status %d, checks of two stages are %q, want %q: %+v", status, checks(found), want, found)
	}

	_, err := in.namespace.OperatorService().RemoveSearchAttributes(t.Context(), &operatorservice.RemoveSearchAttributesRequest{
		Namespace: in.temporal.Name, SearchAttributes: []string{contract.AttributeErrorClass.GetName()},
	})
	if err != nil {
		t.Fatal(err)
	}
	in.write("p4fault", 0o600, `{"fault":"message","cmd":"files","text":"You don't have permission for this operation.","severity":3,"generic":4}`)
	found, status = in.doctor(nil)
	if !hasDiagnosis(found, "temporal", "warn", "CriticizerErrorClass") {
		t.Errorf("the missing attribute: %+v", found)
	}
	if status != 1 || !hasDiagnosis(found, "p4", "fail", "//depot/...") || !hasFix(found, "p4", "p4 protect") {
		t.Errorf("status %d, the missing permission: %+v", status, found)
	}

	in.write("p4fault", 0o600, `{"fault":"message","text":"Your session has expired, please login again.","severity":3,"generic":4}`)
	in.exec("update criticizer.migrations set fingerprint = ''")
	found, status = in.doctor(nil)
	if status != 1 || !hasFix(found, "p4", "login -a -p") || !hasDiagnosis(found, "p4", "fail", "expired") || !hasDiagnosis(found, "postgres", "fail", "another build") {
		t.Errorf("status %d: %+v", status, found)
	}

	in.write("p4fault", 0o600, `{"fault":"trust"}`)
	in.exec("drop schema criticizer cascade")
	found, status = in.doctor(nil)
	if status != 1 || !hasFix(found, "postgres", "criticizer migrate") || hasFix(found, "postgres", "grant") {
		t.Errorf("status %d, want the fix criticizer migrate: %+v", status, found)
	}
	if want := "p4.fingerprint"; !hasFix(found, "p4", want) {
		t.Errorf("want the fix %q: %+v", want, found)
	}
}
