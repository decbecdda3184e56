package main

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
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
	testkit.NoError(t, err)
	raw, err := artifact.New(d.Open(t, store.RoleFetch).Blobs(review.NamespaceRaw), artifact.Config{Namespace: review.NamespaceRaw, Keyset: keyset, TTL: time.Hour})
	testkit.NoError(t, err)
	ref, err := raw.Put(t.Context(), review.Owner{Changelist: 4711, Version: 1}, []byte("a change"))
	testkit.NoError(t, err)
	env := map[string]string{
		"CRITICIZER_CONFIG": emptyFile(t), "CRITICIZER_DATABASE_URL": d.URL.Reveal(), "CRITICIZER_RAW_KEYSET": keyset.Reveal(), "CRITICIZER_REPORT_KEYSET": keyset.Reveal(),
	}
	for name, tt := range map[string]struct {
		args    []string
		keyset  string
		status  int
		subject string // of the error
	}{
		"without a reason":        {[]string{string(ref)}, keyset.Reveal(), 2, `"reason" not set`},
		"a secret for a reason":   {[]string{string(ref), "--reason", "ghp_" + strings.Repeat("a1B2c3", 6)}, keyset.Reveal(), 1, "--reason"},
		"of no namespace":         {[]string{"6f1b", "--reason", "x"}, keyset.Reveal(), 2, `"6f1b"`},
		"that is not there":       {[]string{"report:" + strings.Repeat("0", 64), "--reason", "TICKET-9"}, keyset.Reveal(), 1, "report:000"},
		"with a keyset of none":   {[]string{string(ref), "--reason", "TICKET-9"}, "", 1, "CRITICIZER_RAW_KEYSET"},
		"with a keyset that lies": {[]string{string(ref), "--reason", "TICKET-9"}, "{}", 1, "CRITICIZER_RAW_KEYSET"},
	} {
		env["CRITICIZER_RAW_KEYSET"] = tt.keyset
		checkRefusal(t, name, say(t, env, append([]string{"artifact", "show"}, tt.args...)...), tt.status, tt.subject)
	}
	env["CRITICIZER_RAW_KEYSET"] = keyset.Reveal()
	if got := say(t, env, "artifact", "show", string(ref), "--reason", "TICKET-9"); got != (answer{out: "a change"}) {
		t.Errorf("with a reason: %+v", got)
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
	checkRefusal(t, "without the role", say(t, env, "artifact", "show", "raw:0", "--reason", "curiosity"), 1, "criticizer_reader")
	var who string
	err = conn.QueryRow(t.Context(), `select actor from criticizer.audit_log where action = 'artifact.show.denied' and object = 'raw:0'`).Scan(&who)
	if err != nil || who != login {
		t.Errorf("the refusal is on record for %q, %v", who, err)
	}
}

// A rotated evidence key has the old key too.
func TestEvidenceKey(t *testing.T) {
	t.Parallel()
	first := say(t, nil, "keyset", "evidence")
	if err := evidence.Check(secret.New(first.out)); first.status != 0 || err != nil {
		t.Fatalf("%v: %+v", err, first)
	}
	rotated := say(t, map[string]string{"CRITICIZER_EVIDENCE_KEY": first.out}, "keyset", "evidence", "--rotate")
	if err := evidence.Check(secret.New(rotated.out)); err != nil || rotated.status != 0 || !strings.HasSuffix(rotated.out, first.out) || rotated.out == first.out {
		t.Errorf("%v: %+v", err, rotated)
	}
	checkRefusal(t, "without a key", say(t, nil, "keyset", "evidence", "--rotate"), 1, "CRITICIZER_EVIDENCE_KEY")
}
