package main

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
	"github.com/criticizer/criticizer/store/storetest"
)

// The content of an artifact is shown only for a reason, which is recorded
// (security 9.4.3).
func TestArtifactIsShownForAReason(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	keyset, err := artifact.NewKeyset(artifact.KEK{})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := artifact.New(d.Open(t, store.RoleFetch).Blobs(review.NamespaceRaw), artifact.Config{Namespace: review.NamespaceRaw, Keyset: keyset, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := raw.Put(t.Context(), review.Owner{Changelist: 4711, Version: 1}, []byte("a change"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"CRITICIZER_CONFIG": emptyFile(t), "CRITICIZER_DATABASE_URL": d.URL.Reveal(), "CRITICIZER_RAW_KEYSET": keyset.Reveal(), "CRITICIZER_REPORT_KEYSET": keyset.Reveal(),
	}
	for name, tt := range map[string]struct {
		args   []string
		keyset string
		status int
		says   string
	}{
		"with a reason":           {[]string{string(ref), "--reason", "TICKET-9"}, keyset.Reveal(), 0, "a change"},
		"without a reason":        {[]string{string(ref)}, keyset.Reveal(), 1, "--reason is empty"},
		"a secret for a reason":   {[]string{string(ref), "--reason", "ghp_" + strings.Repeat("a1B2c3", 6)}, keyset.Reveal(), 1, "seems to contain a secret"},
		"of no namespace":         {[]string{"6f1b", "--reason", "x"}, keyset.Reveal(), 2, "is not an artifact"},
		"that is not there":       {[]string{"report:" + strings.Repeat("0", 64), "--reason", "TICKET-9"}, keyset.Reveal(), 1, "expired or was never stored"},
		"with a keyset of none":   {[]string{string(ref), "--reason", "TICKET-9"}, "", 1, "CRITICIZER_RAW_KEYSET"},
		"with a keyset that lies": {[]string{string(ref), "--reason", "TICKET-9"}, "{}", 1, "not a Tink JSON keyset"},
	} {
		env["CRITICIZER_RAW_KEYSET"] = tt.keyset
		status, stdout, stderr := ask(t, env, append([]string{"artifact", "show"}, tt.args...)...)
		if status != tt.status || !strings.Contains(stdout+stderr, tt.says) {
			t.Errorf("%s: status %d, %q %q; want %d and %q", name, status, stdout, stderr, tt.status, tt.says)
		}
		if tt.status != 0 && stdout != "" {
			t.Errorf("%s: printed %q", name, stdout)
		}
	}
	var audited int
	err = d.Conn(t).QueryRow(t.Context(), `select count(*) from criticizer.audit_log where action = 'artifact.show' and object = $1 and detail ->> 'reason' = 'TICKET-9'`, string(ref)).Scan(&audited)
	if err != nil || audited != 1 {
		t.Errorf("%d readings on record, %v; want 1", audited, err)
	}
}

// A read without the role is refused and recorded (security 9.4.3).
func TestRefusedReadingIsAudited(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	conn := d.Conn(t)
	login, password := "clerk_"+strings.ToLower(rand.Text()), rand.Text()
	for _, statement := range []string{"create role " + login + " login password '" + password + "'", "grant criticizer_operator to " + login} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = conn.Exec(context.Background(), "drop role "+login) })
	u, err := url.Parse(d.URL.Reveal())
	if err != nil {
		t.Fatal("the test database's URL cannot be parsed")
	}
	u.User = url.UserPassword(login, password)
	env := map[string]string{"CRITICIZER_CONFIG": emptyFile(t), "CRITICIZER_DATABASE_URL": u.String(), "CRITICIZER_RAW_KEYSET": "{}"}
	status, stdout, stderr := ask(t, env, "artifact", "show", "raw:0", "--reason", "curiosity")
	if status != 1 || stdout != "" || !strings.Contains(stderr, "criticizer_reader") {
		t.Errorf("status %d, %q %q; want a refusal that names the role", status, stdout, stderr)
	}
	var who string
	err = conn.QueryRow(t.Context(), `select actor from criticizer.audit_log where action = 'artifact.show.denied' and object = 'raw:0'`).Scan(&who)
	if err != nil || who != login {
		t.Errorf("the refusal is on record for %q, %v", who, err)
	}
}

// A rotated evidence key has the old key too.
func TestEvidenceKey(t *testing.T) {
	t.Parallel()
	status, first, stderr := ask(t, nil, "keyset", "evidence")
	if err := evidence.Check(secret.New(first)); status != 0 || err != nil {
		t.Fatalf("status %d, %v, %s", status, err, stderr)
	}
	env := map[string]string{"CRITICIZER_EVIDENCE_KEY": first}
	status, rotated, stderr := ask(t, env, "keyset", "evidence", "--rotate")
	if err := evidence.Check(secret.New(rotated)); status != 0 || err != nil || !strings.HasSuffix(rotated, first) || rotated == first {
		t.Errorf("status %d, %v, %s", status, err, stderr)
	}
	if status, stdout, stderr := ask(t, nil, "keyset", "evidence", "--rotate"); status != 1 || stdout != "" || !strings.Contains(stderr, "hint:") {
		t.Errorf("without a key: status %d, %q %q", status, stdout, stderr)
	}
}
