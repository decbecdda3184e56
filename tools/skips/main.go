// Command skips reports the tests that a run of `go test -json` skipped, and fails
// in continuous integration if a test was skipped that allowed.txt does not list.
// A test that silently skips proves nothing.
//
//	skips build/test.json
package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// allowedList has a line per test that may be skipped in continuous integration: its
// package below the module, its name, and the reason.
//
//go:embed allowed.txt
var allowedList string

const module = "github.com/criticizer/criticizer/"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: skips FILE.json")
		os.Exit(2)
	}
	file, err := os.Open(os.Args[1]) //nolint:gosec // the caller names the file
	if err == nil {
		var unlisted []string
		unlisted, err = report(os.Stdout, file)
		if err == nil && len(unlisted) > 0 && os.Getenv("CI") != "" {
			err = fmt.Errorf("%d skipped tests are not listed in tools/skips/allowed.txt", len(unlisted))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "skips:", err)
		os.Exit(1)
	}
}

// report prints the skipped tests and returns those that are not on the list.
func report(out io.Writer, results io.Reader) (unlisted []string, err error) {
	reasons := allowed(allowedList)
	skipped, tests, err := read(results)
	if err != nil {
		return nil, err
	}
	for _, name := range skipped {
		reason, ok := reasons[name]
		if !ok {
			reason = "NOT LISTED in tools/skips/allowed.txt"
			unlisted = append(unlisted, name)
		}
		fmt.Fprintf(out, "SKIPPED %s: %s\n", name, reason)
	}
	_, err = fmt.Fprintf(out, "%d tests run, %d skipped, %d of them unexpectedly\n", tests, len(skipped), len(unlisted))
	return unlisted, err
}

// allowed returns the reason of each listed test, by "package Test".
func allowed(list string) map[string]string {
	reasons := map[string]string{}
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] != "#" {
			reasons[fields[0]+" "+fields[1]] = strings.Join(fields[2:], " ")
		}
	}
	return reasons
}

// read returns the skipped tests, sorted, and the number of tests that ran. A test
// whose subtest was skipped counts by its own result.
func read(results io.Reader) (skipped []string, tests int, err error) {
	lines := bufio.NewScanner(results)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct{ Action, Package, Test string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, 0, fmt.Errorf("read test results: %w", err)
		}
		switch {
		case event.Test == "":
		case event.Action == "skip":
			skipped = append(skipped, strings.TrimPrefix(event.Package, module)+" "+event.Test)
		case event.Action == "pass", event.Action == "fail":
			tests++
		}
	}
	slices.Sort(skipped)
	if tests == 0 {
		return nil, 0, fmt.Errorf("read test results: no test was run")
	}
	return skipped, tests, lines.Err()
}
