package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/criticizer/criticizer/internal/settings"
)

// imageUser is the user ID of the image.
const imageUser = 65532

// A container runs the commands as docker-compose.yml does, without a container engine:
// with a read-only root directory, the image's user without capabilities, the volume,
// secrets and configuration where they are mounted, and only its environment variables.
type container struct {
	r           *installation
	root, state string
	env         []string
}

func newContainer(t *testing.T, in *installation, depot string) *container {
	t.Helper()
	if os.Getuid() != 0 {
		need(t, "only root can change the root directory of a command")
	}
	c := &container{r: in, root: filepath.Join(t.TempDir(), "root"), state: filepath.Join(t.TempDir(), "state")}
	for from, to := range map[string]string{
		binDir + "/worker": "criticizer-worker", binDir + "/criticizer": "criticizer", binDir + "/starter": "criticizer-starter", binDir + "/complaint-rewrite": "complaint-rewrite", binDir + "/p4sim": "usr/local/bin/p4",
		"../docs/deploy/criticizer.yaml": "etc/criticizer/criticizer.yaml", depot: "depot.txtar",
	} {
		c.put(to, readFile(t, from), 0o755, 0)
	}
	c.put("dev/null", "", 0o644, 0)
	c.put("usr/local/bin/p4sim.conf", "P4SIM_DEPOT=/depot.txtar\nP4SIM_STATE=/tmp/p4sim\n", 0o644, 0)
	c.put("run/secrets/database-url", in.database.URL.Reveal(), 0o400, imageUser)
	c.put("run/secrets/redaction-key", "a key of this test, long enough", 0o400, imageUser)
	c.put("run/secrets/evidence-key", in.variable("CRITICIZER_EVIDENCE_KEY"), 0o400, imageUser)
	for _, purpose := range settings.KeysetPurposes {
		c.put("run/secrets/"+purpose+"-keyset", in.variable("CRITICIZER_"+strings.ToUpper(purpose)+"_KEYSET"), 0o400, imageUser)
	}
	for dir, mode := range map[string]os.FileMode{
		c.path("tmp"): 0o755, c.path("proc"): 0o755, c.path("var/lib/criticizer"): 0o755, c.state + "/p4": 0o700, c.state + "/spool": 0o700,
	} {
		if err := os.MkdirAll(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := exec.Command("chown", "-R", fmt.Sprint(imageUser), c.state).Run(); err != nil {
		t.Fatal(err)
	}
	c.env = c.variables()
	return c
}

func (c *container) path(name string) string { return filepath.Join(c.root, name) }

func (c *container) put(name, body string, mode os.FileMode, owner int) {
	c.r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(c.path(name)), 0o755); err != nil {
		c.r.t.Fatal(err)
	}
	writeFile(c.r.t, c.path(name), mode, body)
	if err := os.Chown(c.path(name), owner, owner); err != nil {
		c.r.t.Fatal(err)
	}
}

// variable returns an environment variable of the installation's commands.
func (in *installation) variable(name string) string {
	for _, v := range in.env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	in.t.Fatalf("there is no variable %s", name)
	return ""
}

var reference = regexp.MustCompile(`\$\{(\w+)(:[-?][^}]*)?\}`)

// variables returns the environment of all workers in docker-compose.yml and production.yml
// with the values of this installation, followed by the addresses of the stand-ins.
func (c *container) variables() []string {
	c.r.t.Helper()
	given := map[string]string{}
	for _, name := range []string{"docker-compose.yml", "production.yml"} {
		var file struct {
			Services map[string]struct{ Environment map[string]string }
		}
		if err := yaml.Load([]byte(strings.ReplaceAll(readFile(c.r.t, "../"+name), "!reset ", "")), &file); err != nil {
			c.r.t.Fatal(err)
		}
		for _, stage := range []string{"workflows", "fetch", "redact", "llm", "notify", "retention"} {
			maps.Copy(given, file.Services[stage].Environment)
		}
	}
	if len(given) < 14 {
		c.r.t.Fatalf("the compose files give the workers %d variables", len(given))
	}
	answers := map[string]string{
		"P4PORT": "ssl:p4sim:1666", "P4USER": "criticizer", "CRITICIZER_LLM_MODEL": "llmsim-1", "CRITICIZER_LLM_BASE_URL": c.r.endpoint,
	}
	env := []string{"PATH=/:/usr/local/bin"}
	for name, value := range given {
		env = append(env, name+"="+reference.ReplaceAllStringFunc(value, func(ref string) string {
			return answers[reference.FindStringSubmatch(ref)[1]]
		}))
	}
	return append(env,
		"CRITICIZER_TEMPORAL_ADDRESS="+c.r.temporal.Address, "CRITICIZER_TEMPORAL_NAMESPACE="+c.r.temporal.Name,
		"CRITICIZER_MAIL_SERVER=smtp+insecure://"+c.r.inbox.SMTPAddr().String())
}

// isolateScript mounts the container's file systems and changes to its user, which has
// no capabilities because it is not root and may gain no privileges.
const isolateScript = `of_image=$PATH
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount --bind "$0" "$0"
mount -t tmpfs -o mode=1777 tmpfs "$0/tmp"
mount -t proc proc "$0/proc"
mount --bind /dev/null "$0/dev/null"
mount --bind "$1" "$0/var/lib/criticizer"
mount -o remount,ro,bind "$0"
root=$0 user=$2; shift 2
setpriv=$(command -v setpriv) chroot=$(command -v chroot)
PATH=$of_image
exec "$setpriv" --no-new-privs "$chroot" --userspec="$user:$user" --groups="$user" "$root" "$@"`

func (c *container) command(env []string, args ...string) *exec.Cmd {
	all := append([]string{"--mount", "--propagation", "private", "/bin/sh", "-ec", isolateScript, c.root, c.state, fmt.Sprint(imageUser)}, args...)
	cmd := exec.Command("unshare", all...)
	cmd.Env = append(append([]string{}, c.env...), env...)
	return cmd
}

func (c *container) must(env []string, args ...string) string {
	c.r.t.Helper()
	cmd := c.command(env, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		c.r.t.Fatal(err)
	}
	late := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		c.r.t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

// A review works end to end within the limits of docker-compose.yml: the commands write
// only to the volume and /tmp, the health check works, and starter spools to the volume.
func TestReviewInAContainer(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, "")
	depot := filepath.Join(t.TempDir(), "depot.txtar")
	writeFile(t, depot, 0o644, "-- user alice alice@corp.test Alice --\n-- change 1 user=alice --\nBegin.\n-- add text //depot/main/a.go --\n"+faulty)
	c := newContainer(t, in, depot)
	in.allow("//depot/main/...")
	listen := "CRITICIZER_WORKER_LISTEN=" + freeAddress(t)
	if out, err := c.command([]string{listen}, "/criticizer-worker", "--healthy").CombinedOutput(); err == nil {
		t.Errorf("a missing worker is healthy: %s", out)
	}
	worker := c.command([]string{listen}, "/criticizer-worker")
	in.startProcess(worker)
	waitFor(t, "a healthy worker", func() bool { return c.command([]string{listen}, "/criticizer-worker", "--healthy").Run() == nil })
	var a startResult
	if out := c.must(nil, "/criticizer-starter", "change-commit", "--json", "--wait", "--timeout", "1m", "1"); json.Unmarshal([]byte(out), &a) != nil || a.Findings == 0 {
		t.Errorf("the starter printed %q", out)
	}
	if n := len(in.mails(1)); n != 1 {
		t.Errorf("%d mails, want 1\n%s", n, in.log)
	}
	if n := in.countRows("jobs", "state = 'succeeded'"); n != 1 {
		t.Errorf("%d reviews succeeded, want 1", n)
	}
	c.must(nil, "/criticizer", "status", "1")
	c.must([]string{"CRITICIZER_TEMPORAL_ADDRESS=127.0.0.1:1"}, "/criticizer-starter", "--trigger", "change-commit", "2")
	if kept, err := os.ReadDir(c.state + "/spool"); err != nil || len(kept) == 0 {
		t.Errorf("the spool has %v, %v", kept, err)
	}
	if out, err := c.command([]string{"CRITICIZER_P4_STATE_DIR=/elsewhere"}, "/criticizer", "doctor", "--roles", "fetch").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "read-only file system") {
		t.Errorf("the root can be written: %s, %v", out, err)
	}
}
