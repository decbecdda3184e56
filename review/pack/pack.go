// Package pack selects the code around a change that a reviewer needs to understand
// it: the rest of the functions that the change touches, imports, and the definitions
// of the names on changed lines, from the changed files themselves (tier 0) and from
// the files that belong to them (tier 1). paths.txt says where those are. The package
// does no I/O: its user looks up and reads the files that [Pack.Candidates] names.
//
// Read pack.go, then choose.go with paths.go, which choose the files of tier 1.
package pack

import (
	"context"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/outline"
)

// Limits bound a pack. A zero limit leaves out what it bounds.
type Limits struct {
	// Lines is the longest function or type that is shown whole.
	Lines int
	// Files bounds the files of tier 1 that are read because of their place, and Named
	// those that are read because their name is in a name that the change uses. Bytes
	// bounds all of them.
	Files, Named int
	Bytes        int64
	// Tokens bounds the whole pack, at bytesPerToken.
	Tokens int
}

// Bounds are the limits of the product.
var Bounds = Limits{Lines: 120, Files: 20, Named: 8, Bytes: 800_000, Tokens: 30_000}

const (
	bytesPerToken  = 3
	outlineTimeout = 10 * time.Second
	// maxCandidates bounds the paths that are looked up, and maxImports the imports of a
	// file that lead to them.
	maxCandidates, maxImports = 1_000, 1_000
	// around is how many lines before and after an edit in a longer function are shown, and
	// beside how many before and after a call.
	around, beside = 20, 2
	// maxDefinition is how many lines of a definition are shown, maxHead how many of a
	// longer one, and maxComment how many of the comment above it.
	maxDefinition, maxHead, maxComment = 30, 6, 4
	// maxPlaces is how many definitions of one name are shown. The name of a variable of
	// fewer than minName bytes is not looked up.
	maxPlaces, minName = 3, 2
)

// A source is a text with its outline and the lines that are shown already.
type source struct {
	path    string
	lines   []string
	outline outline.Outline
	shown   map[int]bool
	// changed are the numbers of the new lines, and of those beside removed ones.
	changed []int
	index   int // of the changed file
}

// A Pack is under construction.
type Pack struct {
	limits  Limits
	files   []*source
	changed map[string]bool  // paths of all files of the change, also of those that are not shown
	names   map[string][]int // names on changed lines: the indexes of the files
	places  map[string]int   // of their definitions that are shown
	edited  map[string][]int // functions whose heads are edited: the indexes of their files
	calls   map[string]int   // of these that are shown
	left    int              // bytes of the budget
	context review.Context
	scores  map[Lookup]int // of the candidates
}

// New makes a pack with what the changed files hold.
func New(ctx context.Context, limits Limits, files []review.File) *Pack {
	p := &Pack{limits: limits, changed: map[string]bool{}, names: map[string][]int{}, places: map[string]int{}, edited: map[string][]int{}, calls: map[string]int{}, left: limits.Tokens * bytesPerToken}
	for i, f := range files {
		p.changed[f.DepotPath] = true
		if text, err := f.Whole.Text(); err == nil && f.Diff != "" && len(f.Whole) > 0 && !prose.MatchString(f.DepotPath) {
			s := &source{path: f.DepotPath, lines: strings.SplitAfter(text, "\n"), index: i}
			s.shown, s.changed = diffLines(f.Diff)
			p.files = append(p.files, s)
		}
	}
	outlineAll(ctx, p.files)
	for _, s := range p.files {
		for _, line := range s.changed {
			for _, name := range s.outline.Names[line] {
				if at := p.names[name]; len(name) >= minName && (len(at) == 0 || at[len(at)-1] != s.index) {
					p.names[name] = append(at, s.index)
				}
			}
		}
	}
	for _, s := range p.files {
		for _, d := range s.outline.Definitions {
			first, isHead := slices.BinarySearch(s.changed, d.First)
			isHead = isHead || first < len(s.changed) && s.changed[first] <= d.Body
			end, _ := slices.BinarySearch(s.changed, d.Last+1)
			if isNew := end-first > d.Last-d.First; d.Kind == outline.Function && len(d.Name) >= minName && isHead && !isNew {
				p.edited[d.Name] = append(p.edited[d.Name], s.index)
			}
		}
	}
	for _, step := range []func(*source){
		p.addEnclosing,
		func(s *source) { p.addNamed(s, review.TierChange, true) },
		func(s *source) { p.addNamed(s, review.TierChange, false) },
	} {
		for _, s := range p.files {
			step(s)
		}
	}
	return p
}

// diffLines returns the lines of the new text that a diff shows, and those that it
// changes: the added ones, and the one after removed ones.
func diffLines(diff string) (shown map[int]bool, changed []int) {
	shown = map[int]bool{}
	before := byte('@') // mark of the line before
	for l := range review.DiffLines(diff) {
		if l.Mark == '+' || l.Mark == ' ' && before == '-' {
			changed = append(changed, l.Number)
		}
		if l.Mark == '+' || l.Mark == ' ' {
			shown[l.Number] = true
		}
		before = l.Mark
	}
	return shown, changed
}

// outlineAll parses the sources on all processors. After a while the rest is not parsed, but
// read by indentation.
func outlineAll(ctx context.Context, sources []*source) {
	ctx, stop := context.WithTimeout(ctx, outlineTimeout)
	defer stop()
	next := make(chan *source)
	var running sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(sources)) {
		running.Go(func() {
			for s := range next {
				s.outline = outline.Around(ctx, s.path, strings.Join(s.lines, ""), s.changed)
			}
		})
	}
	for _, s := range sources {
		next <- s
	}
	close(next)
	running.Wait()
}

// addCalls adds a few calls of the functions whose heads the change edits: the verification
// judges a changed contract by the code that relies on it.
func (p *Pack) addCalls(s *source) {
	if len(p.edited) == 0 {
		return
	}
	heads := map[string]map[int]bool{} // the lines of the heads of edited functions
	for _, d := range s.outline.Definitions {
		for n := d.First; n <= d.Body && p.edited[d.Name] != nil; n++ {
			if heads[d.Name] == nil {
				heads[d.Name] = map[int]bool{}
			}
			heads[d.Name][n] = true
		}
	}
	for i, line := range s.lines {
		if comment.MatchString(line) {
			continue
		}
		for _, m := range called.FindAllStringSubmatch(line[:min(len(line), 1024)], 16) {
			if name, n := m[1], i+1; p.edited[name] != nil && p.calls[name] < maxPlaces && !s.shown[n] && !heads[name][n] {
				p.calls[name]++
				p.add(s, review.TierCalls, review.BlockCall, n-beside, n+beside, p.edited[name], name)
			}
		}
	}
}

// called matches the name of what a line calls.
var called = regexp.MustCompile(`([\pL_$][\pL\p{Nd}_$]*)\(`)

// prose matches files without code.
var prose = regexp.MustCompile(`(?i)\.(?:md|markdown|rst|adoc|txt|tex)$`)

// Context returns the pack. Imports are last: what is imported is shown already.
func (p *Pack) Context() review.Context {
	for _, s := range p.files {
		p.addCalls(s)
		p.addImports(s)
	}
	return p.context
}

// add adds the lines from first to last that are not shown, within the budget.
func (p *Pack) add(s *source, tier review.Tier, kind review.BlockKind, first, last int, serves []int, names ...string) {
	first, last = max(first, 1), min(last, len(s.lines))
	for at := first; at <= last; at++ {
		end, size := at, 0
		for end <= last && !s.shown[end] {
			size += len(s.lines[end-1])
			end++
		}
		if strings.TrimSpace(strings.Join(s.lines[at-1:end-1], "")) != "" && size <= p.left {
			p.left -= size
			p.context.Blocks = append(p.context.Blocks, review.Block{Tier: tier, Kind: kind, Path: s.path, Line: at, Lines: end - at, For: serves, Names: names})
			for ; at < end; at++ {
				s.shown[at] = true
			}
		}
		at = end
	}
}

// addEnclosing adds the rest of the functions and types around the changed lines.
func (p *Pack) addEnclosing(s *source) {
	for i, line := range s.changed {
		d, ok := s.outline.Enclosing(line, p.limits.Lines)
		switch {
		case !ok:
		case d.Last-d.First < p.limits.Lines:
			p.add(s, review.TierChange, review.BlockEnclosing, d.First, d.Last, []int{s.index})
		default:
			before := d.Body
			if i > 0 {
				before = max(before, s.changed[i-1])
			}
			p.addAround(s, d, line, before)
		}
	}
}

// addAround adds, of a long function, the head, the lines around a changed one, and the first
// lines of the blocks that it is in, by their indentation. The search for these ends before
// the line before: its own blocks are shown.
func (p *Pack) addAround(s *source, d outline.Definition, line, before int) {
	if p.left <= 0 {
		return
	}
	show := func(first, last int) { p.add(s, review.TierChange, review.BlockEnclosing, first, last, []int{s.index}) }
	show(d.First, min(d.Body, d.First+maxHead))
	show(max(d.First, line-around), min(d.Last, line+around))
	indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
	inner := indent(s.lines[line-1])
	for i := line - 1; i > before && inner > 0; i-- {
		text := s.lines[i-1]
		if isOuter := indent(text) < inner && strings.TrimSpace(text) != "" && text[0] != '#' && !label.MatchString(text); isOuter {
			inner = indent(text)
			show(i, i)
		}
	}
}

// label matches a label of C at the margin.
var label = regexp.MustCompile(`^\w+:\s*$`)

// addNamed adds the definitions in a file of names on the changed lines of other files, or,
// with own, of the file itself.
func (p *Pack) addNamed(s *source, tier review.Tier, own bool) {
	for _, d := range s.outline.Definitions {
		serves := p.names[d.Name]
		_, isOwn := slices.BinarySearch(serves, s.index)
		if d.Name == "" || serves == nil || tier == review.TierChange && own != isOwn || p.places[d.Name] == maxPlaces {
			continue
		}
		p.places[d.Name]++
		first, last := s.withComment(d.First), d.Last
		if last-d.First >= maxDefinition {
			last = min(max(d.Body, d.First+1), d.First+maxHead)
		}
		p.add(s, tier, review.BlockDefinition, first, last, serves, d.Name)
	}
}

// withComment returns the first line of the comment above a line, or the line.
func (s *source) withComment(line int) int {
	first := line
	for first > 1 && line-first < maxComment && comment.MatchString(s.lines[first-2]) {
		first--
	}
	return first
}

var comment = regexp.MustCompile(`^\s*(//|\*|/\*|#:|--)`)

func (p *Pack) addImports(s *source) {
	for i := 0; i < len(s.outline.Imports); i++ {
		first, last := s.outline.Imports[i].First, s.outline.Imports[i].Last
		for i+1 < len(s.outline.Imports) && s.outline.Imports[i+1].First <= last+2 { // an empty line separates groups
			i++
			last = s.outline.Imports[i].Last
		}
		p.add(s, review.TierChange, review.BlockImports, first, last, []int{s.index})
	}
}

// Add adds the definitions that the texts of tier 1 have, by path and in the given order.
func (p *Pack) Add(ctx context.Context, paths []string, texts map[string]string) {
	var sources []*source
	left := p.limits.Bytes
	for _, path := range paths {
		if size := int64(len(texts[path])); size > 0 && size <= left {
			left -= size
			sources = append(sources, &source{path: path, lines: strings.SplitAfter(texts[path], "\n"), shown: map[int]bool{}})
		}
	}
	outlineAll(ctx, sources)
	for _, s := range sources {
		before := len(p.context.Blocks)
		p.addNamed(s, review.TierSiblings, false)
		if p.addCalls(s); len(p.context.Blocks) > before {
			p.context.Sources = append(p.context.Sources, review.Source{Path: s.path, Whole: review.Compress(texts[s.path])})
		}
	}
}
