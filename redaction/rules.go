package redaction

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

func validClass(s string) bool {
	return len(s) > 0 && len(s) <= 32 && allIn(s, &classSet)
}

// A strength is how reliably a name shows that its value is a secret.
type strength uint8

const (
	noName strength = iota
	vendorName
	weakName
	mediumName
	strongName
)

var strengths = map[string]strength{"strong": strongName, "medium": mediumName, "weak": weakName, "vendor": vendorName}

// A nameStem is a stem of a name rule.
type nameStem struct {
	name, stem string
	strength   strength
	// A whole stem has to be a word of the identifier, an ending one the end of a word.
	whole, ending bool
}

// parseName reads "name STRENGTH STEM...".
func parseName(rs *ruleset, f []string) ([]named, error) {
	if len(f) < 2 || strengths[f[0]] == noName {
		return nil, errors.New("want \"name STRENGTH STEM...\" with the strength strong, medium, weak or vendor")
	}
	var out []named
	for _, w := range f[1:] {
		stem, whole := strings.CutPrefix(w, "=")
		stem, ending := strings.CutSuffix(strings.ReplaceAll(stem, "~", " "), "$")
		if len(stem) < 2 {
			return nil, fmt.Errorf("the stem %q is shorter than 2 bytes", stem)
		}
		whole = whole || strengths[f[0]] == vendorName && len(stem) <= 5
		rs.names = append(rs.names, nameStem{"name " + stem, stem, strengths[f[0]], whole, ending})
		out = append(out, named{stem, []string{stem}, ""})
	}
	return out, nil
}

// entries yields the lines of a data file with fields, and their numbers.
func entries(data string) iter.Seq2[int, []string] {
	return func(yield func(int, []string) bool) {
		n := 0
		for line := range strings.Lines(data) {
			n++
			if f := strings.Fields(line); len(f) > 0 && f[0][0] != '#' && !yield(n, f) {
				return
			}
		}
	}
}

// parseLists reads the lists of words.txt by their heading.
func parseLists(data string) (ordered map[string][]string, sets map[string]map[string]bool) {
	ordered, sets = map[string][]string{}, map[string]map[string]bool{}
	var heading string
	for _, f := range entries(data) {
		if f[0][0] == '[' {
			heading = strings.Trim(f[0], "[]")
			sets[heading] = map[string]bool{}
			continue
		}
		for _, w := range f {
			w = strings.ReplaceAll(w, "~", " ")
			ordered[heading] = append(ordered[heading], w)
			sets[heading][w] = true
		}
	}
	return ordered, sets
}

// A matcher looks for secrets at the trigger s[begin:end]. index is the number
// of the rule that the trigger belongs to.
type matcher func(d *detector, index, begin, end int)

// A trigger is a word and what to call where it occurs.
type trigger struct {
	word  string // folded
	match matcher
	index int
	// contextFree triggers find secrets that need no context. isName is set for
	// the stems of name rules.
	contextFree, isName bool
}

// triggers returns the trigger words of all rules.
func (e *engine) triggers(cfg Config) []trigger {
	var out []trigger
	with := func(contextFree bool) func(match matcher, index int, words ...string) {
		return func(match matcher, index int, words ...string) {
			for _, w := range words {
				out = append(out, trigger{word: strings.ToLower(w), match: match, index: index, contextFree: contextFree})
			}
		}
	}
	add, contextFree := with(false), with(true)
	contextFree((*detector).placeholder, 0, placeholderHead)
	contextFree((*detector).uri, 0, "://")
	add((*detector).userinfo, 0, "@")
	add((*detector).dsn, 0, "@tcp(", "@unix(", "@udp(")
	add((*detector).oracle, 0, "jdbc:oracle:thin:", "jdbc:oracle:oci:", "sqlplus ", "connect ", "conn ", "userid=")
	add((*detector).insert, 0, "insert into ")
	for kind, b := range blocks {
		with(b.contextFree)((*detector).block, kind, b.begins...)
	}
	for kind, s := range schemes {
		add((*detector).scheme, kind, s.words...)
	}
	for i, c := range e.commands {
		add((*detector).command, i, c.word)
	}
	add((*detector).pgpass, 0, ":5432:", ":5433:", ":5434:", ":6432:", ":*:")
	for i, c := range e.calls {
		add((*detector).call, i, c.word)
	}
	for i := range e.tokens {
		if anchor := e.tokens[i].anchorText(); anchor != "" {
			with(e.tokens[i].contextFree())((*detector).token, i, anchor)
		}
	}
	for i, n := range e.names {
		t := trigger{word: n.stem, match: (*detector).name, index: i, isName: true}
		if !allIn(n.stem, &identSet) {
			t.match, t.isName = (*detector).nonASCIIName, false
		}
		out = append(out, t)
	}
	if cfg.Emails {
		add((*detector).email, 0, "@")
	}
	if cfg.InternalIPs {
		add((*detector).internalIP, 0, privateNets...)
	}
	add((*detector).host, 0, cfg.HostSuffixes...)
	return slices.Clip(out)
}
