package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"

	"github.com/criticizer/criticizer/store"
)

// A cluster is a private Postgres server. devstack's command postgres reads it from standard
// input and runs it: Postgres refuses to run as root, so devstack starts itself as another user.
type cluster struct {
	Dir      string // with the data of each major version, and the download
	Binaries string // installed ones; empty: downloaded ones
	Version  embeddedpostgres.PostgresVersion
	Port     int
	Password string
}

const pgUser = "criticizer" // the only user of a cluster

// startPostgres returns the URL of a server: the one that CRITICIZER_DATABASE_URL
// names, or a private one, which it starts with the installed Postgres or, if there
// is none, with a downloaded one.
func startPostgres(ctx context.Context, s *stack, opts options) (string, error) {
	if opts.databaseURL != "" {
		s.out.say("using the Postgres that CRITICIZER_DATABASE_URL names")
		return opts.databaseURL, nil
	}
	c, account, err := newCluster(ctx, s, opts)
	if err != nil {
		return "", fmt.Errorf("start Postgres: %w", err)
	}
	text, err := json.Marshal(c) //nolint:gosec // for the file of a throw-away server, mode 0600
	if err != nil {
		return "", err
	}
	cmd := exec.Command("/proc/self/exe", "postgres") // another user may have no access to its path
	if account == nil {
		if cmd.Path, err = os.Executable(); err != nil {
			return "", err
		}
	}
	cmd.Dir, cmd.Stdin, cmd.SysProcAttr = c.Dir, bytes.NewReader(text), &syscall.SysProcAttr{Credential: account}
	proc, err := s.run("postgres", cmd)
	if err != nil {
		return "", err
	}
	what := "starting Postgres"
	if c.Binaries == "" {
		what = "downloading and starting Postgres, because none is installed"
	}
	if err := s.out.during(what, func() error { return proc.awaitLog(ctx, 5*time.Minute, pgReady) }); err != nil {
		return "", fmt.Errorf("%w\n%s", err, howToInstallPostgres())
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(pgUser, c.Password), Host: localAddress(c.Port), Path: "/postgres", RawQuery: "sslmode=disable"}
	major, _, _ := strings.Cut(string(c.Version), ".")
	s.out.say("Postgres %s on %s", major, u.Host)
	return u.String(), nil
}

// newCluster chooses binaries, port, password and directory of a cluster, and the account for
// it, nil for that of devstack.
func newCluster(ctx context.Context, s *stack, opts options) (c cluster, account *syscall.Credential, err error) {
	c = cluster{Dir: filepath.Join(s.base, "postgres"), Version: embeddedpostgres.V17}
	if installed, major := findPostgres(ctx, pgGlobs); major > 0 {
		c.Binaries, c.Version = installed, embeddedpostgres.PostgresVersion(fmt.Sprintf("%d.0.0", major))
	}
	if account, err = unprivilegedUser(); err != nil {
		return c, nil, err
	}
	if account != nil {
		c.Dir = rootDataDir(s.base)
		if !opts.forTests {
			s.out.say("the data of Postgres is in %s: it runs as another user, who may have no access to %s", c.Dir, s.base)
		}
	}
	// Data without a password belongs to a deleted clone in the same folder.
	passwordFile := filepath.Join(s.base, "postgres.password")
	text, err := os.ReadFile(passwordFile)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(rand.Text())
		err = errors.Join(os.RemoveAll(c.Dir), os.WriteFile(passwordFile, text, 0o600))
	}
	if c.Password = string(text); err != nil {
		return c, nil, err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return c, nil, err
	}
	if account != nil {
		if err := os.Chown(c.Dir, int(account.Uid), int(account.Gid)); err != nil {
			return c, nil, err
		}
	}
	c.Port, err = opts.choosePort(5432)
	return c, account, err
}

// pgReady is what the command postgres prints when the server accepts connections.
const pgReady = "ready for devstack"

// servePostgres runs the cluster that stdin describes until ctx ends.
func servePostgres(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	var c cluster
	if err := json.NewDecoder(stdin).Decode(&c); err != nil {
		return err
	}
	config := embeddedpostgres.DefaultConfig().Logger(stdout).
		Version(c.Version).BinariesPath(c.Binaries).CachePath(filepath.Join(c.Dir, "download")).
		RuntimePath(filepath.Join(c.Dir, "runtime")).DataPath(filepath.Join(c.Dir, "data-"+string(c.Version))).
		Username(pgUser).Password(c.Password).Encoding("UTF8").Locale("C").
		Port(uint32(c.Port)). //nolint:gosec // choosePort returns a port
		StartTimeout(time.Minute).
		// It listens on loopback only, without a socket. The data need not survive a crash of the
		// machine. The packages' tests share the server, and have used over 200 connections.
		StartParameters(map[string]string{
			"listen_addresses": loopback, "unix_socket_directories": "", "max_connections": "1000",
			"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off",
		})
	server := embeddedpostgres.NewDatabase(config)
	if err := server.Start(); err != nil {
		return err
	}
	fmt.Fprintln(stdout, pgReady)
	<-ctx.Done()
	return server.Stop()
}

// pgGlobs are where packages install binaries that are not on PATH.
var pgGlobs = []string{
	"/usr/lib/postgresql/*/bin",            // Debian, Ubuntu
	"/usr/pgsql-*/bin",                     // Fedora, RHEL from postgresql.org
	"/opt/homebrew/opt/postgresql@*/bin",   // Homebrew, Apple silicon
	"/usr/local/opt/postgresql@*/bin",      // Homebrew, Intel
	"/Applications/Postgres.app/*/*/*/bin", // Postgres.app
	"/usr/local/pgsql/bin",                 // from source
}

var firstNumber = regexp.MustCompile(`\d+`)

// findPostgres returns the folder above bin of an installed server that is new enough, and its
// major version: the one on PATH, or else the newest that the globs match. The version is 0 if
// there is none.
func findPostgres(ctx context.Context, globs []string) (dir string, major int) {
	usable := func(initdb string) (string, int) {
		target, err := filepath.EvalSymlinks(initdb)
		if err != nil || filepath.Base(filepath.Dir(target)) != "bin" {
			return "", 0
		}
		bin := filepath.Dir(target)
		text, _ := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output() // postgres (PostgreSQL) 15.18
		version, _ := strconv.Atoi(firstNumber.FindString(string(text)))
		if version < store.OldestPostgres {
			return "", 0
		}
		return filepath.Dir(bin), version
	}
	onPath, _ := exec.LookPath("initdb")
	if dir, major = usable(onPath); major > 0 {
		return dir, major
	}
	for _, glob := range globs {
		found, _ := filepath.Glob(filepath.Join(glob, "initdb")) // the only error is a malformed pattern
		for _, initdb := range slices.Backward(found) {
			if d, m := usable(initdb); m > major {
				dir, major = d, m
			}
		}
	}
	return dir, major
}

// howToInstallPostgres is the hint of every error about missing binaries.
func howToInstallPostgres() string {
	return fmt.Sprintf("install Postgres %d or later (Debian, Ubuntu: apt-get install postgresql; "+
		"macOS: brew install postgresql@17; Fedora: dnf install postgresql-server), "+
		"or name a running server in CRITICIZER_DATABASE_URL", store.OldestPostgres)
}

// unprivilegedUser returns the user for Postgres, which refuses to run as root.
// It is nil unless devstack runs as root.
func unprivilegedUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil && uid != 0 {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("choose a user for Postgres, which refuses to run as root: this machine has neither postgres nor nobody")
}

// rootDataDir returns the directory for the data of Postgres if devstack runs as
// root. Only root can create it. Its name depends on the state directory base, so
// the next run finds it again.
func rootDataDir(base string) string {
	sum := sha256.Sum256([]byte(base))
	return filepath.Join("/var/lib", "criticizer-"+hex.EncodeToString(sum[:6]))
}
