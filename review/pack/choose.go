package pack

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
)

// minShared is the length of what a file's name and another name must share at least.
const minShared = 4

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

// best returns the best candidates that are not changed files, each once. The folders of the
// changed files are the first: they are few, and the imports of a large file are many.
func (p *Pack) best(all []candidate) (best []candidate) {
	slices.SortStableFunc(all, func(a, b candidate) int {
		if a.score == scoreFolder != (b.score == scoreFolder) {
			return cmp.Compare(a.score, b.score)
		}
		return b.score - a.score
	})
	seen := map[Lookup]bool{}
	for _, c := range all {
		if isChanged := !c.Dir && p.changed[c.Path]; !isChanged && !seen[c.Lookup] && len(best) < maxCandidates {
			seen[c.Lookup] = true
			best = append(best, c)
		}
	}
	return best
}

// Choose returns the files to read, of those candidates that exist: the best limits.Files, and
// limits.Named whose names suggest that they define what the change uses. A header that
// declares all of a module, as many in C, leads to its folder, and not to these files.
func (p *Pack) Choose(existing []string) []string {
	ends := map[string]bool{}
	for _, s := range p.files {
		ends[path.Ext(s.path)] = true
	}
	existing = slices.DeleteFunc(existing, func(file string) bool {
		return p.changed[file] || pathRules[strings.ToLower(path.Ext(file))] == nil && !ends[path.Ext(file)]
	})
	names := foldNames(p.undefined())
	rank := make(map[string]int, len(existing))
	for _, file := range existing {
		rank[file] = max(p.scores[Lookup{Path: file}], p.scores[Folder(file)]) + names.affinity(file)
	}
	slices.SortFunc(existing, func(a, b string) int { return cmp.Or(rank[b]-rank[a], strings.Compare(a, b)) })
	existing = slices.Compact(existing)
	first := min(len(existing), p.limits.Files)
	chosen, rest := existing[:first:first], existing[first:]
	slices.SortStableFunc(rest, func(a, b string) int { return names.affinity(b) - names.affinity(a) })
	for _, file := range rest[:min(len(rest), p.limits.Named)] {
		if names.affinity(file) > 0 {
			chosen = append(chosen, file)
		}
	}
	return chosen
}

// undefined returns the names on changed lines that no changed file defines.
func (p *Pack) undefined() map[string][]int {
	names := maps.Clone(p.names)
	for _, s := range p.files {
		for _, d := range s.outline.Definitions {
			delete(names, d.Name)
		}
	}
	return names
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
	if isTest.MatchString(path.Base(file)) {
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
