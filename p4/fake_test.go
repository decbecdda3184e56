package p4

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/md5"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/p4/internal/command"
	"github.com/criticizer/criticizer/review"
)

// TestMain makes the test binary a scripted p4 if it is started under that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "p4" {
		// os.Exit would sleep for a second when built with the race detector.
		syscall.Exit(replay())
	}
	status := m.Run()
	if simDir != "" {
		_ = os.RemoveAll(simDir)
	}
	os.Exit(status)
}

// A reply is what the scripted p4 does for one command line, or for one line of
// the standard input of a command line with -x -.
type reply struct {
	Out    []byte
	First  []byte // Out of the first call, if it differs
	Stderr string
	Exit   int
	// LeavesChild makes it start a child that ignores SIGTERM and holds its output;
	// IgnoresTerm makes it ignore SIGTERM itself, and not end.
	LeavesChild, IgnoresTerm bool
	Ends                     bool // the command ends there: the lines after it get no answer
}

// A call is one start of the scripted p4.
type call struct {
	Args, Env, Lines []string
	Dir              string
}

// A fake is a scripted server. P4PORT is the directory of its script: p4 inherits
// nothing from the test.
type fake struct {
	t       *testing.T
	dir     string
	replies map[string]reply
	log     bytes.Buffer // of the fetchers
}

func newFake(t *testing.T) *fake {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	testkit.NoError(t, err)
	testkit.NoError(t, os.Symlink(self, filepath.Join(dir, "p4")))
	f := &fake{t: t, dir: dir, replies: make(map[string]reply)}
	f.reply("info -s", stat("serverVersion", "P4D/FAKE/2023.2/1", "ServerID", "fake", "caseHandling", "sensitive"))
	f.reply("protects", stat("perm", "super", "host", "*", "user", "*", "depotFile", "//..."))
	f.reply("users ann", stat("User", "ann", "Email", "ann@example.com"))
	return f
}

// reply scripts an answer. As p4 does, it exits with 1 if a record is severe.
func (f *fake) reply(key string, records ...[]byte) {
	r := reply{Out: bytes.Join(records, nil)}
	if bytes.Contains(r.Out, []byte("severityi\x03")) || bytes.Contains(r.Out, []byte("severityi\x04")) {
		r.Exit = 1
	}
	f.replies[key] = r
}

// A rev is one file revision on the scripted server.
type rev struct {
	path   string // as p4 spells it
	rev    int
	action string // default edit
	typ    string // default text
	data   string
	from   string // path#rev of the source, if describe reports it
	digest string // default: the digest of data
}

func (r rev) spec() string { return revision(r.path, r.rev) }

// has scripts the contents of revisions.
func (f *fake) has(revs ...rev) {
	for _, r := range revs {
		header := stat("depotFile", r.path, "rev", strconv.Itoa(r.rev), "action", cmp.Or(r.action, "edit"),
			"type", cmp.Or(r.typ, "text"), "fileSize", strconv.Itoa(len(r.data)))
		f.reply("print "+r.spec(), header, chunk(r.data), chunk(""))
	}
}

// submitted scripts the description and the files of a changelist of ann.
func (f *fake) submitted(number review.Changelist, revs ...rev) {
	f.describes(number, nil, revs...)
	f.has(revs...)
}

// describes scripts the description of a changelist; overrides replace fields, or add them.
func (f *fake) describes(number review.Changelist, overrides []string, revs ...rev) {
	fields := []string{"change", number.String(), "user", "ann", "client", "ann-ws", "time", "932758432",
		"desc", "Mend it.\n", "status", "submitted", "changeType", "public", "path", ""}
	for i, r := range revs {
		n := strconv.Itoa(i)
		fields = append(fields, "depotFile"+n, r.path, "action"+n, cmp.Or(r.action, "edit"),
			"type"+n, cmp.Or(r.typ, "text"), "rev"+n, strconv.Itoa(r.rev))
		if !strings.HasSuffix(r.action, "delete") {
			digest := cmp.Or(r.digest, fmt.Sprintf("%X", md5.Sum([]byte(r.data))))
			fields = append(fields, "fileSize"+n, strconv.Itoa(len(r.data)), "digest"+n, digest)
		}
		if path, rev, ok := strings.Cut(r.from, "#"); ok {
			fields = append(fields, "fromFile"+n, path, "fromRev"+n, "#"+rev)
		}
	}
	for i := 0; i < len(overrides); i += 2 {
		if at := slices.Index(fields, overrides[i]); at >= 0 {
			fields[at+1] = overrides[i+1]
		} else {
			fields = append(fields, overrides[i], overrides[i+1])
		}
	}
	f.reply("describe "+number.String(), stat(fields...))
	f.reply("reviews -c " + number.String())
}

// write stores the script.
func (f *fake) write() {
	var script bytes.Buffer // gob keeps names that are not UTF-8
	testkit.NoError(f.t, gob.NewEncoder(&script).Encode(f.replies))
	testkit.NoError(f.t, os.WriteFile(filepath.Join(f.dir, "script"), script.Bytes(), 0o600))
}

// fetcher makes a ChangeFetcher on the scripted server.
func (f *fake) fetcher(adjust ...func(*Config)) *ChangeFetcher {
	f.t.Helper()
	f.write()
	cfg := config.Default[Config]()
	cfg.Command, cfg.Port, cfg.User, cfg.StateDir = filepath.Join(f.dir, "p4"), f.dir, "reader", filepath.Join(f.dir, "state")
	cfg.Allowed, cfg.ReviewedUpTo = []string{"//depot/..."}, 1
	for _, one := range adjust {
		one(&cfg)
	}
	fetcher, err := New(slog.New(slog.NewJSONHandler(&f.log, nil)), cfg)
	testkit.NoError(f.t, err)
	return fetcher
}

// fetch fetches a submitted changelist.
func (f *fake) fetch(number review.Changelist, adjust ...func(*Config)) (review.Change, error) {
	f.t.Helper()
	return f.fetcher(adjust...).Read(f.t.Context(), number, review.ReadOptions{})
}

// logged decodes the records of the log that have a message.
func (f *fake) logged(message string) []map[string]any {
	f.t.Helper()
	var all []map[string]any
	for line := range bytes.Lines(f.log.Bytes()) {
		var one map[string]any
		testkit.NoError(f.t, json.Unmarshal(line, &one))
		if one["msg"] == message {
			all = append(all, one)
		}
	}
	return all
}

// calls returns the calls in order.
func (f *fake) calls() []call {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, "calls.jsonl"))
	testkit.NoError(f.t, err)
	var calls []call
	for line := range bytes.Lines(data) {
		var c call
		testkit.NoError(f.t, json.Unmarshal(line, &c))
		calls = append(calls, c)
	}
	return calls
}

// ran returns the calls of one command.
func (f *fake) ran(name string) []call {
	f.t.Helper()
	return slices.DeleteFunc(f.calls(), func(c call) bool { return !slices.Contains(c.Args, name) })
}

// replay is the main function of the scripted p4.
func replay() int {
	dir := os.Getenv("P4PORT")
	if os.Args[1] == "child" {
		return ignoreTerm(os.Args[2])
	}
	key, lines := strings.Join(os.Args[1:], " "), []string(nil)
	key = strings.TrimPrefix(key, "-G -zprog=criticizer ")
	if name, ok := strings.CutPrefix(key, "-x - "); ok {
		for scanner := bufio.NewScanner(os.Stdin); scanner.Scan(); {
			lines = append(lines, scanner.Text())
		}
		key = name
	}
	logCall(dir, lines)
	var replies map[string]reply
	script, err := os.ReadFile(filepath.Join(dir, "script"))
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(script)).Decode(&replies)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	if lines == nil {
		return act(dir, key, replies)
	}
	exit := 0
	for _, whole := range []string{key, key + " " + strings.Join(lines, " ")} {
		if _, ok := replies[whole]; ok && len(lines) > 0 {
			return act(dir, whole, replies)
		}
	}
	for _, line := range lines {
		exit = max(exit, act(dir, key+" "+line, replies))
		if replies[key+" "+line].Ends {
			break
		}
	}
	return exit
}

func act(dir, key string, replies map[string]reply) int {
	r, ok := replies[key]
	if !ok && strings.HasPrefix(key, "print ") {
		r.Out = message(2, 17, strings.TrimPrefix(key, "print ")+" - no such file(s).\n")
	} else if path, rev, isFile := strings.Cut(strings.TrimPrefix(key, "filelog -m 200 "), "#"); !ok && isFile {
		r.Out = stat("depotFile", path, "rev0", rev, "change0", "1", "action0", "edit")
	} else if !ok {
		fmt.Fprintf(os.Stderr, "not scripted: %s\n", key)
		return 98
	}
	if r.First != nil {
		if marker, err := os.OpenFile(filepath.Join(dir, "first"), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_ = marker.Close()
			r.Out = r.First
		}
	}
	_, _ = os.Stdout.Write(r.Out)
	_, _ = os.Stderr.WriteString(r.Stderr)
	if r.LeavesChild {
		child := exec.Command(os.Args[0], "child", dir)
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			return 97
		}
		for !exists(filepath.Join(dir, "child")) {
			time.Sleep(time.Millisecond)
		}
	}
	if r.IgnoresTerm {
		return ignoreTerm("")
	}
	return r.Exit
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// ignoreTerm ignores SIGTERM and, if dir is set, writes its process number there.
func ignoreTerm(dir string) int {
	signal.Ignore(syscall.SIGTERM)
	if dir != "" {
		_ = os.WriteFile(filepath.Join(dir, "child.tmp"), []byte(strconv.Itoa(os.Getpid())), 0o600)
		_ = os.Rename(filepath.Join(dir, "child.tmp"), filepath.Join(dir, "child"))
	}
	time.Sleep(time.Hour)
	return 0
}

func logCall(dir string, lines []string) {
	wd, _ := os.Getwd()
	entry, _ := json.Marshal(call{os.Args[1:], os.Environ(), lines, wd})
	file, err := os.OpenFile(filepath.Join(dir, "calls.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = file.Write(append(entry, '\n'))
	_ = file.Close()
}

// stat encodes a record of the given fields, name and value in turn.
func stat(fields ...string) []byte {
	var values []any
	for _, f := range fields {
		values = append(values, f)
	}
	return command.AppendRecord(nil, "stat", values...)
}

// chunk encodes a part of a printed file.
func chunk(data string) []byte { return command.AppendRecord(nil, "text", "data", data) }

// message encodes an error record.
func message(severity, generic int, text string) []byte {
	return command.AppendRecord(nil, "error", "data", text, "severity", severity, "generic", generic)
}
