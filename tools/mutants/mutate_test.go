package mutants

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed switch.go.txt
var switches string

// A mutant is one changed operator.
type mutant struct {
	id      int
	mutator string
	file    string // relative to the root of the repository
	line    int
	text    string // of the line
}

// A source is a package whose mutants are compiled into one program, each with a switch.
type source struct {
	dir     string // relative to the root of the repository
	fset    *token.FileSet
	info    *types.Info
	own     *types.Package
	mutants []mutant
}

// An edit inserts text at an offset of a file, in place of some bytes.
type edit struct {
	at, remove int
	text       string
}

// parse reads and type-checks the package.
func (s *source) parse() ([]*ast.File, error) {
	listed, err := goCommand("list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}} {{.GoFiles}}", "./"+s.dir)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	var line []string
	for l := range strings.Lines(string(listed)) { // the package itself is the last one
		line = strings.SplitN(strings.TrimSpace(l), " ", 3)
		exports[line[0]] = line[1]
	}
	var files []*ast.File
	for name := range strings.FieldsSeq(strings.Trim(line[2], "[]")) {
		f, err := parser.ParseFile(s.fset, filepath.Join(root, s.dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	s.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: importer.ForCompiler(s.fset, "gc", lookup)}
	s.own, err = conf.Check(line[0], s.fset, files, s.info)
	return files, err
}

// mutate returns the files of the package with switches: those whose name without .go
// matches pattern.
func (s *source) mutate(pattern *regexp.Regexp) (map[string][]byte, error) {
	files, err := s.parse()
	if err != nil {
		return nil, err
	}
	mutated := map[string][]byte{
		filepath.Join(root, s.dir, "zz_mutants.go"): []byte(strings.Replace(switches, "package PACKAGE", "package "+s.own.Name(), 1)),
	}
	for _, f := range files {
		path := s.fset.File(f.Pos()).Name()
		if !pattern.MatchString(strings.TrimSuffix(filepath.Base(path), ".go")) {
			continue
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		change := s.edits
		if strings.HasSuffix(path, ".sql.go") {
			change = s.queryEdits
		}
		if edits := change(f, strings.Split(string(body), "\n")); len(edits) > 0 {
			mutated[path] = apply(body, edits)
		}
	}
	return mutated, nil
}

// apply makes the edits. Of several at one offset, the first is outermost.
func apply(body []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at - b.at })
	var out bytes.Buffer
	last := 0
	for _, e := range edits {
		out.Write(body[last:e.at])
		out.WriteString(e.text)
		last = e.at + e.remove
	}
	out.Write(body[last:])
	return out.Bytes()
}

// add adds a mutant of the operator at a position and returns its number.
func (s *source) add(at token.Pos, mutator string, lines []string) int {
	p := s.fset.Position(at)
	m := mutant{len(s.mutants) + 1, mutator, filepath.Join(s.dir, filepath.Base(p.Filename)), p.Line, strings.TrimSpace(lines[p.Line-1])}
	s.mutants = append(s.mutants, m)
	return m.id
}

// queryMutators change the operators of SQL. The second part of a match is replaced.
var queryMutators = []struct {
	name, operator, changed string
}{
	{"QUERY_LOGIC", `\b()and\b`, "or"},
	{"QUERY_LOGIC", `\b()or\b`, "and"},
	{"QUERY_LOGIC", `()\bnot exists\b`, "exists"},
	{"QUERY_LOGIC", `[^t]( )exists\b`, "not exists"},
	{"CONDITIONALS_NEGATION", `()\bis null\b`, "is not null"},
	{"CONDITIONALS_NEGATION", `()\bis not null\b`, "is null"},
	{"CONDITIONALS_NEGATION", `\b(?:where|and|or|on|when) \(?[\w.]+( )= `, "<> "},
	{"CONDITIONALS_NEGATION", `( )<> `, "= "},
	{"CONDITIONALS_NEGATION", `( )(?:<|<=) `, "> "},
	{"CONDITIONALS_NEGATION", `( )(?:>|>=) `, "< "},
	{"CONDITIONALS_BOUNDARY", `( )< `, "<= "},
	{"CONDITIONALS_BOUNDARY", `( )<= `, "< "},
	{"CONDITIONALS_BOUNDARY", `( )> `, ">= "},
	{"CONDITIONALS_BOUNDARY", `( )>= `, "> "},
	{"ARITHMETIC_BASE", `( )- `, "+ "},
	{"ARITHMETIC_BASE", `( )\+ `, "- "},
	{"QUERY_ORDER", `\b()desc\b`, "asc"},
	{"QUERY_ORDER", `\b()max\(`, "min("},
}

// queryEdits returns the edits that build switches into the queries of a file that sqlc has
// generated, and adds their mutants.
func (s *source) queryEdits(f *ast.File, lines []string) (edits []edit) {
	calls := map[string][2]string{} // by constant: before and after its use
	for _, d := range f.Decls {
		constant, ok := d.(*ast.GenDecl)
		if !ok || constant.Tok != token.CONST {
			continue
		}
		spec := constant.Specs[0].(*ast.ValueSpec)
		literal := spec.Values[0].(*ast.BasicLit)
		first, after := len(s.mutants)+1, ""
		for _, m := range queryMutators {
			for _, at := range regexp.MustCompile(m.operator).FindAllStringSubmatchIndex(literal.Value, -1) {
				line := s.fset.Position(literal.Pos() + token.Pos(at[3])).Line
				if m.name == "CONDITIONALS_BOUNDARY" && strings.Contains(lines[line-1], "now()") {
					continue // no test meets the microsecond
				}
				after += ", " + literal.Value[:at[3]] + m.changed + literal.Value[at[1]:]
				s.add(literal.Pos()+token.Pos(at[3]), m.name, lines)
			}
		}
		if after != "" {
			calls[spec.Names[0].Name] = [2]string{fmt.Sprintf("mutantQuery(%d, ", first), after + ")"}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		for _, arg := range call.Args {
			name, ok := arg.(*ast.Ident)
			if !ok || calls[name.Name][0] == "" {
				continue
			}
			edits = append(edits, edit{at: s.fset.Position(name.Pos()).Offset, text: calls[name.Name][0]},
				edit{at: s.fset.Position(name.End()).Offset, text: calls[name.Name][1]})
		}
		return true
	})
	return edits
}

// edits returns the edits that build switches into a file, and adds its mutants.
func (s *source) edits(f *ast.File, lines []string) (edits []edit) {
	offset := func(p token.Pos) int { return s.fset.Position(p).Offset }
	add := func(at token.Pos, mutator string) int { return s.add(at, mutator, lines) }
	// wrap makes a call of an expression whose end is closed before that of an outer one.
	wrap := func(x ast.Expr, call string) {
		edits = append(edits, edit{at: offset(x.Pos()), text: call})
		edits = slices.Insert(edits, 0, edit{at: offset(x.End()), text: ")"})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok == token.VAR
		case *ast.ArrayType, *ast.FuncType:
			return false
		case *ast.IncDecStmt:
			id := add(n.TokPos, "INCREMENT_DECREMENT")
			sign := map[token.Token]string{token.INC: "-1", token.DEC: "1"}[n.Tok]
			edits = append(edits, edit{offset(n.TokPos), 2, fmt.Sprintf(" -= %s(mutantNegate(%d, %s))", s.typeOf(n.X), id, sign)})
		case *ast.UnaryExpr:
			if n.Op == token.SUB {
				wrap(n, fmt.Sprintf("mutantNegate[%s](%d, ", s.typeOf(n), add(n.OpPos, "INVERT_NEGATIVES")))
				return s.info.Types[n].Value == nil
			}
		case *ast.BinaryExpr:
			if s.info.Types[n].Value != nil {
				return false
			}
			s.binary(n, add, wrap, func(operator string) {
				edits = append(edits, edit{offset(n.OpPos), len(n.Op.String()), operator})
			})
		}
		return true
	})
	return edits
}

func (s *source) binary(n *ast.BinaryExpr, add func(token.Pos, string) int, wrap func(ast.Expr, string), replace func(string)) {
	call, operator := "mutantArithmetic", fmt.Sprintf(", %q, ", n.Op)
	var id int
	switch n.Op {
	case token.EQL, token.NEQ:
		wrap(n, fmt.Sprintf("mutantNot(%d, ", add(n.OpPos, "CONDITIONALS_NEGATION")))
		return
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		call, id = "mutantOrder", add(n.OpPos, "CONDITIONALS_BOUNDARY")
		add(n.OpPos, "CONDITIONALS_NEGATION")
	case token.REM:
		call, operator, id = "mutantRemainder", ", ", add(n.OpPos, "ARITHMETIC_BASE")
	case token.ADD, token.SUB, token.MUL, token.QUO:
		if basic, ok := s.info.Types[n].Type.Underlying().(*types.Basic); !ok || basic.Info()&types.IsNumeric == 0 {
			return
		}
		id = add(n.OpPos, "ARITHMETIC_BASE")
	default:
		return
	}
	wrap(n, fmt.Sprintf("%s(%d, ", call, id))
	replace(operator)
}

// typeOf returns the name of an expression's type.
func (s *source) typeOf(x ast.Expr) string {
	return types.TypeString(s.info.Types[x].Type, func(p *types.Package) string {
		if p == s.own {
			return ""
		}
		return p.Name()
	})
}

// goCommand runs the go command in the root of the repository.
func goCommand(args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", args[0], err, &errors)
	}
	return out, nil
}
