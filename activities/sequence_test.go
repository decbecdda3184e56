package activities

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// One function sends, in the order: read, look up, begin, send, mark (notification 6.4)
// (notification 8.3).
func TestOnePlaceSends(t *testing.T) {
	t.Parallel()
	steps := []string{"Delivery", "reconcile", "BeginDelivery", "Send", "MarkSent"}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var senders []string
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			called := callsIn(f)
			if !slices.Contains(called, "Send") && !slices.Contains(called, "BeginDelivery") {
				continue
			}
			senders = append(senders, f.Name.Name)
			if got := slices.DeleteFunc(called, func(c string) bool { return !slices.Contains(steps, c) }); !slices.Equal(got, steps) {
				t.Errorf("%s takes the steps %q, want %q", f.Name.Name, got, steps)
			}
		}
	}
	if !slices.Equal(senders, []string{"deliver"}) {
		t.Errorf("%q send, want deliver alone", senders)
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
