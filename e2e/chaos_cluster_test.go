package e2e

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

// seedDatabase is the migrated database of a new cluster.
const seedDatabase = "criticizer"

// A durability holds the settings that decide what survives an immediate stop.
type durability []string

var (
	durable = durability{}
	fast    = durability{"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off"}
)

// A cluster is a Postgres server that tests may restart.
type cluster struct {
	binaries, data string
	port           string
	durability     durability
	as             *syscall.Credential
	server         *exec.Cmd
}

// postgresBinaries returns the directory of the programs of the tests' Postgres.
func postgresBinaries(t *testing.T) (dir string) {
	t.Helper()
	conn := storetest.NewEmpty(t).Conn(t)
	if err := conn.QueryRow(t.Context(), `select setting from pg_config where name = 'BINDIR'`).Scan(&dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// seedCluster makes a cluster with a migrated database, which startCluster copies.
func seedCluster(t *testing.T, binaries string) (data string) {
	t.Helper()
	c := initCluster(t, binaries)
	c.execute(t, `create database `+seedDatabase)
	if err := store.Schema().Migrate(t.Context(), slog.New(slog.DiscardHandler), postgres.Config{URL: secret.New(c.url(seedDatabase))}); err != nil {
		t.Fatal(err)
	}
	c.stop(syscall.SIGINT)
	return c.data
}

// initCluster starts a new cluster without databases. The caller stops it.
func initCluster(t *testing.T, binaries string) *cluster {
	t.Helper()
	c := prepareCluster(t, binaries, fast)
	initdb := exec.Command(filepath.Join(binaries, "initdb"), "-D", c.data, "-U", "super", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: c.as}
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	c.start(t)
	return c
}

// startCluster starts a copy of a cluster and stops it when the test ends.
func startCluster(t *testing.T, binaries, seed string, d durability) *cluster {
	t.Helper()
	c := prepareCluster(t, binaries, d)
	if out, err := exec.Command("cp", "-a", seed+"/.", c.data).CombinedOutput(); err != nil {
		t.Fatalf("copy the cluster: %v\n%s", err, out)
	}
	c.start(t)
	t.Cleanup(func() { c.stop(syscall.SIGQUIT) })
	return c
}

// prepareCluster makes a directory for a cluster that runs as user nobody: Postgres does
// not run as root.
func prepareCluster(t *testing.T, binaries string, d durability) *cluster {
	t.Helper()
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.ParseUint(nobody.Uid, 10, 32)
	gid, _ := strconv.ParseUint(nobody.Gid, 10, 32)
	data, err := os.MkdirTemp("", "criticizer-chaos-") // user nobody cannot read t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(data) })
	if err := os.Chown(data, int(uid), int(gid)); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(freeAddress(t))
	return &cluster{
		binaries: binaries, data: data, port: port, durability: d,
		as: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
	}
}

// start returns when the server accepts connections.
func (c *cluster) start(t *testing.T) {
	t.Helper()
	args := append([]string{"-D", c.data, "-p", c.port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "max_connections=2000"}, c.durability...)
	c.server = exec.Command(filepath.Join(c.binaries, "postgres"), args...)
	c.server.SysProcAttr = &syscall.SysProcAttr{Credential: c.as}
	if err := c.server.Start(); err != nil {
		t.Error(err)
		return
	}
	ready := filepath.Join(c.binaries, "pg_isready")
	accepts := func() bool { return exec.Command(ready, "-q", "-h", "127.0.0.1", "-p", c.port).Run() == nil }
	if !poll(time.Minute, 20*time.Millisecond, accepts) {
		t.Error("Postgres does not start")
	}
}

// stop returns when the server has exited. SIGQUIT is pg_ctl's immediate mode: the server
// closes all sessions, writes nothing, and recovers at the next start.
func (c *cluster) stop(how syscall.Signal) {
	_ = c.server.Process.Signal(how)
	_ = c.server.Wait()
}

func (c *cluster) restart(t *testing.T) {
	t.Helper()
	c.stop(syscall.SIGQUIT)
	c.start(t)
}

func (c *cluster) url(database string) string {
	return fmt.Sprintf("postgres://super@127.0.0.1:%s/%s?sslmode=disable", c.port, database)
}

// database makes a migrated database and returns its URL.
func (c *cluster) database(t *testing.T, name string) string {
	t.Helper()
	c.execute(t, fmt.Sprintf(`create database %s template %s`, name, seedDatabase))
	return c.url(name)
}

func (c *cluster) execute(t *testing.T, statement string) {
	t.Helper()
	maintenance := storetest.Database{URL: secret.New(c.url("postgres"))}
	if _, err := maintenance.Conn(t).Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
