package e2e

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
)

var update = flag.Bool("update", false, "rewrite the generated parts of the documentation")

const (
	failuresPage = "../docs/failures.md"
	tableBegins  = "<!-- The table is generated: go test ./e2e -run TestFailuresPage -update -->\n"
	tableEnds    = "<!-- End of the table -->\n"
)

// TestFailuresPage compares the documented table of classes with package failure.
func TestFailuresPage(t *testing.T) {
	t.Parallel()
	page := readFile(t, failuresPage)
	head, rest, begins := strings.Cut(page, tableBegins)
	_, tail, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s lacks the comments around the table", failuresPage)
	}
	want := head + tableBegins + classTable() + tableEnds + tail
	switch {
	case want == page:
	case *update:
		writeFile(t, failuresPage, 0o644, want)
	default:
		t.Errorf("the table of %s differs from package failure: run this test with -update", failuresPage)
	}
}

func classTable() string {
	var table strings.Builder
	table.WriteString("| identifier | category | retryable | who acts | what to do when attempts are exhausted |\n|---|---|---|---|---|\n")
	for _, d := range failure.Descriptions() {
		retryable := "no"
		if d.Retryable {
			retryable = "yes"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", d.Class, d.Category, retryable, d.Actor, d.Hint)
	}
	return table.String()
}
