// Package pack selects the code around a change that a reviewer needs to understand
// it: the rest of the functions that the change touches, imports, and the definitions
// of the names on changed lines, from the changed files themselves (tier 0) and from
// the files that belong to them (tier 1). paths.txt says where those are. The package
// does no I/O: its user looks up and reads the files that [Pack.Candidates] names.
package pack

import (
	"cmp"
	"context"
	"maps"
	"path"
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
	// Files and Bytes bound the files of tier 1 that are read.
	Files int
	Bytes int64
	// Tokens bounds the whole pack, at bytesPerToken.
	Tokens int
}

// Bounds are the limits of the product.
var Bounds = Limits{Lines: 120, Files: 20, Bytes: 400_000, Tokens: 30_000}

const (
	bytesPerToken  = 3
	outlineTimeout = 10 * time.Second
	// maxCandidates bounds the paths that are looked up, and maxImports the imports of a
	// file that lead to them.
	maxCandidates, maxImports = 1_000, 1_000
	// minShared is the length of what a file's name and another name must share at least.
	minShared = 4
	// maxDefinition is how many lines of a definition are shown, maxHead how many of a
	// longer one, and maxComment how many of the comment above it.
	maxDefinition, maxHead, maxComment = 30, 6, 4
	// maxPlaces is how many definitions of one name are shown.
	maxPlaces = 3
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
	names   map[string][]int // names on changed lines: the indexes of the files
	left    int              // bytes of the budget
	context review.Context
	scores  map[Lookup]int // of the candidates
}

// New makes a pack with what the changed files hold.
func New(ctx context.Context, limits Limits, files []review.File) *Pack {
	p := &Pack{limits: limits, names: map[string][]int{}, left: limits.Tokens * bytesPerToken}
	for i, f := range files {
		if text, err := f.Whole.Text(); err == nil && f.Diff != "" && len(f.Whole) > 0 {
			s := &source{path: f.DepotPath, lines: strings.SplitAfter(text, "\n"), index: i}
			s.shown, s.changed = diffLines(f.Diff)
			p.files = append(p.files, s)
		}
	}
	outlineAll(ctx, p.files)
	for _, s := range p.files {
		for _, line := range s.changed {
			for _, name := range s.outline.Names[line] {
				if at := p.names[name]; len(at) == 0 || at[len(at)-1] != s.index {
					p.names[name] = append(at, s.index)
				}
			}
		}
	}
	for _, step := range []func(*source){
		p.addEnclosing,
		func(s *source) { p.addNamed(s, review.TierChange, true) },
		p.addImports,
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

// Context returns the pack.
func (p *Pack) Context() review.Context { return p.context }

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
	for _, line := range s.changed {
		d, ok := s.outline.Enclosing(line, p.limits.Lines)
		switch {
		case !ok:
		case d.Last-d.First < p.limits.Lines:
			p.add(s, review.TierChange, review.BlockEnclosing, d.First, d.Last, []int{s.index})
		default:
			p.add(s, review.TierChange, review.BlockEnclosing, d.First, min(d.Body, d.First+maxHead), []int{s.index})
		}
	}
}

// addNamed adds the definitions in a file of names on the changed lines of all files, or,
// with own, of the file itself. It returns how many there are.
func (p *Pack) addNamed(s *source, tier review.Tier, own bool) (added int) {
	places := map[string]int{}
	for _, d := range s.outline.Definitions {
		serves := p.names[d.Name]
		_, isOwn := slices.BinarySearch(serves, s.index)
		if d.Name == "" || serves == nil || own && !isOwn || places[d.Name] == maxPlaces {
			continue
		}
		places[d.Name]++
		added++
		first, last := s.withComment(d.First), d.Last
		if last-d.First >= maxDefinition {
			last = min(max(d.Body, d.First+1), d.First+maxHead)
		}
		p.add(s, tier, review.BlockDefinition, first, last, serves, d.Name)
	}
	return added
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
	for _, i := range s.outline.Imports {
		p.add(s, review.TierChange, review.BlockImports, i.First, i.Last, []int{s.index})
	}
}

// A Lookup is a path that may exist: a file, or with Dir all files of a folder.
type Lookup struct {
	Path string
	Dir  bool
}

// Folder is the lookup that finds a file among those of its folder.
func Folder(file string) Lookup { return Lookup{"/" + path.Dir(file[1:]), true} }

// Candidates returns the paths of tier 1, best first. They may not exist.
func (p *Pack) Candidates() []Lookup {
	if p.limits.Files == 0 {
		return nil
	}
	p.scores = map[Lookup]int{}
	var best []candidate
	for _, s := range p.files {
		best = append(best, candidatesOf(s.path, s.outline, p.names)...)
		if len(best) > 50*maxCandidates {
			best = p.best(best)
		}
	}
	var out []Lookup
	for _, c := range p.best(best) {
		p.scores[c.Lookup] = c.score
		out = append(out, c.Lookup)
	}
	return out
}

// best returns the best candidates that are not changed files, each once.
func (p *Pack) best(all []candidate) (best []candidate) {
	slices.SortStableFunc(all, func(a, b candidate) int { return b.score - a.score })
	seen := map[Lookup]bool{}
	for _, s := range p.files {
		seen[Lookup{Path: s.path}] = true
	}
	for _, c := range all {
		if !seen[c.Lookup] && len(best) < maxCandidates {
			seen[c.Lookup] = true
			best = append(best, c)
		}
	}
	return best
}

// Choose returns the files to read, of those candidates that exist: at most limits.Files, best
// first.
func (p *Pack) Choose(existing []string) []string {
	changed := map[string]bool{}
	for _, s := range p.files {
		changed[s.path] = true
	}
	existing = slices.DeleteFunc(existing, func(file string) bool { return changed[file] })
	names := foldNames(p.names)
	rank := make(map[string]int, len(existing))
	for _, file := range existing {
		rank[file] = max(p.scores[Lookup{Path: file}], p.scores[Folder(file)]) + names.affinity(file)
	}
	slices.SortFunc(existing, func(a, b string) int { return cmp.Or(rank[b]-rank[a], strings.Compare(a, b)) })
	existing = slices.Compact(existing)
	return existing[:min(len(existing), p.limits.Files)]
}

// foldedNames are names without case and underscores: a change may have 100,000, and
// 5,000 files are compared with them.
type foldedNames struct {
	each map[string]bool
	all  string // separated by slashes
}

func fold(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

func foldNames(names map[string][]int) foldedNames {
	each := make(map[string]bool, len(names))
	for name := range names {
		each[fold(name)] = true
	}
	return foldedNames{each, strings.Join(slices.Collect(maps.Keys(each)), "/")}
}

// affinity is how much the name of a file suggests that it defines one of the names.
func (n foldedNames) affinity(file string) int {
	base, score := fold(stem(file)), 0
	switch {
	case n.each[base]:
		return 50
	case len(base) >= minShared && (strings.Contains(n.all, base) || n.within(base)):
		score = 30
	case n.each[fold(path.Base(path.Dir(file)))]:
		score = 20
	}
	if testWords.MatchString(strings.TrimSuffix(path.Base(file), path.Ext(file))) {
		score -= 40
	}
	return score
}

// within reports whether base contains one of the names.
func (n foldedNames) within(base string) bool {
	for first := range base {
		for end := first + minShared; end <= len(base); end++ {
			if n.each[base[first:end]] {
				return true
			}
		}
	}
	return false
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
		if before := len(p.context.Blocks); p.addNamed(s, review.TierSiblings, false) > 0 && len(p.context.Blocks) > before {
			p.context.Sources = append(p.context.Sources, review.Source{Path: s.path, Whole: review.Compress(texts[s.path])})
		}
	}
}
