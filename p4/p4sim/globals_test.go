package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	const client = "Perforce client error:\n\tp4 -h for usage.\n\t"
	const describe = "Usage: describe [-d<flags> -a -m max -s -S -f -O -I] changelist# ...\n"
	for _, test := range []struct {
		name   string
		args   []string
		stderr string
	}{
		{"unknown long option", []string{"--bogus", "info"}, client + "Invalid option: --bogus.\n"},
		{"unknown short option", []string{"-y", "info"}, client + "Invalid option: -y.\n"},
		{"option without value", []string{"-u"}, client + "Option: -u needs argument.\n"},
		{"no command", nil, "Unknown command.  Try 'p4 help' for info.\n"},
		{"unknown command", []string{"frobnicate"}, "Unknown command.  Try 'p4 help' for info.\n"},
		{"command that writes", []string{"submit"}, "You don't have permission for this operation.\n"},
		{"form that would be written", []string{"user", "-i"}, "You don't have permission for this operation.\n"},
		{"missing argument", []string{"describe"}, describe + "Missing/wrong number of arguments.\n"},
		{"unknown flag", []string{"describe", "-Z", "1"}, describe + "Invalid option: -Z.\n"},
		{"flag that needs a number", []string{"describe", "-m", "x", "1"}, describe + "Option: -m needs a non-negative integer argument.\n"},
		{"no end-of-options mark", []string{"describe", "--", "1"}, describe + "Invalid option: --.\n"},
		{"not a changelist", []string{"describe", "abc"}, "Invalid changelist number 'abc'.\n"},
		{"signed changelist", []string{"describe", "+1"}, "Invalid changelist number '+1'.\n"},
		{"relative path", []string{"files", "//depot/../x"}, "Relative paths (., ..) not allowed in '//depot/../x'.\n"},
		{"empty path component", []string{"files", "//depot//x"}, "Null directory (//) not allowed in '//depot//x'.\n"},
		{"unknown label", []string{"files", "//depot/x@nolabel"}, "Invalid changelist/client/label/date '@nolabel'.\n"},
		{"bad revision", []string{"files", "//depot/x#first"}, "Invalid revision number 'first'.\n"},
		{"no revision", []string{"files", "//depot/x#"}, "Unintelligible revision specification '#'.\n"},
		{"local path", []string{"files", "x.c"}, "x.c - must create client 'ws' to access local files.\n"},
		{"no workspace", []string{"where", "//depot/x"}, "Client 'ws' unknown - use 'client' command to create it.\n"},
	} {
		if got := p4(env, "", test.args...); got.exit != 1 || got.stdout != "" || got.stderr != test.stderr {
			t.Errorf("%s: %+v, want %q", test.name, got, test.stderr)
		}
	}
}

func TestOneUnknownChangeFailsTheCommandButNotTheOthers(t *testing.T) {
	t.Parallel()
	got := p4(smallEnv(t, smallDepot), "", "-F", "%change%", "describe", "-s", "1", "99", "2")
	if got.exit != 1 || got.stdout != "1\n2\n" || got.stderr != "Change 99 unknown.\n" {
		t.Errorf("%+v", got)
	}
}

func TestGlobalOptions(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	expect(t, p4(env, "", "-q", "changes"), "")
	expect(t, p4(env, "", "-ztag", "-F", "%change%:%user%:%nothing%.", "changes", "-m1"), "7:vera:.\n")
	expect(t, p4(env, "", "-ztag", "-s", "counter", "change"), "info1: counter change\ninfo1: value 7\nexit: 0\n")
	if got := p4(env, "", "-V"); !strings.Contains(got.stdout, "2023.2") || got.exit != 0 {
		t.Errorf("-V: %+v", got)
	}
	holds(t, records(t, p4(env, "", "-ztag", "-Mj", "-E", "P4USER=env", "info"))[0], map[string]any{"userName": "env"})
	holds(t, records(t, p4(env, "", "-ztag", "-Mj", "-E", "P4USER=env", "-u", "flag", "info"))[0], map[string]any{"userName": "flag"})
}

// An argument file is passed on line by line: an empty line is an argument, a
// carriage return stays, a dash makes an option.
func TestArgumentFile(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	expect(t, p4(env, "1\n2\n3", "-F", "%change%", "-x", "-", "-b", "2", "describe", "-s"), "1\n2\n3\n")
	name := filepath.Join(t.TempDir(), "args")
	if err := os.WriteFile(name, []byte("1\r\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p4(env, "", "-s", "-x", name, "describe"); got.stdout != "error: Invalid changelist number '1\r'.\nerror: Invalid changelist number ''.\nexit: 1\n" {
		t.Errorf("%+v", got)
	}
	if got := p4(env, "-Z\n", "-x", "-", "describe"); !strings.HasSuffix(got.stderr, "Invalid option: -Z.\n") {
		t.Errorf("%+v", got)
	}
}

// As in the real client, a P4CONFIG file above PWD overrides the environment.
func TestConfigFilesOverrideTheEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".p4config"), []byte("P4USER=mallory\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := smallEnv(t, smallDepot, "PWD="+filepath.Join(dir, "below"))
	holds(t, records(t, p4(append(env, "P4CONFIG=.p4config"), "", "-ztag", "-Mj", "info"))[0], map[string]any{"userName": "mallory"})
	holds(t, records(t, p4(append(env, "P4CONFIG="), "", "-ztag", "-Mj", "info"))[0], map[string]any{"userName": "svc"})
}

func TestTickets(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot, "P4SIM_TICKET=T1CKET")
	tickets := filepath.Join(t.TempDir(), "tickets")
	if err := os.WriteFile(tickets, []byte("sim:1666=svc:T1CKET\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		env  string
		exit int
	}{
		{"none", "X=", 1},
		{"wrong", "P4PASSWD=other", 1},
		{"in the environment", "P4PASSWD=T1CKET", 0},
		{"in the tickets file", "P4TICKETS=" + tickets, 0},
	} {
		got := p4(append(env, test.env), "", "login", "-s")
		if got.exit != test.exit || test.exit == 1 && got.stderr != "Perforce password (P4PASSWD) invalid or unset.\n" {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
	if got := p4(env, "", "info"); got.exit != 0 {
		t.Errorf("info needs no ticket: %+v", got)
	}
}

func TestCharsets(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	unicode := append([]string{"P4SIM_UNICODE=1"}, env...)
	if got := p4(append(unicode, "P4CHARSET=none"), "", "info"); got.stderr != "Unicode server permits only unicode enabled clients.\n" {
		t.Errorf("none, unicode server: %+v", got)
	}
	holds(t, records(t, p4(append(unicode, "P4CHARSET=utf8"), "", "-ztag", "-Mj", "info"))[0], map[string]any{"unicode": "enabled"})
	if got := p4(append(env, "P4CHARSET=utf8"), "", "info"); got.stderr != "Unicode clients require a unicode enabled server.\n" {
		t.Errorf("utf8, other server: %+v", got)
	}
}

func TestChangesRanges(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-s", "submitted"}, "6 5 4 3 2 1"},
		{[]string{"-s", "submitted", "-r", "-m2"}, "1 2"},
		{[]string{"-m0"}, ""},
		{[]string{"-u", "vera"}, "7 2"},
		{[]string{"-c", "bruno-ws", "-m1"}, "6"},
		{[]string{"-e", "5"}, "7 6 5"},
		{[]string{"//depot/src/...@>2"}, "6 3"},
		{[]string{"//depot/src/...@<3"}, "2 1"},
		{[]string{"//depot/src/...@2,@3"}, "3 2"},
		{[]string{"//depot/src/...@2,3"}, "3 2"},
		{[]string{"//depot/src/...@=3"}, "3"},
		{[]string{"//depot/src/...@2024/05/02:10:00:00"}, "2 1"},
		{[]string{"//depot/src/...@2024/05/03,#head"}, "6 3"},
		{[]string{"//depot/src/a b.c#2"}, "2 1"},
		{[]string{"-m1", "//depot/link", "//depot/logo.png"}, "1 2"},
		{[]string{"//depot/nosuch/..."}, ""},
	} {
		got := p4(env, "", append([]string{"-F", "%change%", "changes"}, test.args...)...)
		if numbers := strings.Join(strings.Fields(got.stdout), " "); numbers != test.want || got.exit != 0 {
			t.Errorf("changes %q: got %q, want %q %s", test.args, numbers, test.want, got.stderr)
		}
	}
}

func TestLogTellsArgumentsAndEnvironment(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "log")
	env := smallEnv(t, smallDepot, "P4SIM_LOG="+name, "P4PASSWD=T1CKET")
	p4(env, "", "-G", "describe", "-s", "99")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var line invocation
	if err := json.Unmarshal(text, &line); err != nil {
		t.Fatal(err)
	}
	if strings.Join(line.Argv, " ") != "p4 -G describe -s 99" || line.Exit != 1 || !strings.Contains(strings.Join(line.Env, " "), "P4PASSWD=T1CKET") {
		t.Errorf("%+v", line)
	}
}

func TestSettingsFromAFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "p4sim.conf")
	text := "# comment\n" + strings.Join(smallEnv(t, smallDepot)[:2], "\n") + "\nP4SIM_SERVER_ID = edge\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	holds(t, records(t, p4([]string{"P4SIM_CONFIG=" + name}, "", "-ztag", "-Mj", "info"))[0], map[string]any{"ServerID": "edge"})
	holds(t, records(t, p4([]string{"P4SIM_CONFIG=" + name, "P4SIM_SERVER_ID=mine"}, "", "-ztag", "-Mj", "info"))[0], map[string]any{"ServerID": "mine"})
	if got := p4([]string{"P4SIM_STATE=" + t.TempDir()}, "", "users"); got.exit != 1 || !strings.Contains(got.stderr, "set P4SIM_DEPOT") {
		t.Errorf("without a depot: %+v", got)
	}
}

func TestWildcards(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, path string
		want          bool
	}{
		{"//depot/a/...", "//depot/a/b/c", true},
		{"//depot/a/...", "//depot/ab/c", false},
		{"//depot/a/...", "//depot/a", false},
		{"//depot/a/...", "//depot/a/", true},
		{"//depot/a...", "//depot/a", true},
		{"//depot/*/src/...", "//depot/x/src/y", true},
		{"//depot/*/src/...", "//depot/x/y/src/z", false},
		{"//depot/....c", "//depot/d/e.c", true},
		{"//depot/....c", "//depot/a.cc", false},
		{"//depot/%%1/x.c", "//depot/a/x.c", true},
		{"//depot/%%1/x.c", "//depot/a/b/x.c", false},
		{"//depot/a%40b", "//depot/a@b", false},
	} {
		if got := matches(test.pattern, test.path); got != test.want {
			t.Errorf("%s matches %s: %t", test.pattern, test.path, got)
		}
	}
}

func TestHunks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, old, new, flag, want string }{
		{"all is new", "", "a\nb\n", "u", "@@ -1,0 +1,2 @@\n+a\n+b\n"},
		{"all is gone", "a\n", "", "u", "@@ -1,1 +1,0 @@\n-a\n"},
		{"no last line feed", "a", "a\nb", "u", "@@ -1,1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n\\ No newline at end of file\n"},
		{"no context", "a\nb\nc\n", "a\nB\nc\n", "u0", "@@ -2,1 +2,1 @@\n-b\n+B\n"},
		{"context touches", "1\n2\n3\n4\n5\n", "1\nx\n3\ny\n5\n", "u1", "@@ -1,5 +1,5 @@\n 1\n-2\n+x\n 3\n-4\n+y\n 5\n"},
		{"added", "a\n", "a\nb\nc\n", "", "1a2,3\n> b\n> c\n"},
		{"deleted", "a\nb\nc\n", "c\n", "", "1,2d0\n< a\n< b\n"},
		{"blanks do not count", "a b\n", "ab\n", "w", ""},
		{"amount of blanks does not count", "a  b\n", "a b\n", "b", ""},
		{"line ends do not count", "a\r\n", "a\n", "l", ""},
		{"a form feed ends a line", "a\f\nb\n", "a\f\nc\n", "", "3c3\n< b\n---\n> c\n"},
	} {
		if got := diffText([]byte(test.old), []byte(test.new), parseDiffFlags([]string{test.flag})); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
