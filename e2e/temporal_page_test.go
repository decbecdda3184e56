package e2e

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/store/storetest"
)

// TestTemporalPage runs the commands of docs/temporal.md that install a server, with the
// test's Postgres, free ports and directories below a temporary one.
func TestTemporalPage(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"temporal-server", "temporal-sql-tool"} {
		if lookUp("../build/bin/"+program) == "" {
			need(t, "there is no "+program+": run make build/bin/"+program)
		}
	}
	if os.Getenv(storetest.URLVariable) == "" {
		need(t, "there is no Postgres: run this test under devstack exec")
	}
	server, err := url.Parse(os.Getenv(storetest.URLVariable))
	if err != nil {
		t.Fatal("the test cluster's URL cannot be parsed")
	}
	dir, name := t.TempDir(), fmt.Sprintf("temporal_page_%d", os.Getpid())
	password, _ := server.User.Password()
	env := append(os.Environ(), "ROOT="+dir, "PATH="+dir+"/fake:"+os.Getenv("PATH"), "PGDATABASE=postgres",
		"PGHOST="+server.Hostname(), "PGPORT="+server.Port(), "PGUSER="+server.User.Username(), "PGPASSWORD="+password)
	run := func(ctx context.Context, script string) {
		cmd := exec.CommandContext(ctx, "sh", "-e")
		cmd.Stdin, cmd.Env, cmd.Dir = strings.NewReader(script), env, ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			log, _ := os.ReadFile(dir + "/server.log")
			t.Errorf("%v\n%s\nthe server:\n%s", err, out, log)
		}
	}
	for fake, script := range map[string]string{
		"useradd": "", "runuser": `shift 3; exec "$@"`,
		"temporal":  "exec " + quote(temporalCommand(t)) + ` "$@"`,
		"systemctl": `$(sed -n "s/^ExecStart=//p" "$ROOT/$3.service") > "$ROOT/server.log" 2>&1 & echo $! > "$ROOT/server.pid"`,
	} {
		if err := os.MkdirAll(dir+"/fake", 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, "fake", fake), 0o700, "#!/bin/sh\n"+script+"\n")
	}
	t.Cleanup(func() {
		run(context.WithoutCancel(t.Context()), fmt.Sprintf(`kill -9 "$(cat "$ROOT/server.pid")"
psql -q -c 'drop database %[1]s with (force)' -c 'drop database %[1]s_visibility with (force)' -c 'drop role %[1]s'`, name))
	})
	replaced := []string{
		"docs/deploy/temporal-server.yaml", dir + "/template.yaml",
		"/opt/temporal", dir, "/etc/temporal", dir, "/etc/systemd/system/", dir + "/", "-o root -g temporal ", "", "/usr/local/bin", dir,
		"role temporal ", "role " + name + " ", "database temporal", "database " + name, "owner temporal", "owner " + name,
		"SQL_USER=temporal", "SQL_USER=" + name, "user: temporal", "user: " + name, "databaseName: temporal", "databaseName: " + name,
		"SQL_HOST=127.0.0.1 SQL_PORT=5432", "SQL_HOST=" + server.Hostname() + " SQL_PORT=" + server.Port(), "127.0.0.1:5432", server.Host,
	}
	for _, port := range []string{"7233", "7234", "7235", "7239", "6933", "6934", "6935", "6939"} {
		_, free, _ := net.SplitHostPort(freeAddress(t))
		replaced = append(replaced, port, free)
	}
	edit := strings.NewReplacer(replaced...)
	writeFile(t, dir+"/template.yaml", 0o600, edit.Replace(readFile(t, "../docs/deploy/temporal-server.yaml")))
	var script strings.Builder
	for _, block := range regexp.MustCompile("(?s)   ```sh\n(.*?)   ```").FindAllStringSubmatch(readFile(t, "../docs/temporal.md"), -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimPrefix(line, "   ")
			if !strings.HasPrefix(line, "make ") && !strings.Contains(line, "go build") && !strings.HasPrefix(line, "install build/") {
				script.WriteString(edit.Replace(line))
			}
		}
	}
	unit := edit.Replace(readFile(t, "../docs/deploy/temporal-server.service"))
	run(t.Context(), fmt.Sprintf("ln -s \"$PWD\"/build/bin/temporal-server \"$PWD\"/build/bin/temporal-sql-tool %[1]s/\n%[2]s\n",
		dir, strings.Replace(script.String(), "systemctl enable", "cat > "+dir+"/temporal-server.service <<'UNIT'\n"+unit+"UNIT\nsystemctl enable", 1)))
	health, err := exec.CommandContext(t.Context(), temporalCommand(t), "operator", "cluster", "health", "--address", "127.0.0.1:"+edit.Replace("7233")).CombinedOutput()
	if err != nil || !strings.Contains(string(health), "SERVING") {
		t.Errorf("the server is not healthy: %v: %s", err, health)
	}
}
