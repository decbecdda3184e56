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

// A person reads one artifact, and the audit log records who and why (security 9.4.3).
func TestReadingIsAudited(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	id := strings.Repeat("a", 64)
	testkit.NoError(t, d.Open(t, store.RoleFetch).Blobs(review.NamespaceRaw).PutBlob(t.Context(), id, []byte("sealed"), time.Hour))
	reader := d.Open(t, store.RoleReader)
	body, err := reader.Reading(review.NamespaceRaw, "olga@desk", "T-1").Blob(t.Context(), id)
	if err != nil || string(body) != "sealed" {
		t.Fatalf("body = %q, %v", body, err)
	}
	_, err = reader.Reading(review.NamespaceReport, "olga@desk", "T-2").Blob(t.Context(), id)
	if failure.ClassOf(err) != failure.ArtifactExpired {
		t.Errorf("an artifact that never was: %v", err)
	}
	_, err = reader.Reading(review.NamespaceRaw, "olga@desk", "").Blob(t.Context(), id)
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
	namespaces := []string{"raw", "redacted", "report", "answer", "rewrite"}
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
		t.Errorf("of %d namespaces overdue %d, deleted %d, then overdue %d; want one each, 2, and the other four", all, overdue, n, left)
	}
	if kept := query[int](t, conn, `select count(*)::int from raw.artifacts`); kept != 2 {
		t.Errorf("%d artifacts are left, want those whose time is not over", kept)
	}
	if audited := query[string](t, conn, `select detail::text from criticizer.audit_log where action = 'artifact.expire'`); audited != `{"deleted": 2}` {
		t.Errorf("audited: %s", audited)
	}
}
