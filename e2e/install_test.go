package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/store/storetest"
)

// commandBlock matches the commands that a reader copies into a shell.
var (
	commandBlock   = regexp.MustCompile("(?s)```sh\n(.*?)```")
	secondDatabase = regexp.MustCompile("(?s)```sql\n(.*?)```")
)

// TestInstallPage runs every command of docs/install.md in order, as root on a new host
// does. Directories are below a temporary one, the servers are the test's, and scripts
// stand in for the host's useradd, chown, runuser and systemctl.
func TestInstallPage(t *testing.T) {
	t.Parallel()
	temporal := temporalCommand(t)
	in := newInstallation(t, newDepot(t, manyChanges(1)...))
	host := newHost(t, in, temporal)
	page := readFile(t, "../docs/install.md")
	blocks := commandBlock.FindAllStringSubmatch(page, -1)
	if len(blocks) != 9 {
		t.Fatalf("the page has %d blocks of commands, want one for each of its 9 steps", len(blocks))
	}
	var steps strings.Builder
	for i, block := range blocks {
		fmt.Fprintf(&steps, "echo step %d\n%s", i+1, block[1])
		if i == 1 { // the test's cluster has other databases
			fmt.Fprintf(&steps, "psql -v ON_ERROR_STOP=1 <<'SQL'\n%sSQL\n", secondDatabase.FindStringSubmatch(page)[1])
		}
	}
	if out, err := host.run(steps.String()); err != nil {
		log, _ := os.ReadFile(filepath.Join(host.dir, "worker.log"))
		t.Fatalf("%v\n%s\nthe worker:\n%s", err, out, log)
	}
	if mails := in.mails(1); len(mails) == 0 {
		t.Error("after all steps, no mail was sent")
	}
	host.runRecipes()
}

// runRecipes runs commands of other pages on the installed host: those that answer an author's
// question, prove a list of paths, rules of redaction and a model, and forget a changelist.
func (h *host) runRecipes() {
	h.t.Helper()
	h.commands("fake", map[string]string{"criticizer": binDir + "/criticizer"})
	_, why, _ := strings.Cut(readFile(h.t, "../docs/why.md"), "\n    ")
	why, _, _ = strings.Cut(why, "\n\n")
	out, err := h.run("set -a; . /etc/criticizer/worker-all.env; set +a\n" + why)
	if err != nil || !strings.Contains(out, "review   succeeded, findings") || !strings.Contains(out, "olga is neither author") {
		h.t.Errorf("the commands of docs/why.md: %v\n%s", err, out)
	}
	paths := readFile(h.t, "../docs/paths.md")
	_, list, _ := strings.Cut(paths, "```yaml\n")
	list, _, _ = strings.Cut(list, "```")
	check := regexp.MustCompile(`(?m)^ +(criticizer allowlist check .*)$`).FindString(paths)
	writeFile(h.t, h.dir+"/etc/recipe.yaml", 0o600, strings.ReplaceAll("\n"+list, "\n   ", "\n"))
	out, err = h.run("unset CRITICIZER_P4_ALLOWED_PATHS\nexport CRITICIZER_CONFIG=/etc/criticizer/recipe.yaml\n" + check)
	if code := (*exec.ExitError)(nil); !errors.As(err, &code) || code.ExitCode() != 1 || !strings.Contains(out, "embargo") {
		h.t.Errorf("the check of docs/paths.md ends with %v, want status 1 and the embargo: %s", err, out)
	}
	redaction := readFile(h.t, "../docs/redaction.md")
	_, config, _ := strings.Cut(redaction, "```yaml\n")
	config, _, _ = strings.Cut(config, "```")
	writeFile(h.t, h.dir+"/etc/corp.rules", 0o600, regexp.MustCompile(`(?m)^ +(token studio-token .*)$`).FindStringSubmatch(redaction)[1]+"\n")
	writeFile(h.t, h.dir+"/etc/masks.yaml", 0o600, h.edit.Replace(strings.ReplaceAll("\n"+config, "\n   ", "\n")))
	proof := regexp.MustCompile(`(?m)^ +(echo .* redact)$`).FindString(redaction)
	out, err = h.run(strings.Replace(proof, "criticizer.yaml", "masks.yaml", 1))
	if err != nil || !strings.Contains(out, "[REDACTED:internal-host:") || !strings.Contains(out, "[REDACTED:studio-token:") {
		h.t.Errorf("the proof of docs/redaction.md ends with %v: %s", err, out)
	}
	forget := regexp.MustCompile(`(?m)^ +criticizer forget .*\n +criticizer status .*$`).FindString(readFile(h.t, "../docs/data.md"))
	out, err = h.run("set -a; . /etc/criticizer/worker-all.env; set +a\ncriticizer doctor --model\n" + forget)
	if err != nil || !strings.Contains(out, "changelist 1 is forgotten") || !strings.Contains(out, "succeeded, findings, 1 finding, forgotten") {
		h.t.Errorf("the proof of docs/model.md and the commands of docs/data.md end with %v: %s", err, out)
	}
}

// A host stands in for the machine on which Criticizer is installed.
type host struct {
	t    *testing.T
	dir  string // instead of /
	env  []string
	edit *strings.Replacer
}

func newHost(t *testing.T, in *installation, temporal string) *host {
	t.Helper()
	dir := t.TempDir()
	server, err := url.Parse(os.Getenv(storetest.URLVariable))
	if err != nil {
		t.Fatal("the test cluster's URL cannot be parsed")
	}
	password, _ := server.User.Password()
	name := strings.ToLower(strings.ReplaceAll(filepath.Base(in.dir)+filepath.Base(dir), "/", "")) + fmt.Sprint(os.Getpid())
	outside := slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "CRITICIZER_DATABASE_") })
	h := &host{t: t, dir: dir, env: append(outside, "ROOT="+dir,
		"PATH="+dir+"/fake:"+os.Getenv("PATH"),
		"PGHOST="+server.Hostname(), "PGPORT="+server.Port(), "PGUSER="+server.User.Username(), "PGPASSWORD="+password, "PGDATABASE=postgres",
		"TEMPORAL_ADDRESS="+in.temporal.Address,
		"CRITICIZER_P4_COMMAND="+in.path("p4"), "CRITICIZER_P4_STATE_DIR="+dir+"/var/p4", "CRITICIZER_P4_ALLOWED_PATHS=//depot/...",
		"CRITICIZER_CONFIG="+dir+"/etc/criticizer.yaml", "CRITICIZER_LLM_BASE_URL="+in.endpoint, "CRITICIZER_WORKER_LISTEN=127.0.0.1:0",
		"CRITICIZER_MAIL_SERVER=smtp+insecure://"+in.inbox.SMTPAddr().String(), "CRITICIZER_MAIL_JOURNAL_SERVER="+inboxAt(in.inbox),
	)}
	h.commands("built", map[string]string{"criticizer-worker": binDir + "/worker", "criticizer": binDir + "/criticizer", "criticizer-starter": binDir + "/starter"})
	for _, sub := range []string{"/systemd", "/etc"} {
		if err := os.Mkdir(dir+sub, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, dir+"/etc/criticizer.yaml", 0o600, "") // the file at the default place need not exist
	h.fake("useradd", "")
	h.fake("chown", "")
	h.fake("runuser", `shift 3; exec "$@"`)
	h.fake("systemctl", `case "$3" in *[!A-Za-z0-9:_.@-]*) echo "$3 is not the name of a unit" >&2; exit 1;; esac
unit=${3#*@}
set -a; . "$ROOT/etc/worker-$unit.env"; set +a
"$ROOT/opt/criticizer-worker" --config "$ROOT/etc/criticizer.yaml" --roles "$unit" > "$ROOT/worker.log" 2>&1 &
echo $! > "$ROOT/worker.pid"`)
	h.commands("fake", map[string]string{"temporal": temporal})
	t.Cleanup(func() { // after the end of the test's context
		stop := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", `kill "$(cat "$ROOT/worker.pid")"`)
		stop.Env = h.env
		if out, err := stop.CombinedOutput(); err != nil {
			t.Errorf("stop the worker: %v: %s", err, out)
		}
	})
	database := "installed_" + name
	h.edit = strings.NewReplacer(
		"make build\n", "",
		"build/bin/", dir+"/built/",
		"/opt/criticizer", dir+"/opt", "/etc/criticizer", dir+"/etc", "/etc/systemd/system/", dir+"/systemd/", "/var/lib/criticizer", dir+"/var",
		"--namespace criticizer", "--namespace installed-"+name,
		"TEMPORAL_ADDRESS=127.0.0.1:7233", "TEMPORAL_ADDRESS="+in.temporal.Address, "TEMPORAL_NAMESPACE=criticizer", "TEMPORAL_NAMESPACE=installed-"+name,
		"alter role criticizer", "alter role "+database, "criticizer_audit from criticizer", "criticizer_audit from "+database,
		"create role criticizer login", "create role "+database+" login", "to criticizer with admin option", "to "+database+" with admin option",
		"create database criticizer owner criticizer", fmt.Sprintf("create database %s owner %s", database, database),
		"//criticizer:CHANGE-ME@127.0.0.1:5432/criticizer", fmt.Sprintf("//%s:CHANGE-ME@%s/%s", database, server.Host, database),
		" 4711", " 1",
	)
	return h
}

// commands links commands into a directory under other names.
func (h *host) commands(dir string, names map[string]string) {
	h.t.Helper()
	for name, file := range names {
		if err := os.MkdirAll(filepath.Join(h.dir, dir), 0o755); err != nil {
			h.t.Fatal(err)
		}
		if err := os.Symlink(file, filepath.Join(h.dir, dir, name)); err != nil {
			h.t.Fatal(err)
		}
	}
}

// fake writes a script that replaces a command of the host.
func (h *host) fake(name, script string) {
	h.t.Helper()
	writeFile(h.t, filepath.Join(h.dir, "fake", name), 0o755, "#!/bin/sh\n"+script+"\n")
}

// run runs commands of the page in a shell.
func (h *host) run(commands string) (string, error) {
	cmd := exec.CommandContext(h.t.Context(), "sh", "-e")
	cmd.Stdin, cmd.Env, cmd.Dir = strings.NewReader(h.edit.Replace(commands)), h.env, ".."
	out, err := cmd.CombinedOutput()
	return string(out), err
}
