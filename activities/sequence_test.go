package activities

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"
	"testing"
)

// One function sends, in the order: read, look up, begin, send, mark (notification 6.4)
// (notification 8.3).
func TestOnePlaceSends(t *testing.T) {
	t.Parallel()
	steps := []string{"Delivery", "settle", "BeginDelivery", "Send", "MarkSent"}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string][]string{}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				name := f.Name.Name
				if f.Recv != nil {
					name = types.ExprString(f.Recv.List[0].Type) + "." + name
				}
				calls[name] = callsIn(f)
			}
		}
	}
	const deliver = "*Notifier.deliver"
	const notice = "*reconciliation.sendNotice" // begun by sendNotices; looked up, sent and ended here
	for f, called := range calls {
		if f == notice {
			look, sent := slices.Index(called, "Lookup"), slices.Index(called, "Send")
			if end := slices.Index(called[max(sent, 0):], "EndNotice"); look < 0 || sent < look || end < 0 {
				t.Errorf("%s takes the steps %q", f, called)
			}
		} else if f != deliver && (slices.Contains(called, "Send") || slices.Contains(called, "BeginDelivery")) {
			t.Errorf("%s sends, want %s alone", f, deliver)
		}
	}
	got := calls[deliver]
	if got = slices.DeleteFunc(got, func(c string) bool { return !slices.Contains(steps, c) }); !slices.Equal(got, steps) {
		t.Errorf("deliver takes the steps %q, want %q", got, steps)
	}
}

// callsIn lists the methods that f calls, as they are written.
func callsIn(f *ast.FuncDecl) (called []string) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if method, ok := call.Fun.(*ast.SelectorExpr); ok {
				called = append(called, method.Sel.Name)
			}
		}
		return true
	})
	return called
}
