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
	runbookPage = "../docs/runbook.md"
	tableBegins = "<!-- The table is generated: go test ./e2e -run TestRunbookTable -update -->\n"
	tableEnds   = "<!-- End of the table -->\n"
)

// TestRunbookTable compares the table of error classes in the runbook with package failure.
func TestRunbookTable(t *testing.T) {
	t.Parallel()
	page := readFile(t, runbookPage)
	head, rest, begins := strings.Cut(page, tableBegins)
	_, tail, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s lacks the comments around the table", runbookPage)
	}
	want := head + tableBegins + classTable() + tableEnds + tail
	switch {
	case want == page:
	case *update:
		writeFile(t, runbookPage, 0o644, want)
	default:
		t.Errorf("the table of %s differs from package failure: run this test with -update", runbookPage)
	}
}

func classTable() string {
	var table strings.Builder
	table.WriteString("| class | meaning | who does what |\n|---|---|---|\n")
	var category failure.Category
	for _, d := range failure.Descriptions() {
		if d.Category != category {
			category = d.Category
			retried := "not retried"
			if d.Retryable {
				retried = "retried"
			}
			fmt.Fprintf(&table, "| **%s**, %s | | |\n", category, retried)
		}
		remedy := strings.TrimSuffix(d.Hint, ", then replay") // the page says it once
		fmt.Fprintf(&table, "| `%s` | %s | %s: %s |\n", d.Class, d.Meaning, d.Actor, remedy)
	}
	return table.String()
}
