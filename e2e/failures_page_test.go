package e2e

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
)

var update = flag.Bool("update", false, "write the generated parts of the documentation anew")

const (
	failuresPage = "../docs/failures.md"
	tableBegins  = "<!-- The table is generated: go test ./e2e -run TestFailuresPage -update -->\n"
	tableEnds    = "<!-- End of the table -->\n"
)

// TestFailuresPage holds the documented table of classes to the one in the code.
func TestFailuresPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(failuresPage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(page), tableBegins)
	_, tail, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s lacks the marks of the table", failuresPage)
	}
	want := head + tableBegins + classTable() + tableEnds + tail
	switch {
	case want == string(page):
	case *update:
		writeFile(t, failuresPage, 0o644, want)
	default:
		t.Errorf("the table of %s is not that of package failure: run this test with -update", failuresPage)
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
