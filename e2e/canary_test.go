package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/store"
)

// canaries is the number of planted secrets.
const canaries = 200

// TestCanary plants fake secrets of every class in descriptions, paths and diffs, reviews
// the changes while faults are injected, and then searches every byte that the product
// sent or stored: no secret reaches the model (security 9.5.1), the logs (security 9.3.3)
// or stored data in plain text (security 9.4.2). Only p4sim may hold them.
func TestCanary(t *testing.T) {
	t.Parallel()
	searchReviews(t, newCanaries(rand.New(rand.NewPCG(1, 2)), canaries),
		"CRITICIZER_REDACTION_EMAILS=true", "CRITICIZER_REDACTION_INTERNAL_IPS=true", "CRITICIZER_REDACTION_HOST_SUFFIXES=corp.internal")
}

// The default policy masks the same secrets, but for addresses and names of hosts. Half as
// many hold each class three times.
func TestCanaryOfTheDefaultPolicy(t *testing.T) {
	t.Parallel()
	searchReviews(t, slices.DeleteFunc(newCanaries(rand.New(rand.NewPCG(3, 4)), canaries/2), func(c canary) bool { return c.byChoice }))
}

// searchReviews reviews changes with the canaries under a policy of redaction, and searches
// for them.
func searchReviews(t *testing.T, planted []canary, policy ...string) {
	t.Helper()
	depot, changes := plantCanaries(t, planted)
	in := newInstallation(t, depot)
	var requests syncBuffer
	in.model = llmsim.New(llmsim.Config{Record: &requests})
	in.applyAllowList(store.AllowList{Allowed: []string{"//depot/..."}, Embargoed: []string{"//depot/embargo/..."}})
	if err := os.Mkdir(in.path("tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	in.env = append(in.env, "TMPDIR="+in.path("tmp"), "CRITICIZER_LOG_LEVEL=debug", "CRITICIZER_WORKER_NO_BREAKER=true",
		"CRITICIZER_P4_EMBARGOED_PATHS=//depot/embargo/...", "CRITICIZER_LLM_REVIEW_CONTEXT=all", "CRITICIZER_MAIL_CLEAN_TO=everyone")
	in.env = append(in.env, policy...)
	in.injectFaults()
	worker := in.startWorker()
	output := in.reviewAll(changes)
	_ = interrupt(worker) // completes its log

	searchAll(t, planted, []sink{
		{"requests to the model", requests.Bytes()},
		{"output of starter", output},
		{"log of the worker", in.log.Bytes()},
		{"mails and files", in.files("p4sim", "p4log", "p4fault")},
		{"workflow histories", in.histories()},
		{"tables of Postgres", in.tables()},
	})
	// The absence of canaries proves nothing unless their context has arrived.
	for _, marker := range []string{"harbour_0", "Settle the accounts", "[REDACTED:aws-key:", "def open_vault_0"} {
		if !bytes.Contains(requests.Bytes(), []byte(marker)) {
			t.Errorf("no request has %q: nothing was tested", marker)
		}
	}
	if calls := in.model.Stats().Calls; calls < changes {
		t.Errorf("%d model calls about %d changes: little was tested", calls, changes)
	}
}

// searchAll fails the test if a sink contains a canary or is empty.
func searchAll(t *testing.T, planted []canary, places []sink) {
	t.Helper()
	leaks := 0
	for _, p := range places {
		found := p.leaks(planted)
		leaks += len(found)
		t.Logf("%-24s %9d bytes, %d hits", p.name, len(p.body), len(found))
		for _, f := range found {
			t.Errorf("%s: %s", p.name, f)
		}
		if len(p.body) == 0 {
			t.Errorf("%s is empty: nothing was tested", p.name)
		}
	}
	t.Logf("%d canaries, %d hits", len(planted), leaks)
}

// injectFaults has the model fail, return invalid answers and reject one change
// permanently, and the mail server defer messages.
func (in *installation) injectFaults() {
	in.t.Helper()
	in.inject(llmsim.Fault{Kind: llmsim.BadRequest, Match: "//depot/rejected/"}, llmsim.Fault{Kind: llmsim.Unavailable, Times: 2},
		llmsim.Fault{Kind: llmsim.Garbage, Times: 1}, llmsim.Fault{Kind: llmsim.BadSchema, Times: 1})
	in.inbox.Inject(inbox.Fault{At: inbox.AtRcpt, Code: 451, Enhanced: [3]int{4, 3, 0}, Times: 2})
}

// reviewAll reviews every change and returns the output of starter.
func (in *installation) reviewAll(changes int) []byte {
	in.t.Helper()
	var output bytes.Buffer
	for _, args := range [][]string{{"change-commit"}, {"change-commit", "--wait"}} {
		for cl := range changes {
			starter := exec.Command(filepath.Join(binDir, "starter"), append(args, fmt.Sprint(cl+1))...)
			starter.Env = in.env
			out, err := starter.CombinedOutput()
			output.Write(out)
			if err != nil && !bytes.Contains(out, []byte("dead")) {
				in.t.Errorf("changelist %d: %v: %s", cl+1, err, out)
			}
		}
	}
	return output.Bytes()
}

// files returns the names and contents of all files of the installation except some.
func (in *installation) files(except ...string) []byte {
	in.t.Helper()
	var all bytes.Buffer
	err := filepath.WalkDir(in.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if slices.Contains(except, d.Name()) && filepath.Dir(path) == in.dir {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		fmt.Fprintf(&all, "%s\n", path)
		if d.Type().IsRegular() {
			body, err := os.ReadFile(path)
			all.Write(body)
			return err
		}
		return nil
	})
	if err != nil {
		in.t.Fatal(err)
	}
	return all.Bytes()
}

// histories returns all that Temporal stores: events, search attributes and memos.
func (in *installation) histories() []byte {
	in.t.Helper()
	var all bytes.Buffer
	add := func(m proto.Message) {
		body, err := proto.Marshal(m)
		if err != nil {
			in.t.Fatal(err)
		}
		all.Write(body)
	}
	listed, err := in.namespace.ListWorkflow(in.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Namespace: in.temporal.Name})
	if err != nil {
		in.t.Fatal(err)
	}
	for _, run := range listed.GetExecutions() {
		add(run)
		for _, event := range in.history(run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId()) {
			add(event)
		}
	}
	return all.Bytes()
}

// tables returns all rows of all tables as text, with bytes in hexadecimal.
func (in *installation) tables() []byte {
	in.t.Helper()
	var all bytes.Buffer
	for _, query := range in.queryStrings(`select format('select t::text from %I.%I t', schemaname, tablename) from pg_tables
		where schemaname not in ('pg_catalog', 'information_schema')`) {
		for _, row := range in.queryStrings(query) {
			fmt.Fprintln(&all, row)
		}
	}
	return all.Bytes()
}

// queryStrings returns the rows of a query with one column.
func (in *installation) queryStrings(query string) []string {
	in.t.Helper()
	rows, err := in.database.Conn(in.t).Query(in.t.Context(), query)
	if err != nil {
		in.t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			in.t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		in.t.Fatal(err)
	}
	return all
}

// plantCanaries makes a depot whose changes contain the canaries, and returns the number
// of changes.
func plantCanaries(t *testing.T, planted []canary) (depot string, changes int) {
	t.Helper()
	depot = newDepot(t, map[string]string{"README.md": "harbour master\n"})
	const perChange = 20
	for i, some := range slices.Collect(slices.Chunk(planted, perChange)) {
		dir := map[int]string{3: "rejected", 7: "embargo"}[i]
		message := "Settle the accounts of harbour " + fmt.Sprint(i) + "\n\n"
		settings := filepath.Join(dir, fmt.Sprintf("harbour_%d.py", i))
		// The vault is read as the context of the second change, which does not touch it.
		vault := fmt.Sprintf("vault_%d", i)
		body := "from " + vault + " import open_" + vault + "\nfrom embargo.harbour_7 import moor\n\ndef moor():\n    # TODO: close it\n    f = open(\"x\")\n    return f.read()\n"
		source, end := "def open_"+vault+"():\n", ""
		for j, c := range some {
			if !strings.Contains(c.text, "\n") {
				source += "    " + c.text + "\n"
			}
			switch {
			case c.atEnd:
				addFile(t, depot, filepath.Join(dir, fmt.Sprintf("end_%d_%d.py", i, j)), "def moor():\n    pass\n\n"+c.text+"\n")
				end = "\n" + c.text
			case c.inPath && j%2 == 0:
				addFile(t, depot, filepath.Join(dir, "keys", c.text, "main.go"), clean)
			case j%4 == 1:
				message += c.text + "\n"
			default:
				body += "\n# TODO: move this to the vault\n" + c.text + "\n"
			}
		}
		addFile(t, depot, settings, body)
		addFile(t, depot, filepath.Join(dir, vault+".py"), source)
		git(t, depot, "commit", "-q", "-m", message+end)
		// The next change has them in removed lines and in context lines.
		lines := strings.SplitAfter(body, "\n")
		addFile(t, depot, settings, strings.Replace(strings.Join(lines[:len(lines)/2], ""), "def moor():", "def anchor():\n    open_"+vault+"()", 1))
		git(t, depot, "commit", "-q", "-m", "Tidy up")
		changes += 2
	}
	history := git(t, depot, "log", "-p", "--no-ext-diff", "--text")
	for _, c := range planted {
		if !strings.Contains(history, c.secret) {
			t.Fatalf("canary %q was not planted", c.text)
		}
	}
	return depot, changes + 1
}

// The search finds canaries in an unredacted request, in every encoding that could hide
// them.
func TestCanaryIsSeenWithoutRedaction(t *testing.T) {
	t.Parallel()
	planted := newCanaries(rand.New(rand.NewPCG(1, 2)), canaries)
	for name, encode := range encodings {
		var body strings.Builder
		for _, c := range planted {
			body.WriteString(encode("x "+c.text+" y") + "\n")
		}
		seen := sink{name, []byte(body.String())}.leaks(planted)
		if len(seen) != canaries {
			t.Errorf("%s: %d of %d canaries found", name, len(seen), canaries)
		}
	}
	if seen := (sink{"nothing", []byte("package a\n\nfunc A() int { return 1 }\n")}).leaks(planted); len(seen) != 0 {
		t.Errorf("found in harmless text: %q", seen)
	}
}
