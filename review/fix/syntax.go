package fix

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A grammar parses texts. Of most files a reviewer sees parts only: frames complete a
// part, and the first one in which the part parses decides.
type grammar struct {
	parses func(string) bool
	frames []frame
}

// A frame completes a part of a file. With whole, it holds all known lines. A part begins
// with a line that from matches and ends with one that to matches; without them it has up
// to maxCut lines on each side.
type frame struct {
	open, end string
	whole     bool
	from, to  *regexp.Regexp
}

const maxCut = 12

// maxCuts bounds the parts of a frame that are parsed: a file may have a part between any two
// of its lines.
const maxCuts = 200

var whole = frame{whole: true}

var (
	goGrammar = grammar{parsesGo, []frame{
		whole,
		{open: "package p\n", from: regexp.MustCompile(`^(?:package|import|func|type|var|const)\b`), to: regexp.MustCompile(`^(?:[})]|(?:type|var|const|import|func) .*[^{(]$)`)},
		{open: "package p\nfunc _() {\n", end: "}"},
	}}
	jsonGrammar = grammar{func(s string) bool { return json.Valid([]byte(s)) }, []frame{
		whole, {open: "{", end: "}"}, {open: "{", end: `"":0}`}, {open: "[", end: "]"}, {open: "[", end: "0]"},
	}}
	yamlGrammar = grammar{parsesYAML, []frame{whole, {}}}
	xmlGrammar  = grammar{parsesXML, []frame{whole, {open: "<x>", end: "</x>"}}}

	grammars = map[string]grammar{
		".go": goGrammar, ".json": jsonGrammar, ".uplugin": jsonGrammar, ".uproject": jsonGrammar, ".yaml": yamlGrammar, ".yml": yamlGrammar,
		".xml": xmlGrammar, ".csproj": xmlGrammar, ".props": xmlGrammar, ".resx": xmlGrammar, ".targets": xmlGrammar, ".vcxproj": xmlGrammar, ".xaml": xmlGrammar,
	}
)

func parsesGo(s string) bool {
	_, err := parser.ParseFile(token.NewFileSet(), "", s, parser.SkipObjectResolution)
	return err == nil
}

func parsesYAML(s string) bool {
	var docs []yaml.Node
	return yaml.Load([]byte(s), &docs, yaml.WithAllDocuments()) == nil
}

func parsesXML(s string) bool {
	d := xml.NewDecoder(strings.NewReader(s))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		if _, err := d.Token(); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// parses reports whether the text still parses when lines replace old, as far as the
// lines around them show.
func parses(file string, before, old, lines, after []string) bool {
	if brackets(old) != brackets(lines) {
		return false
	}
	g, ok := grammars[strings.ToLower(path.Ext(file))]
	if !ok {
		return true
	}
	for _, f := range g.frames {
		cuts := f.cuts(before, after)
		for _, cut := range cuts[:min(len(cuts), maxCuts)] {
			in := func(lines []string) string {
				return f.open + text(before[len(before)-cut.before:], lines, after[:cut.after]) + f.end
			}
			switch {
			case g.parses(in(lines)):
				return true
			case g.parses(in(old)):
				return false
			}
		}
	}
	return false
}

// A cut is how many lines before and after a replacement are read with it.
type cut struct{ before, after int }

// cuts returns the parts that f may complete, the largest first.
func (f frame) cuts(before, after []string) (cuts []cut) {
	if f.whole {
		return []cut{{len(before), len(after)}}
	}
	for head := len(before); head >= 0; head-- {
		for tail := len(after); tail >= 0 && (head == 0 || fits(f.from, head, before[len(before)-head])); tail-- {
			if tail == 0 || fits(f.to, tail, after[tail-1]) {
				cuts = append(cuts, cut{head, tail})
			}
		}
	}
	return cuts
}

// fits reports whether a part may have n lines, of which line is the outermost.
func fits(edge *regexp.Regexp, n int, line string) bool {
	return edge == nil && n <= maxCut || edge != nil && edge.MatchString(line)
}

// brackets returns how many more brackets of each kind lines open than close.
func brackets(lines []string) (open [3]int) {
	for _, l := range lines {
		for i, pair := range []string{"()", "[]", "{}"} {
			open[i] += strings.Count(l, pair[:1]) - strings.Count(l, pair[1:])
		}
	}
	return open
}
