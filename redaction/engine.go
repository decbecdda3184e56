package redaction

import (
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
)

// engineVersion changes when the code masks something else. Data files are hashed.
const engineVersion = "11"

// An engine finds secrets in one text. It holds the rules and no state.
type engine struct {
	*ruleset
	// runs are the token rules without an anchor.
	runs []*tokenRule
	// examples has the first example of each rule.
	examples   map[string]string
	forms      *formIndex
	all        *automaton // with every trigger
	workspaces sync.Pool
}

// newEngine returns the engine with the built-in rules and those of cfg, whose
// examples it proves. A test proves the examples of the built-in rules.
func newEngine(cfg Config) (*engine, error) {
	rules, err := builtinRules()
	if err != nil {
		return nil, err
	}
	builtin := len(rules.rules)
	if err := rules.parse("rules", cfg.Rules); err != nil {
		return nil, err
	}
	own := slices.Clone(rules.rules[builtin:])
	rules.dropOff()
	e := &engine{ruleset: rules, examples: firstExamples(rules.rules), forms: newFormIndex(rules.forms)}
	for i := range e.tokens {
		if e.tokens[i].anchor < 0 {
			e.runs = append(e.runs, &e.tokens[i])
		}
	}
	cfg.HostSuffixes = slices.Clone(cfg.HostSuffixes)
	for i, h := range cfg.HostSuffixes {
		cfg.HostSuffixes[i] = strings.ToLower(strings.TrimLeft(h, "*."))
		if cfg.HostSuffixes[i] == "" {
			return nil, errors.New("internal host suffix is empty")
		}
	}
	if e.all, err = newAutomaton(e.triggers(cfg)); err != nil {
		return nil, err
	}
	return e, e.prove(own)
}

// A mode is what a pass is for.
type mode int

const (
	masking    mode = iota
	again           // masks what an earlier pass left
	explaining      // records near misses
	checking        // a request: only rules that need no context
)

// scan returns the ranges of raw to mask: sorted, disjoint, each within a line. If it
// explains, they are the ranges that a classifier decided to leave. unread is set if the
// rest of raw was not read: it may hold more secrets anywhere.
func (e *engine) scan(raw string, f form, m mode) (_ []span, unread bool) {
	c := collector{raw: raw}
	e.read(views(raw, f), m, func(d *detector) {
		unread = unread || d.unread
		if c.take(d.view, d.detections); m == explaining {
			c.spans = c.spans[:0]
			c.take(d.view, d.misses)
		}
	})
	return e.withoutPlaceholders(raw, c.finish()), unread
}

// everyLine returns the ranges of raw that mask all of it.
func (e *engine) everyLine(raw string) []span {
	c := collector{raw: raw}
	c.addLines(span{reason: reason{class: "secret", rule: workLimit}, value: raw}, 0, len(raw))
	return e.withoutPlaceholders(raw, c.spans)
}

// read calls take with the detections in each view and in its unfolded lines. They
// are in any order, and valid until take returns.
func (e *engine) read(views []*view, m mode, take func(d *detector)) {
	w, ok := e.workspaces.Get().(*workspace)
	if !ok {
		w = &workspace{commandEnd: make([]int, len(e.commands))}
	}
	defer e.workspaces.Put(w)
	one := func(v *view) {
		w.detections, w.misses = w.detections[:0], w.misses[:0]
		clear(w.commandEnd)
		d := detector{engine: e, workspace: w, view: v, s: v.text, explain: m == explaining, contextFree: m == checking, allowance: 1}
		if m == again { // so that the same text does not exceed the limit again
			d.allowance = 4
		}
		d.run()
		take(&d)
	}
	for _, v := range views {
		one(v)
		if u := unfold(v); u != nil {
			one(u)
		}
	}
}

// run calls every matcher.
func (d *detector) run() {
	d.all.each(d.s, func(t *trigger, begin, end int) {
		switch {
		case d.unread || begin < d.placeholderEnd || d.contextFree && !t.contextFree:
		case d.work > d.allowance*(workSlack+maxWork*begin):
			d.unread = true
		default:
			t.match(d, t.index, begin, end)
		}
	})
	if d.contextFree || d.unread {
		return
	}
	d.keyBodies()
	d.longRuns()
}

// contextFreeRule returns the rule that masks something in s, as it is or unfolded,
// without context, or "".
func (e *engine) contextFreeRule(s string) (rule string) {
	e.read([]*view{whole(s)}, checking, func(d *detector) {
		switch {
		case len(d.detections) > 0:
			rule = d.detections[0].rule
		case d.unread:
			rule = workLimit
		}
	})
	return rule
}

// A detector is the state of one pass over one view.
type detector struct {
	*engine
	*workspace
	view *view
	s    string
	// contextFree is set for the check of a request, explain for near misses.
	contextFree, explain bool
	// placeholderEnd is the end of the last placeholder, which holds no secret.
	placeholderEnd int
	// nameEnd is the end of the last identifier that was read.
	nameEnd int
	// The ends of the last key, URI, SQL statement, block of each kind, table, list
	// and row of conditional branches that was read: each is read once, although it
	// may hold many triggers.
	keyEnd, uriEnd, insertEnd    int
	blockEnds                    [8]int
	tableEnd, listEnd, branchEnd int
	// unread is set if the rest of the text is not read.
	unread bool
	// work is what the rules have done so far. allowance multiplies its limit.
	work, allowance int
	// place and why are the reason for the next detection.
	place, why string
	// asked is the candidate that the classifiers are asked about, one at a time: kept here, it
	// is not allocated for each.
	asked candidate
}

// placeholder skips the placeholder at begin.
func (d *detector) placeholder(_, begin, _ int) {
	if n := d.placeholderLen(d.s[begin:]); n > 0 {
		d.placeholderEnd = begin + n
	}
}

// The work of all rules is bounded here. It is counted in units of a few nanoseconds, and
// where it exceeds maxWork for each byte of the text before, the rest is not read, and the
// whole text is masked: a name far above, such as the head of a table, can make any line a
// secret. So reading takes linear time for every text. Of 58,000 files of code, none of
// more than 20 kB has 18 units per byte; names within names within names have hundreds.
const (
	workLimit = "work limit" // the rule of such a text
	maxWork   = 20
	workSlack = 1 << 22
	// The units of a form that is tried, of a lexeme, of a value that is classified, and of a secret.
	formWork, lexemeWork, valueWork, secretWork = 40, 25, 250, 200
)

// report records s[start:end] as a secret.
func (d *detector) report(class, rule string, start, end int) {
	if start >= end {
		return
	}
	d.work += secretWork
	d.detections = append(d.detections, detection{start, end, reason{class, rule, d.place, d.why}})
	d.place, d.why = "", ""
}

// miss records that the rule would mask s[start:end] if d.why had not decided
// against it.
func (d *detector) miss(rule, why string, start, end int) {
	if d.explain && start < end {
		d.misses = append(d.misses, detection{start, end, reason{"", rule, d.place, why}})
	}
}

// A workspace holds the buffers of a detector, which are used again for the next
// text, and a cache of the strengths of names.
type workspace struct {
	detections []detection
	// misses are the near misses.
	misses []detection
	// commandEnd is the end of the last line that was read for each command.
	commandEnd []int
	// strengths caches strengthOf by the hash of the identifier.
	strengths [1 << strengthBits]knownStrength
}

// A detection is a range of a view that holds a secret.
type detection struct {
	start, end int
	reason
}

// A reason is why a range is masked, or is not.
type reason struct {
	class, rule string
	// place is the position of the value relative to its name, or "". why is the
	// classifier that decided, or "".
	place, why string
}

const strengthBits = 11

type knownStrength struct {
	ident    string
	strength strength
	// rule is the name rule that gives the strength.
	rule   string
	isPair bool
}

// strengthOf returns the strength of ident. It is cached, because names occur often.
func (d *detector) strengthOf(ident string) strength { return d.rate(ident).strength }

// rate returns the strength of ident and the rule that gives it.
func (d *detector) rate(ident string) *knownStrength {
	known := &d.strengths[maphash.String(processSeed, ident)>>(64-strengthBits)]
	if known.ident != ident {
		known.ident = strings.Clone(ident)
		known.strength, known.rule = d.computeStrength(ident)
		known.isPair = lists["pair"][lastWordOf(ident)]
	}
	return known
}
