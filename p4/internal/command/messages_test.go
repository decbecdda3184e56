package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// messageCases are messages that testdata/messages.tsv does not have: warnings, messages of
// several lines, of brokers and of other releases, and text that imitates another message.
// Severity 0 stands for text on stderr, without a record.
var messageCases = []struct {
	severity, generic int
	text              string
	class             failure.Class
	skip              review.SkipReason
}{
	{2, 17, "//d/f#3 - no such file(s).", failure.NotFound, review.SkipPurged},
	{2, 17, "//d/f#3 - no file(s) at that revision.", failure.NotFound, review.SkipPurged},
	{2, 17, "//d/f@7 - no file(s) at that changelist number.", failure.NotFound, review.SkipPurged},
	{2, 17, "//secret/... - protected namespace - access denied.", failure.PermissionDenied, review.SkipDenied},
	{2, 17, "//d/f#3 - no permission for operation on file(s).", failure.PermissionDenied, review.SkipDenied},
	{2, 17, "//d/f - file(s) not in client view.", failure.PermissionDenied, review.SkipDenied},
	{2, 4, "Translation of file content failed near line 1 file //d/f", failure.InputInvalid, review.SkipNotDecodable},
	{3, 33, "Operation 'user-print' failed.\nLibrarian checkout depot/file1 failed.\nopen for read: /p4/depot/file1,v: No such file or directory", failure.UpstreamInternal, review.SkipDamaged},
	{3, 33, "Librarian checkout depot/file1 failed.\nopen for read: /p4/depot/file1,v: Too many open files", failure.ServerBusy, ""},
	{2, 17, "//d/no space left on device, try again: Too many open files#1 - no such file(s).", failure.NotFound, review.SkipPurged},
	{3, 2, "//depot/Librarian checkout a failed. - no such file(s).", failure.NotFound, review.SkipPurged},
	{3, 38, "Broker - Connect to server failed; check $P4PORT.\nTCP connect to commit:1666 failed.", failure.NetworkUnreachable, ""},
	{3, 5, "'x' validation failed: one\nYour session has expired, please login again.", failure.PermissionDenied, ""},
	{0, 0, "Character set must be one of:\nnone, auto, utf8\nCheck P4CHARSET and your '-C' option.", failure.ConfigInvalid, ""},
	{0, 0, "Perforce client error:\n\tConnect to server failed; check $P4PORT.\n\tTCP port number 99999 is out of range.", failure.ConfigInvalid, ""},
	{0, 0, "Perforce client error:\n\tRpcTransport: partner is not a Perforce client/server.", failure.ConfigInvalid, ""},
	{0, 0, "Failed client connect, server using SSL.\nClient must add SSL protocol prefix to P4PORT.", failure.ConfigInvalid, ""},
	{3, 38, "The authenticity of '10.0.0.1:1666' can't be established,\nthis may be your first attempt", failure.ConfigInvalid, ""},
	{0, 0, "TCP receive exceeded maximum configured duration of 60 seconds.", failure.NetworkTimeout, ""},
	{0, 0, "Perforce client error:\n\tConnect to server failed; check $P4PORT.\n\tName or service not known", failure.NetworkUnreachable, ""},
	{0, 0, "Perforce client error:\n\tTCP receive failed.\n\tread: socket: Connection reset by peer", failure.NetworkUnreachable, ""},
	{0, 0, "Perforce client error:\n\tSSL receive failed.\n\tread: Connection reset by peer", failure.NetworkUnreachable, ""},
	{0, 0, "Perforce client error:\n\tRpcTransport: partial message read", failure.NetworkUnreachable, ""},
	{3, 35, "arc read: no route to the archive", failure.UpstreamInternal, review.SkipDamaged},
	{0, 0, "Perforce client error:\n\tp4 -h for usage.\n\tInvalid option: --bogus.", failure.InvariantViolated, ""},
	{3, 33, "Librarian checkout a failed.\nopen for read: /p4/a,v: Cannot allocate memory", failure.ServerBusy, ""},
	{3, 33, "Librarian checkout a failed.\nread: /p4/a,v: Resource temporarily unavailable", failure.ServerBusy, ""},
	{3, 33, "Librarian checkout a failed.\nread: /p4/a,v: Stale file handle", failure.UpstreamUnavailable, ""},
	{3, 33, "Librarian checkout a failed.\nread: /p4/a,v: Transport endpoint is not connected", failure.UpstreamUnavailable, ""},
	{3, 6, "User reader isn't allowed access from host 10.1.2.3.", failure.PermissionDenied, ""},
	{3, 4, "Your login session to the remote server has expired, please login again.", failure.AuthDenied, ""},
	{3, 4, "Access for user 'reader' has been disabled: account locked.", failure.AuthDenied, ""},
	{3, 0, "The server is temporarily closed.", failure.ServerBusy, ""},
	{3, 35, "Journal file open failed / no space left on device!", failure.ServerBusy, ""},
	{3, 1, "This server is not configured to provide this service.", failure.ConfigInvalid, ""},
	{3, 0, "Busy, please retry.", failure.ServerBusy, ""},
	{3, 0, "Perforce is down for an hour.", failure.ServerBusy, ""},
	{3, 0, "The server is shutting down.", failure.ServerBusy, ""},
	{3, 1, "Failover in progress.", failure.ServerBusy, ""},
}

// Each message has its class.
func TestMessageRules(t *testing.T) {
	t.Parallel()
	for _, c := range messageCases {
		rule, ok := classify(c.text+"\n", strconv.Itoa(c.generic))
		if !ok || rule.Class != c.class || rule.Skip != c.skip {
			t.Errorf("%q is %s, %q (%t); want %s, %q", c.text, rule.Class, rule.Skip, ok, c.class, c.skip)
		}
		if c.severity == 0 {
			continue
		}
		records, err := decodeAll(message(c.severity, c.generic, c.text+"\n"))
		testkit.NoError(t, err)
		if err := records[0].Err(); (err != nil) != (c.severity >= 3) || err != nil && failure.ClassOf(err) != c.class {
			t.Errorf("%q with severity %d is the error %v, want %s", c.text, c.severity, err, c.class)
		}
	}
}

var update = flag.Bool("update", false, "write testdata/messages.tsv")

// TestMessageCatalogue holds the class of every message of severity 3 and above that
// the 2023.2 client and server have, and what follows from it: retries, the circuit
// breaker, and the line of messages.txt that decides.
func TestMessageCatalogue(t *testing.T) {
	t.Parallel()
	const file = "testdata/messages.tsv"
	old, err := os.ReadFile(file)
	testkit.NoError(t, err)
	used := make(map[string]int)
	for _, c := range messageCases {
		rule, _ := classify(c.text, strconv.Itoa(c.generic))
		used[rule.pattern]++
	}
	var table strings.Builder
	for line := range strings.Lines(string(old)) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		facts := columns[len(columns)-4:] // name, severity, generic, text
		text := strings.ReplaceAll(facts[3], `\n`, "\n")
		rule, ok := classify(text+"\n", facts[2])
		by := cmp.Or(rule.pattern, "generic "+rule.generic)
		used[by]++
		if !ok || rule.Class == failure.Unknown && rule.pattern != "" {
			t.Errorf("%s: no line of messages.txt decides", facts[0])
		}
		table.WriteString(strings.Join(append([]string{
			string(rule.Class), effect(rule.Class.Retryable(), "retry"), effect(rule.Class.Describe().Scope == failure.ScopeEndpoint, "breaker"), string(rule.Skip), by,
		}, facts...), "\t") + "\n")
	}
	if *update {
		testkit.NoError(t, os.WriteFile(file, []byte(table.String()), 0o600))
	} else if table.String() != string(old) {
		t.Errorf("%s differs from messages.txt: run go test ./p4/internal/command -run TestMessageCatalogue -update and read the difference", file)
	}
	for _, rule := range messages() {
		by := cmp.Or(rule.pattern, "generic "+rule.generic)
		t.Logf("%4d %s (%s, %s): %s", used[by], rule.Class, effect(rule.Class.Retryable(), "retry"), effect(rule.Class.Describe().Scope == failure.ScopeEndpoint, "breaker"), by)
		if used[by] == 0 {
			t.Errorf("no message has %q", by)
		}
	}
}

func effect(yes bool, name string) string {
	if yes {
		return name
	}
	return "no " + name
}

func TestUnknownMessagesAreClassifiedByGenericCode(t *testing.T) {
	t.Parallel()
	for generic, want := range map[int]failure.Class{
		6: failure.PermissionDenied, 33: failure.UpstreamInternal, 36: failure.ConfigInvalid, 38: failure.NetworkUnreachable, 39: failure.TooLarge,
		4: failure.InvariantViolated, 2: failure.NotFound, 99: failure.Unknown,
	} {
		records, err := decodeAll(message(3, generic, "Quite new.\n"))
		testkit.NoError(t, err)
		classified, ok := errors.AsType[*failure.Error](records[0].Err())
		if !ok || classified.Class != want || !strings.HasPrefix(classified.Upstream, "severity 3 generic ") {
			t.Errorf("generic %d is %v, want %s with p4's codes", generic, records[0].Err(), want)
		}
	}
}

// TestCorpus classifies recorded output of failed commands of the real client, where it is
// available.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("CRITICIZER_CORPUS_DIR")
	if dir == "" {
		t.Skip("corpus: CRITICIZER_CORPUS_DIR is not set; make corpus CORPUS=DIR sets it")
	}
	type recordedRun struct {
		Case, Stdout, Stderr string
		Stdout64             []byte `json:"stdout_b64"`
		Argv                 []string
		Exit                 int
	}
	for _, run := range readLines[recordedRun](t, filepath.Join(dir, "p4-fixtures/client-transcripts/error-transcripts.jsonl")) {
		if !slices.Contains(run.Argv, "-G") {
			continue
		}
		records, err := decodeAll(append([]byte(run.Stdout), run.Stdout64...))
		testkit.NoError(t, err)
		for _, rec := range records {
			err = cmp.Or(err, rec.Err())
		}
		if m, ok := classify(run.Stderr, ""); ok {
			err = cmp.Or[error](err, failure.Errorf(m.Class, "%s", m.Text))
		}
		if failed := run.Exit != 0; failed != (err != nil) || failed && failure.ClassOf(err) == failure.Unknown {
			t.Errorf("%s: exit %d, %v", run.Case, run.Exit, err)
		}
	}
}

// readLines decodes a file of JSON lines.
func readLines[T any](t *testing.T, name string) []T {
	t.Helper()
	text, err := os.ReadFile(name)
	testkit.NoError(t, err)
	var all []T
	for line := range bytes.Lines(text) {
		var one T
		testkit.NoError(t, json.Unmarshal(line, &one))
		all = append(all, one)
	}
	if len(all) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return all
}
