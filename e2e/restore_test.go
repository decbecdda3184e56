package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/storetest"
	"github.com/criticizer/criticizer/workflows/contract"
)

// A backup is a copy of an installation's database. It stands for pg_dump and pg_restore, which
// need a cluster of their own ([TestBackupAndRestoreCommands]).
type backup struct {
	in         *installation
	name, copy string
	run        func(ctx context.Context, statement string) error // in the cluster's own database
}

// backUp copies the database. No worker may run.
func (in *installation) backUp() backup {
	in.t.Helper()
	cluster := storetest.Database{URL: secret.New(os.Getenv(storetest.URLVariable))}
	conn := cluster.Conn(in.t)
	b := backup{in: in, run: func(ctx context.Context, statement string) error {
		_, err := conn.Exec(ctx, statement)
		return err
	}}
	in.queryRow("select current_database(), current_database() || '_backup'", &b.name, &b.copy)
	in.t.Cleanup(func() { b.exec("drop database if exists %q with (force)", b.copy) })
	b.replace(b.copy, b.name)
	return b
}

// replace replaces a database by a copy of another one.
func (b backup) replace(name, by string) {
	b.in.t.Helper()
	b.exec("drop database if exists %q with (force)", name)
	b.exec("select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '%s'", by)
	b.exec("create database %q template %q", name, by)
}

func (b backup) exec(statement string, names ...any) {
	b.in.t.Helper()
	if err := b.run(context.WithoutCancel(b.in.t.Context()), fmt.Sprintf(statement, names...)); err != nil {
		b.in.t.Fatalf(statement+": %v", append(names, err)...)
	}
}

// follow runs the commands of a section of docs/restore.md in their order, with what a
// reader has to replace, and returns their output. b stands for the commands of Postgres.
func (in *installation) follow(section string, b backup, replace ...string) (output string) {
	in.t.Helper()
	bin := in.path("bin")
	for name, target := range map[string]string{
		"criticizer": filepath.Join(binDir, "criticizer"), "criticizer-starter": filepath.Join(binDir, "starter"), "temporal": temporalCommand(in.t),
	} {
		writeFile(in.t, filepath.Join(bin, name), 0o700, "#!/bin/sh\nexec "+quote(target)+" \"$@\"\n")
	}
	_, text, _ := strings.Cut(readFile(in.t, "../docs/restore.md"), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n##")
	found := regexp.MustCompile(`(?m)^ {7}(\S.*)$`).FindAllStringSubmatch(text, -1)
	if len(found) < 3 {
		in.t.Fatalf("docs/restore.md has %d commands in section %q", len(found), section)
	}
	for _, command := range found {
		line := strings.NewReplacer(replace...).Replace(command[1])
		_, statement, isStatement := strings.Cut(line, `--command="`)
		switch {
		case strings.Contains(line, "pg_restore"):
			b.replace(b.name, b.copy)
		case isStatement:
			in.exec(strings.TrimSuffix(statement, `"`))
		default:
			cmd := exec.CommandContext(in.t.Context(), "sh", "-c", line)
			cmd.Env = append(slices.Clone(in.env), "TEMPORAL_ADDRESS="+in.temporal.Address, "PATH="+bin+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if output += string(out); err != nil {
				in.t.Fatalf("%s: %v: %s", line, err, out)
			}
		}
	}
	return output
}

// awaitMails waits until the reviews of the first n changelists have succeeded, and checks
// that each of their recipients has one mail.
func (in *installation) awaitMails(n int) {
	in.t.Helper()
	waitFor(in.t, "the reviews", func() bool { return in.countRows("jobs", "state = 'succeeded'") == n })
	for cl := range review.Changelist(n) {
		recipients := in.countRows("deliveries", fmt.Sprintf("changelist_id = %d and status = 'sent'", cl+1))
		if mails := len(in.mails(cl + 1)); recipients == 0 || mails != recipients {
			in.t.Errorf("changelist %d: %d mails for %d recipients", cl+1, mails, recipients)
		}
	}
	if left := in.countRows("deliveries", "status <> 'sent'"); left > 0 {
		in.t.Errorf("%d deliveries are not sent", left)
	}
}

// hangAtModel starts a review and returns when it is at the model, which does not answer.
func (in *installation) hangAtModel(cl string) (workflowID string) {
	in.t.Helper()
	before := in.model.Stats().Calls
	in.inject(llmsim.Fault{Kind: llmsim.Hang, Times: 1})
	workflowID = in.mustStart(cl).WorkflowID
	waitFor(in.t, "the model call", func() bool { return in.model.Stats().Calls > before })
	return workflowID
}

// After a restore as docs/restore.md describes it, no mail is sent twice and none is
// missing: neither a mail that the backup calls unsent, nor those of a review whose rows are
// missing, of one that was in progress, and of a later one.
func TestRestoreOfPostgres(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(4)...))
	temporalCommand(t)
	in.disableBreaker()
	in.proxyMail()
	worker := in.startWorker()
	in.mailProxy.takeDown()
	in.mustStart("1")
	waitFor(t, "an attempt to send", func() bool { return in.countRows("deliveries", "attempts > 0") > 0 })
	if err := interrupt(worker); err != nil {
		t.Fatal(err)
	}
	if n := in.countRows("deliveries", "begun or status <> 'pending'"); n > 0 {
		t.Fatalf("the backup has %d deliveries that are in doubt or ended", n)
	}
	b := in.backUp()

	in.mailProxy.bringUp()
	worker = in.startWorker()
	in.waitForJobs(1)
	in.mustStart("--wait", "2")
	in.awaitMails(2)
	in.hangAtModel("3")
	kill(worker)

	at := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339) // the settle window has ended
	in.follow("Criticizer's database is restored", b, "2026-01-31T03:00:00Z", at, "4711", "4", "criticizer doctor", "true",
		"--namespace criticizer", "--namespace "+in.temporal.Name)
	in.startWorker()
	in.mustStart("4")
	in.awaitMails(4)
}

// The commands of docs/restore.md work with the tools of Postgres, after docs/install.md has taken
// the owner's rights back: in the same cluster, and in a new one whose roles docs/install.md makes.
func TestBackupAndRestoreCommands(t *testing.T) {
	t.Parallel()
	install, restore := readFile(t, "../docs/install.md"), readFile(t, "../docs/restore.md")
	commands := func(page, pattern string) string {
		found := regexp.MustCompile(`(?m)^ *(` + pattern + `.*)$`).FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("a page lacks the command %q", pattern)
		}
		return found[1] + "\n"
	}
	prepare := commandBlock.FindAllStringSubmatch(install, -1)[1][1] + "criticizer migrate\n" + commands(install, "runuser .*nocreaterole")
	restored := commands(restore, "runuser .*pg_restore") + commands(restore, "criticizer migrate") + commands(restore, "runuser .*--command=")
	dir, binaries := t.TempDir(), postgresBinaries(t)
	writeFile(t, filepath.Join(dir, "runuser"), 0o700, "#!/bin/sh\nshift 3\nexec \"$@\"\n")
	writeFile(t, filepath.Join(dir, "criticizer"), 0o700, "#!/bin/sh\nexec "+quote(filepath.Join(binDir, "criticizer"))+" \"$@\"\n")
	writeFile(t, filepath.Join(dir, "criticizer.yaml"), 0o600, "")
	run := func(c *cluster, script string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+binaries+":"+os.Getenv("PATH"),
			"PGHOST=127.0.0.1", "PGPORT="+c.port, "PGUSER=super", "PGPASSWORD=", "PGDATABASE=postgres", "CRITICIZER_CONFIG="+filepath.Join(dir, "criticizer.yaml"),
			"CRITICIZER_DATABASE_URL=postgres://criticizer:CHANGE-ME@127.0.0.1:"+c.port+"/criticizer")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	newCluster := func() *cluster {
		c := initCluster(t, binaries)
		t.Cleanup(func() { c.stop(syscall.SIGQUIT) })
		run(c, prepare)
		return c
	}
	old := newCluster()
	run(old, `psql -d criticizer -c "insert into criticizer.audit_log (claimed, action, object) values ('olga', 'kept', 'x')"
`+commands(restore, "runuser .*pg_dump"))
	for name, c := range map[string]*cluster{"the same cluster": old, "a new cluster": newCluster()} {
		run(c, restored)
		state := run(c, `psql -d criticizer -At -c "select count(*), min(claimed) from criticizer.audit_log where action = 'kept'" \
-c "select nspowner::regrole, has_table_privilege('criticizer_llm', 'redacted.artifacts', 'select') from pg_namespace where nspname = 'criticizer'"`)
		if state != "1|olga\ncriticizer_audit|t\n" {
			t.Errorf("%s has after the restore: %s", name, state)
		}
	}
}

// If Temporal's database is lost, a repeated trigger of a review that has succeeded neither
// reviews nor mails again. A review in progress and a dead letter are started again as
// docs/restore.md describes it.
func TestRestoreOfTemporal(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(3)...))
	worker := in.startWorker()
	in.mustStart("--wait", "1")
	in.rejectKey(1)
	in.deadLetter("2", failure.AuthDenied)
	in.hangAtModel("3")
	kill(worker)
	in.namespace, in.temporal = temporaltest.New(t, contract.Attributes()...)
	in.env = append(in.env, "CRITICIZER_TEMPORAL_NAMESPACE="+in.temporal.Name)

	in.exec("update criticizer.jobs set updated_at = updated_at - interval '1 minute', checked_at = null") // the watch waits for that
	in.startWorker()
	waitFor(t, "the canceled job", func() bool { return in.countRows("jobs", "state = 'canceled'") == 1 })
	calls := in.model.Stats().Calls
	for _, cl := range []string{"1", "2", "3"} {
		out := in.follow("Temporal's database is lost", backup{}, "4711", cl, "--wait", "--wait --timeout=2m")
		if cl == "1" && !regexp.MustCompile(`(?ms)^3 v1 +canceled .*AUTH_DENIED`).MatchString(out) {
			t.Errorf("the lists do not name the reviews to start: %s", out)
		}
	}
	in.awaitMails(3)
	if n := in.model.Stats().Calls - calls; n != 2 {
		t.Errorf("%d model calls, want those of the reviews that had not succeeded", n)
	}
	if n := in.countRows("dead_letters", "state <> 'resolved'"); n != 0 {
		t.Errorf("%d dead letters are not resolved", n)
	}
}
