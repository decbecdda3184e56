package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

var id = strings.Repeat("0a", 32)

const day = 24 * time.Hour

// age makes every artifact of ns older by d.
func age(t *testing.T, d *storetest.Database, ns review.Namespace, by time.Duration) {
	t.Helper()
	exec(t, d.Conn(t), `update `+string(ns)+`.artifacts set stored_at = stored_at - $1::interval, expires_at = expires_at - $1::interval`, by)
}

func TestBlobs(t *testing.T) {
	t.Parallel()
	for ns, roles := range map[review.Namespace][2]store.Role{
		review.NamespaceRaw:      {store.RoleFetch, store.RoleRedact},
		review.NamespaceRedacted: {store.RoleRedact, store.RoleLLM},
		review.NamespaceReport:   {store.RoleLLM, store.RoleNotify},
		review.NamespaceAnswer:   {store.RoleLLM, store.RoleLLM},
	} {
		t.Run(string(ns), func(t *testing.T) {
			t.Parallel()
			d := storetest.New(t)
			writer, reader := d.Open(t, roles[0]).Blobs(ns), d.Open(t, roles[1]).Blobs(ns)
			retention := d.Open(t, store.RoleRetention)

			testkit.NoError(t, writer.PutBlob(t.Context(), id, []byte("old"), time.Hour))
			testkit.NoError(t, writer.PutBlob(t.Context(), id, []byte("new"), 2*time.Hour))
			body := must(reader.Blob(t.Context(), id))(t)
			if string(body) != "new" {
				t.Errorf("read %q", body)
			}
			_, err := reader.Blob(t.Context(), strings.Repeat("00", 32))
			wantClass(t, err, failure.ArtifactExpired)

			n, err := retention.DeleteExpiredArtifacts(t.Context(), ns)
			if err != nil || n != 0 {
				t.Errorf("deleted %d live artifacts, %v", n, err)
			}
			age(t, d, ns, 3*time.Hour)
			_, err = reader.Blob(t.Context(), id)
			wantClass(t, err, failure.ArtifactExpired) // though it is still there
			if n, err := retention.OverdueArtifacts(t.Context(), 30*time.Minute); err != nil || n != 1 {
				t.Errorf("verification counts %d overdue, %v; want 1 (security 9.4.5)", n, err)
			}
			if n, err = retention.DeleteExpiredArtifacts(t.Context(), ns); err != nil || n != 1 {
				t.Errorf("deleted %d expired artifacts, %v; want 1 (security 9.4.5)", n, err)
			}
		})
	}
}

func TestPuttingAgainNeverShortens(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	writer := d.Open(t, store.RoleFetch).Blobs(review.NamespaceRaw)
	testkit.NoError(t, writer.PutBlob(t.Context(), id, []byte("1"), 7*day))
	age(t, d, review.NamespaceRaw, 5*day)
	testkit.NoError(t, writer.PutBlob(t.Context(), id, []byte("2"), day))
	left := query[time.Duration](t, d.Conn(t), `select expires_at - now() from raw.artifacts`)
	if left < 47*time.Hour || left > 48*time.Hour {
		t.Errorf("%s left, want the 2 days of the first time", left)
	}
	testkit.NoError(t, writer.PutBlob(t.Context(), id, []byte("3"), 7*day)) // the longest time, from now
}

func TestTTLLimits(t *testing.T) { // (security 9.4.1)
	t.Parallel()
	d := storetest.New(t)
	db := d.Open(t, "")
	for ns, limit := range map[review.Namespace]time.Duration{
		review.NamespaceRaw: 7 * day, review.NamespaceRedacted: 30 * day, review.NamespaceReport: 30 * day, review.NamespaceAnswer: 30 * day,
	} {
		testkit.NoError(t, db.Blobs(ns).PutBlob(t.Context(), id, []byte("x"), limit))
		wantClass(t, db.Blobs(ns).PutBlob(t.Context(), strings.Repeat("00", 32), []byte("x"), limit+time.Second), failure.InvariantViolated)
	}
}

func TestEveryAccessIsAudited(t *testing.T) { // (security 9.4.3)
	t.Parallel()
	d := storetest.New(t)
	testkit.NoError(t, d.Open(t, store.RoleFetch).Blobs(review.NamespaceRaw).PutBlob(t.Context(), id, []byte("x"), time.Hour))
	must(d.Open(t, store.RoleRedact).Blobs(review.NamespaceRaw).Blob(t.Context(), id))(t)
	_, err := d.Open(t, store.RoleLLM).Blobs(review.NamespaceRaw).Blob(t.Context(), id)
	wantClass(t, err, failure.PermissionDenied)
	got := query[string](t, d.Conn(t), `select string_agg(role || ' ' || action || ' ' || object, ';' order by id) from criticizer.audit_log`)
	want := "criticizer_fetch artifact.write raw:" + id + ";criticizer_redact artifact.read raw:" + id + ";criticizer_llm artifact.read.denied raw:" + id
	if got != want {
		t.Errorf("audit log holds\n%s\nwant\n%s", got, want)
	}
}

// A person reads one artifact, and the audit log records who and why (security 9.4.3).
func TestReadingIsAudited(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	id := strings.Repeat("a", 64)
	testkit.NoError(t, d.Open(t, store.RoleFetch).Blobs(review.NamespaceRaw).PutBlob(t.Context(), id, []byte("sealed"), time.Hour))
	reader := d.Open(t, store.RoleReader)
	body, err := reader.AuditedReader(review.NamespaceRaw, "olga@desk", "T-1").Blob(t.Context(), id)
	if err != nil || string(body) != "sealed" {
		t.Fatalf("body = %q, %v", body, err)
	}
	_, err = reader.AuditedReader(review.NamespaceReport, "olga@desk", "T-2").Blob(t.Context(), id)
	if failure.ClassOf(err) != failure.ArtifactExpired {
		t.Errorf("an artifact that never was: %v", err)
	}
	_, err = reader.AuditedReader(review.NamespaceRaw, "olga@desk", "").Blob(t.Context(), id)
	if failure.ClassOf(err) != failure.PermissionDenied {
		t.Errorf("without a reason: %v", err)
	}
	audited := query[string](t, d.Conn(t), `select string_agg(claimed || ' ' || action || ' ' || object || ' ' || detail, ';' order by id) from criticizer.audit_log where action = 'artifact.show'`)
	for _, want := range []string{"olga@desk artifact.show raw:" + id, "T-1", "artifact.show report:" + id, "T-2"} {
		if !strings.Contains(audited, want) {
			t.Errorf("audit log lacks %q: %s", want, audited)
		}
	}
}

// The reader role can read content only by the audited function (security 9.4.3).
func TestReaderHasNoOtherWay(t *testing.T) {
	t.Parallel()
	conn := storetest.New(t).Conn(t)
	exec(t, conn, goodRows)
	wantRights(t, conn, []store.Role{store.RoleReader}, map[string][]store.Role{
		`select body from raw.artifacts`: nil, `select body from redacted.artifacts`: nil, `select body from report.artifacts`: nil,
		`select id from raw.artifacts`: nil, `delete from raw.artifacts`: nil, `select address from criticizer.recipients`: nil,
		`select * from criticizer.audit_log`: nil, `update criticizer.audit_log set claimed = 'x'`: nil,
	})
	wantRights(t, conn, allRoles, map[string][]store.Role{`select criticizer.read_artifact('raw', 'x', 'olga', 'T-1')`: nil})
}

// Only expired artifacts are deleted, and the deletion is recorded (security 9.4.5).
func TestDeleteExpiredIsAudited(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	conn := d.Conn(t)
	exec(t, conn, goodRows)
	namespaces := []string{"raw", "redacted", "report", "answer"}
	for _, ns := range namespaces {
		exec(t, conn, strings.ReplaceAll(`insert into NS.artifacts (id, body) values (repeat('e', 64), 'x'), (repeat('f', 64), 'y'), (repeat('d', 64), 'z');
			update NS.artifacts set stored_at = now() - interval '4 hours', expires_at = now() - interval '3 hours' where id = repeat('e', 64);
			update NS.artifacts set stored_at = now() - interval '4 hours', expires_at = now() - interval '30 minutes' where id = repeat('f', 64)`, "NS", ns))
	}
	retention := d.Open(t, store.RoleRetention)
	overdue := must(retention.OverdueArtifacts(t.Context(), time.Hour))(t)
	n := must(retention.DeleteExpiredArtifacts(t.Context(), review.NamespaceRaw))(t)
	left := must(retention.OverdueArtifacts(t.Context(), time.Hour))(t)
	if all := len(namespaces); overdue != all || n != 2 || left != all-1 {
		t.Errorf("of %d namespaces overdue %d, deleted %d, then overdue %d; want one each, 2, and the others", all, overdue, n, left)
	}
	if kept := query[int](t, conn, `select count(*)::int from raw.artifacts`); kept != 2 {
		t.Errorf("%d artifacts are left, want those whose time is not over", kept)
	}
	if audited := query[string](t, conn, `select detail::text from criticizer.audit_log where action = 'artifact.expire'`); audited != `{"deleted": 2}` {
		t.Errorf("audited: %s", audited)
	}
}
