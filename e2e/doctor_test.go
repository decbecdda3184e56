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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/operatorservice/v1"

	"github.com/criticizer/criticizer/workflows"
)

// A diagnosis is one entry of what criticizer doctor --json prints.
type diagnosis struct{ Check, Status, Detail, Fix string }

// doctor runs criticizer doctor --json with variables besides the rig's.
func (in *installation) doctor(env []string, args ...string) (found []diagnosis, status int) {
	in.t.Helper()
	cmd := exec.CommandContext(in.t.Context(), filepath.Join(binDir, "operator"), append([]string{"doctor", "--json"}, args...)...)
	cmd.Env = append(slices.Clone(in.env), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	if err := json.Unmarshal(out, &found); err != nil {
		in.t.Fatalf("doctor printed %q %s: %v", out, &stderr, err)
	}
	return found, cmd.ProcessState.ExitCode()
}

// checks are the names of what was looked at, each once.
func checks(found []diagnosis) []string {
	var names []string
	for _, d := range found {
		if !slices.Contains(names, d.Check) {
			names = append(names, d.Check)
		}
	}
	return names
}

// says reports whether a check came to the status, with the words.
func hasDiagnosis(found []diagnosis, check, status, words string) bool {
	return slices.ContainsFunc(found, func(d diagnosis) bool {
		return d.Check == check && d.Status == status && strings.Contains(d.Detail, words) && (status == "ok") == (d.Fix == "")
	})
}

// fixes reports whether what a check says to do, or any check if none is named,
// has the words.
func hasFix(found []diagnosis, check, words string) bool {
	return slices.ContainsFunc(found, func(d diagnosis) bool { return (check == "" || d.Check == check) && strings.Contains(d.Fix, words) })
}

func TestDoctorFindsAHealthyStackHealthy(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	in.startWorker()
	waitFor(t, "a worker on every queue", func() bool {
		found, _ := in.doctor(nil)
		return !hasDiagnosis(found, "temporal", "warn", "no worker polls")
	})
	found, status := in.doctor(nil)
	if status != 0 {
		t.Errorf("status %d: %+v", status, found)
	}
	want := []string{"config", "secrets", "postgres", "temporal", "p4", "allowlist", "model", "mail", "clocks"}
	if got := checks(found); !slices.Equal(got, want) {
		t.Errorf("looked at %q, want %q", got, want)
	}
	// What a scratch cluster, a test's namespace and p4sim have about them.
	known := map[string]string{"postgres": "superuser", "temporal": "for 1d0h", "p4": "expires in 12h00m"}
	for _, d := range found {
		if d.Status != "ok" && (d.Status != "warn" || !strings.Contains(d.Detail, cmp.Or(known[d.Check], "\x00"))) {
			t.Errorf("%+v", d)
		}
	}
}

// Each fault is found by its own check, with a fix, while the other checks run.
func TestDoctorFindsEachFault(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	login := "doctor_" + strings.ToLower(rand.Text())
	conn := in.database.Conn(t)
	for _, statement := range []string{"create role " + login + " login password 'of-a-test'", "grant criticizer_fetch to " + login} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), "drop role "+login); err != nil {
			t.Error(err)
		}
	})
	lowly, err := url.Parse(in.database.URL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	lowly.User = url.UserPassword(login, "of-a-test")
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		in.model.ServeHTTP(w, request)
	}))
	t.Cleanup(late.Close)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(refusing.Close)
	swarmAt := func(url string) []string {
		return []string{"CRITICIZER_SWARM_URL=" + url, "CRITICIZER_SWARM_USER=bot", "CRITICIZER_SWARM_TICKET=of-a-test"}
	}
	in.write("old-key", 0o600, "a key")
	longAgo := time.Now().Add(-100 * 24 * time.Hour)
	if err := os.Chtimes(in.path("old-key"), longAgo, longAgo); err != nil {
		t.Fatal(err)
	}
	const nobody = "127.0.0.1:1"
	for name, tt := range map[string]struct {
		env                  []string
		check, status, words string
	}{
		"configuration":     {[]string{"CRITICIZER_LLM_MODEL=", "CRITICIZER_P4_TIMEOUT=-1s"}, "config", "fail", "p4.timeout: is not positive"},
		"an old secret":     {[]string{"OPENAI_API_KEY_FILE=" + in.path("old-key")}, "secrets", "warn", "OPENAI_API_KEY is 100 days old"},
		"no database":       {[]string{"CRITICIZER_DATABASE_URL=postgres://u@" + nobody + "/d"}, "postgres", "fail", "connect to database"},
		"a role it lacks":   {[]string{"CRITICIZER_DATABASE_URL=" + lowly.String()}, "postgres", "fail", "criticizer_llm"},
		"no Temporal":       {[]string{"CRITICIZER_TEMPORAL_ADDRESS=" + nobody}, "temporal", "fail", nobody},
		"no namespace":      {[]string{"CRITICIZER_TEMPORAL_NAMESPACE=missing"}, "temporal", "fail", "namespace missing"},
		"short retention":   {nil, "temporal", "warn", "a review can only be replayed within that time"},
		"no worker":         {nil, "temporal", "warn", "no worker polls for workflows, fetch, redact, llm, notify, retention"},
		"no p4 command":     {[]string{"CRITICIZER_P4_COMMAND=/nowhere/p4"}, "p4", "fail", "p4 command"},
		"a path that isn't": {[]string{"CRITICIZER_P4_ALLOWED_PATHS=//depot/...,//depot/missing/..."}, "p4", "warn", "no file under //depot/missing/..."},
		"a list nobody put in force": {
			[]string{"CRITICIZER_P4_ALLOWED_PATHS=//depot/a/..."}, "allowlist", "fail", "differs from version 1",
		},
		"a list that is refused": {[]string{"CRITICIZER_P4_ALLOWED_PATHS=//depot/*"}, "allowlist", "fail", `"//depot/*"`},
		"no model":               {[]string{"CRITICIZER_LLM_BASE_URL=http://" + nobody + "/v1"}, "model", "fail", "model endpoint"},
		"a key too short":        {[]string{"CRITICIZER_REDACTION_KEY=short"}, "model", "fail", "redaction key has 5 bytes"},
		"no mail server":         {[]string{"CRITICIZER_MAIL_PORT=1"}, "mail", "fail", "connection"},
		"no journal":             {[]string{"CRITICIZER_MAIL_PROVIDER=smtp"}, "journal", "warn", "held for an operator"},
		"a journal that is down": {
			[]string{
				"CRITICIZER_MAIL_PROVIDER=smtp", "CRITICIZER_MAIL_JOURNAL_HOST=127.0.0.1", "CRITICIZER_MAIL_JOURNAL_PORT=1",
				"CRITICIZER_MAIL_JOURNAL_TLS=none", "CRITICIZER_MAIL_JOURNAL_USERNAME=j", "CRITICIZER_MAIL_JOURNAL_PASSWORD=of a test",
			}, "journal", "fail", "connect",
		},
		"no bounces": {
			[]string{
				"CRITICIZER_MAIL_PROVIDER=smtp", "CRITICIZER_MAIL_BOUNCES_HOST=127.0.0.1", "CRITICIZER_MAIL_BOUNCES_PORT=1",
				"CRITICIZER_MAIL_BOUNCES_TLS=none", "CRITICIZER_MAIL_BOUNCES_USERNAME=b", "CRITICIZER_MAIL_BOUNCES_PASSWORD=of a test",
			}, "bounces", "fail", "connect",
		},
		"a secret that is missing":      {[]string{"CRITICIZER_ARTIFACT_KEYSET="}, "config", "fail", "CRITICIZER_ARTIFACT_KEYSET"},
		"a webhook that is down":        {[]string{"CRITICIZER_WEBHOOK_URL=http://" + nobody + "/services/of-a-test"}, "webhook", "fail", "cannot be reached"},
		"a P4 Code Review that is down": {swarmAt("http://" + nobody), "swarm", "fail", "P4 Code Review: cannot be reached"},
		"a P4 Code Review that refuses": {swarmAt(refusing.URL), "swarm", "fail", "answered 401"},
		"another clock":                 {[]string{"CRITICIZER_LLM_BASE_URL=" + late.URL + "/v1"}, "clocks", "fail", "ahead of this machine's"},
	} {
		t.Run(name, func(t *testing.T) {
			found, status := in.doctor(tt.env)
			if !hasDiagnosis(found, tt.check, tt.status, tt.words) {
				t.Errorf("want %s of %s with %q in %+v", tt.status, tt.check, tt.words, found)
			}
			for _, d := range found {
				if d.Check == tt.check && d.Status == tt.status {
					t.Logf("%s %s: %s; fix: %s", d.Status, d.Check, d.Detail, d.Fix)
				}
			}
			if tt.status == "fail" && status != 1 || len(checks(found)) < 8 {
				t.Errorf("status %d, looked at %q only", status, checks(found))
			}
			if out, err := json.Marshal(found); err != nil || bytes.Contains(out, []byte("of-a-test")) {
				t.Errorf("a password is shown: %s", out)
			}
		})
	}
}

func TestDoctorFindsAnExpiredTicketAndAnOldSchema(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	in.write("p4fault", 0o600, `{"fault":"message","text":"Your session has expired, please login again.","severity":3,"generic":4}`)
	if _, err := in.database.Conn(t).Exec(t.Context(), "delete from criticizer.migrations where version_id > 0"); err != nil {
		t.Fatal(err)
	}
	found, status := in.doctor(nil)
	if !hasFix(found, "p4", "login -a -p prints a ticket") || hasFix(found, "", "then replay") {
		t.Errorf("what to do about the ticket: %+v", found)
	}
	if status != 1 || !hasDiagnosis(found, "p4", "fail", "the session has expired") || !hasDiagnosis(found, "postgres", "fail", "database schema is version 0") {
		t.Errorf("status %d: %+v", status, found)
	}
}

// Before the first migration there are no roles to try, and before the first
// connection no key that is trusted.
func TestDoctorOfANewInstallation(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	in.write("p4fault", 0o600, `{"fault":"trust"}`)
	if _, err := in.database.Conn(t).Exec(t.Context(), "drop schema criticizer cascade"); err != nil {
		t.Fatal(err)
	}
	found, status := in.doctor(nil)
	if status != 1 || !hasFix(found, "postgres", "run criticizer migrate") || hasFix(found, "postgres", "grant") {
		t.Errorf("status %d, what to do about the schema: %+v", status, found)
	}
	if want := "/p4trust p4 -p p4sim:1666 trust"; !hasFix(found, "p4", want) {
		t.Errorf("want %q to do about the server's key: %+v", want, found)
	}
}

func TestDoctorLooksAtTheStagesItIsTold(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	found, status := in.doctor([]string{"CRITICIZER_LLM_BASE_URL=http://127.0.0.1:1/v1"}, "--stages", "fetch,redact")
	if want := []string{"config", "secrets", "postgres", "temporal", "p4", "allowlist", "clocks"}; status != 0 || !slices.Equal(checks(found), want) {
		t.Errorf("status %d, looked at %q, want %q: %+v", status, checks(found), want, found)
	}
}

// A host of the rewrite queue alone needs no Perforce, model or mail server of
// reviews; docs/rewrite.md starts it by these commands.
func TestDoctorLooksAtTheStageRewrite(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, "")
	env := []string{
		"CRITICIZER_LLM_BASE_URL=http://127.0.0.1:1/v1", "CRITICIZER_REWRITE_ROUTE_MODEL=llmsim-1", "CRITICIZER_REWRITE_OPENAI_BASE_URL=" + in.endpoint,
	}
	found, status := in.doctor(env, "--stages", "rewrite")
	if want := []string{"config", "secrets", "postgres", "temporal", "rewrite", "clocks"}; status != 0 || !slices.Equal(checks(found), want) {
		t.Errorf("status %d, looked at %q, want %q: %+v", status, checks(found), want, found)
	}
	if !hasDiagnosis(found, "postgres", "ok", "acts as criticizer_rewrite") {
		t.Errorf("it did not take the role of the stage: %+v", found)
	}
	for name, tt := range map[string]struct {
		env                  []string
		check, status, words string
	}{
		"a profile that does not exist": {[]string{"CRITICIZER_REWRITE_RUN_PROFILE=weekend"}, "config", "fail", "rewrite.run.profile"},
		"a provider that is down":       {[]string{"CRITICIZER_REWRITE_OPENAI_BASE_URL=http://127.0.0.1:1/v1"}, "rewrite", "fail", "provider openai"},
		"a second that is down": {
			[]string{"CRITICIZER_REWRITE_OTHER_BASE_URL=http://127.0.0.1:1/v1"}, "rewrite", "fail", "provider other",
		},
		"a model that it does not list": {[]string{"CRITICIZER_REWRITE_ROUTE_MODEL=llmsim-2"}, "rewrite", "warn", "does not list llmsim-2"},
	} {
		found, status = in.doctor(append(slices.Clone(env), tt.env...), "--stages", "rewrite")
		if (status == 1) != (tt.status == "fail") || !hasDiagnosis(found, tt.check, tt.status, tt.words) {
			t.Errorf("%s: status %d: %+v", name, status, found)
		}
	}
}

// What a namespace lacks a worker adds; until then nobody finds a review by it.
func TestDoctorMissesSearchAttributesAndPermissions(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	_, err := in.namespace.OperatorService().RemoveSearchAttributes(t.Context(), &operatorservice.RemoveSearchAttributesRequest{
		Namespace: in.temporal.Name, SearchAttributes: []string{workflows.AttributeErrorClass.GetName()},
	})
	if err != nil {
		t.Fatal(err)
	}
	in.write("p4fault", 0o600, `{"fault":"message","cmd":"files","text":"You don't have permission for this operation.","severity":3,"generic":4}`)
	found, status := in.doctor(nil)
	if !hasDiagnosis(found, "temporal", "warn", "search attributes are missing: CriticizerErrorClass") {
		t.Errorf("the missing attribute: %+v", found)
	}
	if status != 1 || !hasDiagnosis(found, "p4", "fail", "user criticizer may not read //depot/...") || !hasFix(found, "p4", "p4 protect") {
		t.Errorf("status %d, the missing permission: %+v", status, found)
	}
}
