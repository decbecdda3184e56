package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A listed is what `go list -json` prints about a package.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Standard        bool
}

// packagesOn lists the packages of the commands on another platform, each after those
// that it imports.
func packagesOn(t *testing.T, goos string) (all []listed) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Standard", "./worker", "./starter", "./criticizer")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// checked are packages by path, as they import each other.
type checked map[string]*types.Package

// check parses a package and checks its types. Functions of other modules are
// declared only.
func (c checked) check(p listed, report func(error)) error {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	ours := strings.HasPrefix(p.ImportPath, "github.com/criticizer/criticizer/")
	config := types.Config{
		Importer: importer(func(path string) (*types.Package, error) {
			if mapped, ok := p.ImportMap[path]; ok {
				path = mapped
			}
			if path == "unsafe" {
				return types.Unsafe, nil
			}
			return c[path], nil
		}),
		IgnoreFuncBodies: !ours,
		Sizes:            types.SizesFor("gc", "amd64"),
		Error: func(err error) {
			if ours {
				report(err)
			}
		},
	}
	c[p.ImportPath], _ = config.Check(p.ImportPath, fset, files, nil) // with errors it is incomplete
	return nil
}

type importer func(path string) (*types.Package, error)

// Import implements [types.Importer].
func (i importer) Import(path string) (*types.Package, error) { return i(path) }

// The commands compile on the platforms on which administrators run them. Checking types
// takes a tenth of the time of a build for another platform.
func TestCommandsCompileOnOtherPlatforms(t *testing.T) {
	for _, goos := range []string{"darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			all := checked{}
			for _, p := range packagesOn(t, goos) {
				if p.ImportPath == "unsafe" {
					continue
				}
				if err := all.check(p, func(err error) { t.Error(err) }); err != nil {
					t.Error(err)
				}
			}
			if len(all) < 100 {
				t.Errorf("%d packages were checked, want all", len(all))
			}
		})
	}
}
