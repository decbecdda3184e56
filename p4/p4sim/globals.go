package main

import (
	"bufio"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// globalSpec lists the options before the command (see parseFlags).
const globalSpec = "b# c: C: d: e E: F: G h H: I L: M: p: P: q Q: r# s u: v: V x: z: Z: ? " +
	"--aliases: --no-script --field: --client: --port: --user: --quiet"

// globals are the options before the command, with the environment behind
// them: flags win over P4CONFIG files, which win over variables.
type globals struct {
	flags
	env map[string]string
}

func newGlobals(set flags, env map[string]string) globals {
	g := globals{flags: set, env: env}
	maps.Copy(env, configFile(env))
	for _, assignment := range set["E"] {
		name, value, _ := strings.Cut(assignment, "=")
		env[name] = value
	}
	return g
}

// configFile reads the nearest file named by P4CONFIG, looked for from PWD
// upward: as in the real client, it overrides the environment.
func configFile(env map[string]string) map[string]string {
	if env["P4CONFIG"] == "" || env["PWD"] == "" {
		return nil
	}
	for dir := env["PWD"]; ; dir = filepath.Dir(dir) {
		if text, err := os.ReadFile(filepath.Join(dir, env["P4CONFIG"])); err == nil {
			return assignments(string(text))
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// assignments reads lines of the form NAME=value; # starts a comment line.
func assignments(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(name, "#") {
			values[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return values
}

// setting is a flag's value, or a variable's, or the default.
func (g globals) setting(short, long, variable, fallback string) string {
	for _, value := range []string{g.value(short), g.value(long), g.env[variable]} {
		if value != "" {
			return value
		}
	}
	return fallback
}

func (g globals) user() string { return g.setting("u", "--user", "P4USER", g.env["USER"]) }
func (g globals) port() string { return g.setting("p", "--port", "P4PORT", "perforce:1666") }

// charset is auto where nobody chose one: the client then asks the server.
func (g globals) charset() string { return g.setting("C", "", "P4CHARSET", "auto") }

func (g globals) client() string {
	host, _ := os.Hostname()
	return g.setting("c", "--client", "P4CLIENT", host)
}

func (g globals) tagged() bool {
	return g.has("G") || g.has("F") || slices.Contains(g.flags["z"], "tag") || slices.Contains(g.flags["Z"], "tag")
}

func (g globals) style() style {
	switch {
	case g.has("G"):
		return marshal
	case g.value("M") == "j":
		return jsonl
	case g.has("e"):
		return debug
	case g.has("s"):
		return script
	}
	return plain
}

// batches splits what a file of arguments (-x) adds to a command: the command
// runs once per batch. Every line is one argument, byte for byte.
func (g globals) batches(stdin io.Reader) ([][]string, error) {
	if !g.has("x") {
		return [][]string{nil}, nil
	}
	source := stdin
	if name := g.value("x"); name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		source = file
	}
	size := g.number("b")
	if size == 0 {
		size = 128
	}
	var all [][]string
	scanner := bufio.NewScanner(source)
	scanner.Buffer(nil, 1<<24)
	scanner.Split(wholeLines)
	for n := 0; scanner.Scan(); n++ {
		if n%size == 0 {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], scanner.Text())
	}
	return all, scanner.Err()
}

// wholeLines splits at line feeds only: a carriage return stays in the
// argument, as in the real client.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	for i, c := range data {
		if c == '\n' {
			return i + 1, data[:i], nil
		}
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
