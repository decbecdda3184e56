package p4

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/p4/internal/command"
	"github.com/criticizer/criticizer/review"
)

// Every field of p4 describe is the author's or the server's: what is parsed can be shown,
// and each path is one argument of the next command, or none.
func FuzzDescribe(f *testing.F) {
	f.Add("status=submitted\x01user=ann\x01time=1\x01desc=x\x01depotFile0=//depot/a%40b\x01rev0=3\x01action0=edit\x01type0=text+x\x01fileSize0=7", false)
	f.Add("status=pending\x01shelved=\x01time=1\x01depotFile0=-o/tmp/x\x01rev0=none\x01type0=utf16\x01fromFile0=//depot/b\x01fromRev0=#3,#4", true)
	f.Add("status=submitted\x01time=9223372036854775807\x01job0=job1\x01job1=\xff\x01oldChange=-4\x01changeType=restricted\x01path=//depot/*", false)
	f.Add("status=submitted\x01time=1\x01depotFile0=//depot/a\nb\x01rev0=1\x01fileSize0=-1", false)
	f.Add("status=submitted\x01time=0\x01depotFile0", false)
	f.Fuzz(func(t *testing.T, text string, shelved bool) {
		fields := map[string]string{}
		for field := range strings.SplitSeq(text, "\x01") {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		d, err := (&server{}).parseDescription(12, fields, review.ReadOptions{Shelved: shelved})
		if err != nil {
			return
		}
		if len(d.files) != len(slices.Collect(numbered(fields, "depotFile"))) || (d.Empty == "") != (len(d.files) > 0) {
			t.Errorf("%d files, empty because %q", len(d.files), d.Empty)
		}
		if !utf8.ValidString(d.Description + d.User) {
			t.Error("the description is not UTF-8")
		}
		for _, file := range d.files {
			if !utf8.ValidString(file.DepotPath) || file.Size < 0 || !shelved && file.Revision < 1 && file.Skipped == "" {
				t.Errorf("file is %+v", file.File)
			}
			checkVector(t, command.Cmd{Name: "print", Flags: []string{"-q"}, Operands: []string{file.spec()}})
			checkVector(t, command.Cmd{Name: "fstat", Lines: []string{file.path}})
		}
	})
}

// No text of the configuration or of a change becomes an option, a second argument, a
// variable or a program.
func FuzzArguments(f *testing.F) {
	f.Add("ssl:perforce:1666", "criticizer", "//depot/a#3")
	f.Add("-p", "-u", "-o")
	f.Add("rsh:sh -c id", "a b", "//depot/-x")
	f.Add("JSH:id", "root", "//depot/x")
	f.Add("JSH", "root", "//depot/x")
	f.Add("1666", "root\nP4PORT=evil", "@12\r\n-x")
	f.Fuzz(func(t *testing.T, port, user, operand string) {
		checkVector(t, command.Cmd{Name: "print", Flags: []string{"-q"}, Operands: []string{"//depot/first", operand}})
		checkVector(t, command.Cmd{Name: "print", Lines: []string{operand}})
		cfg := config.Default[Config]()
		cfg.Port, cfg.User, cfg.Allowed = port, user, []string{"//depot/..."}
		if config.Validate("p4", &cfg) != nil {
			return
		}
		env := command.Runner{Dir: "/state", Port: cfg.Port, User: cfg.User, Charset: "utf8"}.Environ()
		want := map[string]string{"P4PORT": port, "P4USER": user, "P4CHARSET": "utf8"}
		for _, variable := range env {
			name, value, _ := strings.Cut(variable, "=")
			if wanted, ours := want[name]; ours && value != wanted || strings.ContainsAny(variable, "\x00\r\n") {
				t.Errorf("%q is a variable", variable)
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("%v are not set", want)
		}
		scheme, _, _ := strings.Cut(strings.ToLower(port), ":")
		if strings.HasPrefix(port, "-") || scheme == "rsh" || scheme == "jsh" {
			t.Errorf("port %q is accepted", port)
		}
	})
}

// checkVector fails if the operands of c do not reach p4 as they are.
func checkVector(t *testing.T, c command.Cmd) {
	t.Helper()
	args, err := c.Args()
	if err != nil {
		return
	}
	fixed := len(args) - len(c.Operands)
	for i, arg := range args[fixed:] {
		if arg != c.Operands[i] || strings.HasPrefix(arg, "-") {
			t.Errorf("%q is an argument", arg)
		}
	}
	for _, line := range append(c.Operands, c.Lines...) {
		if line == "" || strings.HasPrefix(line, "-") || strings.ContainsAny(line, "\x00\r\n") {
			t.Errorf("%q is an operand", line)
		}
	}
}

// The patterns of owners are not regular expressions: text without
// wildcards matches itself only.
func FuzzPathPattern(f *testing.F) {
	f.Add("//depot/a.c")
	f.Add(`//depot/(a|b)+$\E[^x]%40..../*`)
	f.Add("//...*...*...*...*x")
	f.Add("//\n")
	f.Fuzz(func(t *testing.T, pattern string) {
		compiled, err := compileWildcards(pattern)
		if err != nil || !utf8.ValidString(pattern) {
			return
		}
		if strings.Contains(pattern, "*") || strings.Contains(pattern, "...") {
			compiled.MatchString("//depot/" + strings.Repeat("a/", 1000))
			return
		}
		path := (&description{}).path(pattern)
		if !compiled.MatchString(path) || compiled.MatchString(path+"x") || compiled.MatchString("//x"+path) {
			t.Errorf("pattern %q does not match %q alone", pattern, path)
		}
	})
}
