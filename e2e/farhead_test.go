package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/llm/llmsim"
)

// A farHead is a file whose changed line is a secret only because of a line more than
// twenty lines above it, which is in no hunk.
type farHead struct {
	path, head, fill, row, foot string // fill is repeated before and after row
	old, new                    string // secrets that replace %s in row
}

var farHeads = []farHead{
	{"users.csv", "id,name,password,city\n", "%d,user,,Bern\n", "17,bob,%s,Bern\n", "", "tr0ub4dor-zebra", "mellow-pelican-9"},
	{
		"seed.sql", "INSERT INTO users (id, name, password) VALUES\n", "(%d, 'user', null),\n", "(17, 'bob', '%s'),\n", "(99, 'zoe', null);\n",
		"stapler-42-horse", "battery-17-cow",
	},
	{
		"secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: shop\ndata:\n", "  key%d: \"\"\n", "  shop: %s\n", "",
		"bWVsbG93IHBlbGljYW4h", "dHJvdWJhZG9yIHplYnJh",
	},
	{
		"accounts.json", "{\n  \"passwords\": {\n", "    \"user%d\": null,\n", "    \"bob\": \"%s\",\n", "    \"zoe\": null\n  }\n}\n",
		"orchid-river-77", "copper-maple-31",
	},
}

// revision returns the file with one of its secrets.
func (f farHead) revision(secret string) string {
	var text strings.Builder
	text.WriteString(f.head)
	for i := range 40 {
		fmt.Fprintf(&text, f.fill, 100+i)
		if i == 30 {
			fmt.Fprintf(&text, f.row, secret)
		}
	}
	return text.String() + f.foot
}

// TestSecretsUnderAFarHead reviews changes whose secrets the hunks alone do not reveal.
// No secret reaches the model, not in the file and not elsewhere in the change.
func TestSecretsUnderAFarHead(t *testing.T) {
	t.Parallel()
	var first, second strings.Builder
	first.WriteString("-- change 1 user=alice --\nBegin.\n")
	second.WriteString("-- change 2 user=alice --\nRotate. In the ticket: dHJvdWJhZG9yIHplYnJh, and bob has mellow-pelican-9.\n")
	for _, f := range farHeads {
		fmt.Fprintf(&first, "-- add text //depot/%s --\n%s", f.path, f.revision(f.old))
		fmt.Fprintf(&second, "-- edit text //depot/%s --\n%s", f.path, f.revision(f.new))
	}
	depot := t.TempDir() + "/depot.txtar"
	writeFile(t, depot, 0o600, first.String()+second.String())
	in := newInstallation(t, depot)
	var requests syncBuffer
	in.model = llmsim.New(llmsim.Config{Record: &requests})
	in.startWorker()
	in.mustStart("--wait", "2")
	leaks, places := 0, 0
	for _, f := range farHeads {
		for _, secret := range []string{f.old, f.new} {
			places++
			if bytes.Contains(requests.Bytes(), []byte(secret)) {
				leaks++
				t.Errorf("the model was sent %q of %s", secret, f.path)
			}
		}
		if !bytes.Contains(requests.Bytes(), []byte(f.path)) {
			t.Errorf("%s was not sent: nothing was tested", f.path)
		}
	}
	t.Logf("%d of %d secrets leaked", leaks, places)
}
