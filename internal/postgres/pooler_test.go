package postgres

import (
	"cmp"
	"io"
	"net"
	"net/url"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
)

// A pooler that ignores the start-up parameters gives the login all its rights: each connection
// takes the role itself.
func TestRoleBehindAPooler(t *testing.T) {
	t.Parallel()
	cluster := os.Getenv("CRITICIZER_TEST_DATABASE_URL")
	switch {
	case cluster == "" && os.Getenv("CI") != "":
		t.Fatal("CRITICIZER_TEST_DATABASE_URL is not set: in CI the database tests must run")
	case cluster == "":
		t.Skip("SKIPPED, NOTHING WAS TESTED: CRITICIZER_TEST_DATABASE_URL is not set; `make test` sets it")
	}
	u, err := url.Parse(cluster)
	testkit.NoError(t, err)
	pooler, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.NoError(t, err)
	t.Cleanup(func() { _ = pooler.Close() })
	behind := cmp.Or(u.Host, "localhost")
	go func() {
		for {
			client, err := pooler.Accept()
			if err != nil {
				return
			}
			go forward(client, behind)
		}
	}()
	u.Host = pooler.Addr().String()
	pool, err := Open(t.Context(), Config{URL: secret.New(u.String())}, "pg_read_all_stats")
	testkit.NoError(t, err)
	defer pool.Close()
	var role, path string
	testkit.NoError(t, pool.QueryRow(t.Context(), `select current_user::text, current_setting('search_path')`).Scan(&role, &path))
	if role != "pg_read_all_stats" || path != `""` {
		t.Errorf("the session acts as %s with search_path %q", role, path)
	}
}

// forward is a session of a pooler that ignores the start-up parameters.
func forward(client net.Conn, behind string) {
	defer func() { _ = client.Close() }()
	message, err := pgproto3.NewBackend(client, client).ReceiveStartupMessage()
	if _, tls := message.(*pgproto3.SSLRequest); tls && err == nil {
		_, _ = client.Write([]byte("N"))
		message, err = pgproto3.NewBackend(client, client).ReceiveStartupMessage()
	}
	start, ok := message.(*pgproto3.StartupMessage)
	if err != nil || !ok {
		return
	}
	for name := range start.Parameters {
		if name != "user" && name != "database" {
			delete(start.Parameters, name)
		}
	}
	server, err := net.Dial("tcp", behind)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	first, err := start.Encode(nil)
	if err != nil {
		return
	}
	_, _ = server.Write(first)
	go func() { _, _ = io.Copy(server, client) }()
	_, _ = io.Copy(client, server)
}
