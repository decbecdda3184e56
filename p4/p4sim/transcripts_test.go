package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fixtures holds what the real client printed. It is not part of the project.
const fixtures = "../../../shared/p4-fixtures"

// A transcript is one recorded run of the real client.
type transcript struct {
	Case      string
	Argv      []string
	Env       map[string]string
	Exit      int
	Stdout    string
	StdoutB64 string `json:"stdout_b64"`
	Stderr    string
}

func (r transcript) name() string { return r.Case + " " + strings.Join(r.Argv, " ") }

func readTranscripts(t *testing.T, name string) []transcript {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(fixtures, "client-transcripts", name))
	if os.IsNotExist(err) {
		t.Skip("SKIPPED: the recorded transcripts are not here; nothing was compared with the real client")
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []transcript
	for line := range bytes.Lines(text) {
		var r transcript
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.StdoutB64 != "" {
			decoded, err := base64.StdEncoding.DecodeString(r.StdoutB64)
			if err != nil {
				t.Fatal(err)
			}
			r.Stdout = string(decoded)
		}
		all = append(all, r)
	}
	return all
}

// jamEnv runs commands over the recorded depot, with an index of the test's own.
func jamEnv(t *testing.T) []string {
	t.Helper()
	return []string{"P4SIM_DEPOT=" + filepath.Join(fixtures, "jam-depot"), "P4SIM_STATE=" + t.TempDir(), "P4USER=svc"}
}

type result struct {
	exit           int
	stdout, stderr string
}

func p4(env []string, stdin string, args ...string) result {
	var stdout, stderr bytes.Buffer
	exit := run(append([]string{"p4"}, args...), env, strings.NewReader(stdin), &stdout, &stderr)
	return result{exit, stdout.String(), stderr.String()}
}

// sameAs compares byte for byte.
func (r transcript) sameAs(t *testing.T, got result) bool {
	t.Helper()
	if got.exit == r.Exit && got.stdout == r.Stdout && got.stderr == r.Stderr {
		return true
	}
	t.Errorf("%s: exit %d, want %d\nstdout: %s\nstderr: got %q, want %q",
		r.name(), got.exit, r.Exit, firstDifference(got.stdout, r.Stdout), got.stderr, r.Stderr)
	return false
}

func firstDifference(got, want string) string {
	if got == want {
		return "same"
	}
	n := 0
	for n < len(got) && n < len(want) && got[n] == want[n] {
		n++
	}
	from := max(0, n-40)
	return "at " + string(rune('0'+n%10)) + ": got ..." + clip(got[from:]) + "\nwant ..." + clip(want[from:])
}

func clip(s string) string { return s[:min(len(s), 120)] }

func TestPrintsWhatTheRealClientPrinted(t *testing.T) {
	transcripts := readTranscripts(t, "jam-transcripts.jsonl")
	env := jamEnv(t)
	same := 0
	for _, r := range transcripts {
		if r.sameAs(t, p4(env, "", r.Argv[1:]...)) {
			same++
		}
	}
	t.Logf("%d of %d recorded runs over the Jam depot are the same byte for byte", same, len(transcripts))
}

// failures maps each recorded case to the fault that makes p4sim fail so. The
// arguments of a message are in the -e form of the recording.
func failures(t *testing.T, all []transcript) map[string]string {
	t.Helper()
	found := map[string]string{"server drops connection": `{"fault":"drop"}`}
	for _, r := range all {
		if len(r.Argv) < 2 || r.Argv[1] != "-e" || !strings.HasPrefix(r.Case, "Msg") {
			continue
		}
		line, err := json.Marshal(fault{Fault: "message", ID: r.Case, Args: dumpedArgs(r.Stdout)})
		if err != nil {
			t.Fatal(err)
		}
		found[r.Case] = string(line)
	}
	return found
}

// dumpedArgs reads the lines after the format, up to the exit line.
func dumpedArgs(stdout string) map[string]string {
	_, dump, _ := strings.Cut(stdout, "\n... fmt0 ")
	_, dump, _ = strings.Cut(dump, "\n")
	dump = strings.TrimSuffix(dump[:strings.LastIndex(dump, "\nexit: ")], "\n")
	args := map[string]string{}
	for entry := range strings.SplitSeq("\n"+dump, "\n... ") {
		name, value, ok := strings.Cut(entry, " ")
		if ok {
			args[name] = value
		}
	}
	return args
}

func TestFailsTheWayTheRealClientFailed(t *testing.T) {
	transcripts := readTranscripts(t, "error-transcripts.jsonl")
	env := jamEnv(t)
	faults := failures(t, transcripts)
	same := 0
	for _, r := range transcripts {
		own := append([]string{"P4SIM_FAULT=" + faults[r.Case]}, env...)
		for name, value := range r.Env {
			own = append(own, name+"="+value)
		}
		if r.sameAs(t, p4(own, "", r.Argv[1:]...)) {
			same++
		}
	}
	t.Logf("%d of %d recorded failures are the same byte for byte", same, len(transcripts))
}

// The catalogue's codes, severities and texts are wire format.
func TestCatalogueAgreesWithTheRealMessages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(fixtures, "messages", "p4-messages-2023.2.tsv"))
	if os.IsNotExist(err) {
		t.Skip("SKIPPED: the recorded message table is not here; the catalogue was not compared with it")
	}
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		known[columns[0]] = columns
	}
	for name, m := range catalogue {
		columns := known[name]
		if columns == nil {
			t.Errorf("%s: there is no such message", name)
			continue
		}
		format := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`).Replace(columns[10])
		if got := []string{strconv.Itoa(m.uniq()), strconv.Itoa(m.code32()), m.format}; !slices.Equal(got, []string{columns[3], columns[4], format}) {
			t.Errorf("%s: got %q, want %q %q %q", name, got, columns[3], columns[4], format)
		}
	}
}
