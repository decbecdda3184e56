package redaction

import (
	"errors"
	"slices"
	"strings"
	"sync"
)

// engineVersion changes when the code masks something else. Data files are hashed.
const engineVersion = "6"

// An engine finds secrets in one text. It holds the rules and no state.
type engine struct {
	*ruleset
	// runs are the token rules without an anchor.
	runs []*tokenRule
	ips  bool
	// examples has the first example of each rule.
	examples map[string]string
	// formsBefore has the forms that may match before each byte.
	formsBefore [256][]*formRule
	// all has every trigger. contextFree has only the triggers of secrets that
	// can be recognized without looking at their surroundings.
	all, contextFree *automaton
	workspaces       sync.Pool
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
	e := &engine{ruleset: rules, ips: cfg.InternalIPs, examples: firstExamples(rules.rules), formsBefore: formsBefore(rules.forms)}
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
	all := e.triggers(cfg)
	e.all = newAutomaton(all)
	e.contextFree = newAutomaton(slices.DeleteFunc(all, func(t trigger) bool { return !t.contextFree }))
	return e, e.prove(own)
}

// scan returns the ranges of raw to mask: sorted, disjoint, each within a line.
func (e *engine) scan(raw string, f form) []span {
	c := collector{raw: raw}
	w := e.workspace()
	defer e.workspaces.Put(w)
	for _, v := range views(raw, f) {
		c.take(v, e.detect(v, w))
		if u := unfold(v); u != nil {
			c.take(u, e.detect(u, w))
		}
	}
	return withoutPlaceholders(raw, c.finish())
}

// scanMisses returns the ranges of raw that a rule would mask if no classifier had
// decided against it.
func (e *engine) scanMisses(raw string, f form) []span {
	c := collector{raw: raw}
	w := e.workspace()
	defer e.workspaces.Put(w)
	for _, v := range views(raw, f) {
		w.clear()
		d := detector{engine: e, workspace: w, view: v, s: v.text, explain: true}
		d.run()
		c.take(v, w.misses)
	}
	return c.finish()
}

// detect returns the detections in one view, in its offsets and in any order.
// They are valid until w is used again.
func (e *engine) detect(v *view, w *workspace) []detection {
	w.clear()
	d := detector{engine: e, workspace: w, view: v, s: v.text}
	d.run()
	return d.detections
}

// run calls every matcher.
func (d *detector) run() {
	d.keyBodies()
	d.scanTriggers(d.all)
	d.longRuns()
	if d.ips {
		d.internalIPs()
	}
}

// contextFreeRule returns the rule that masks something in v without context, or "".
func (e *engine) contextFreeRule(v *view) string {
	w := e.workspace()
	defer e.workspaces.Put(w)
	w.clear()
	d := detector{engine: e, workspace: w, view: v, s: v.text, contextFree: true}
	d.scanTriggers(e.contextFree)
	if len(d.detections) > 0 {
		return d.detections[0].rule
	}
	return ""
}

// contextFreeRuleUnfolded is contextFreeRule for s as it is and for s unfolded.
func (e *engine) contextFreeRuleUnfolded(s string) string {
	v := whole(s)
	rule := e.contextFreeRule(v)
	if u := unfold(v); u != nil && rule == "" {
		rule = e.contextFreeRule(u)
	}
	return rule
}

// A detector is the state of one pass over one view.
type detector struct {
	*engine
	*workspace
	view *view
	s    string
	// contextFree is set for the check of a request: no rule that rates context.
	contextFree bool
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
	// maskedEnd is the end of the last text that was masked without parsing it.
	maskedEnd int
	// The limits on reading values, tokens and credentials of a scheme again.
	values, tokenRuns, schemes rescanLimit
	// place and why are the reason for the next detection.
	place, why string
	// explain makes the detector record near misses.
	explain bool
}

// scanTriggers calls the matcher of every trigger in the text.
func (d *detector) scanTriggers(a *automaton) {
	a.each(d.s, func(t *trigger, begin, end int) {
		switch {
		case begin < d.placeholderEnd || begin < d.maskedEnd:
		case d.adjacent > maxAdjacent && d.isDense(begin):
			d.extend(end)
		default:
			t.match(d, t.index, begin, end)
		}
	})
}

// placeholder skips the placeholder at begin.
func (d *detector) placeholder(_, begin, _ int) {
	if n := placeholderLen(d.s[begin:]); n > 0 {
		d.placeholderEnd = begin + n
	}
}

// exceeded notes that s[start:end] is read and reports whether its stretch was
// read too often. Then the text is masked, and no matcher reads it again.
func (d *detector) exceeded(l *rescanLimit, class string, start, end int) bool {
	const maxReads = 8 // of each byte, on average
	if start >= l.end {
		*l = rescanLimit{begin: start}
	}
	l.begin, l.end = min(l.begin, start), max(l.end, end) // a form may read backwards
	l.read += end - start
	if l.read <= maxReads*(l.end-l.begin) {
		return false
	}
	d.report(class, "rescan limit", start, end)
	d.maskedEnd = max(d.maskedEnd, end)
	return true
}

// report records s[start:end] as a secret.
func (d *detector) report(class, rule string, start, end int) {
	if start >= end {
		return
	}
	if d.isDense(start) {
		d.extend(end)
		return
	}
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
	// ahead and behind cache lexemes.
	ahead, behind lexemeCache
	// adjacent counts the consecutive detections that nearly touch.
	adjacent int
}

// A detection is a range of a view that holds a secret.
type detection struct {
	start, end int
	reason
}

// A reason is why a range is masked, or is not.
type reason struct {
	class, rule string
	// place is where the value stands beside its name, or "". why is the classifier
	// that decided, or "".
	place, why string
}

const strengthBits = 9

type knownStrength struct {
	ident    string
	strength strength
	// rule is the name rule that gives the strength.
	rule string
}

func (e *engine) workspace() *workspace {
	if w, ok := e.workspaces.Get().(*workspace); ok {
		return w
	}
	return &workspace{commandEnd: make([]int, len(e.commands))}
}

// clear makes the workspace ready for another view.
func (w *workspace) clear() {
	w.detections, w.misses, w.adjacent = w.detections[:0], w.misses[:0], 0
	clear(w.commandEnd)
	w.ahead, w.behind = lexemeCache{}, lexemeCache{}
}

// More than maxAdjacent detections in a row, at most adjacentGap bytes apart, are
// masked as one, which bounds the number of spans: no readable text looks so.
const (
	adjacentGap = 4
	maxAdjacent = 1 << 10
)

// isDense reports whether a detection that begins at start continues such a row.
func (d *detector) isDense(start int) bool {
	n := len(d.detections)
	if n == 0 || start < d.detections[n-1].start || start > d.detections[n-1].end+adjacentGap || strings.Contains(d.s[min(start, d.detections[n-1].end):start], "\n") {
		d.adjacent = 0
		return false
	}
	d.adjacent++
	return d.adjacent > maxAdjacent
}

// extend moves the end of the last detection to end.
func (w *workspace) extend(end int) {
	final := &w.detections[len(w.detections)-1]
	final.end = max(final.end, end)
}

// strengthOf returns the strength of ident. It is cached, because names occur often.
func (d *detector) strengthOf(ident string) strength { return d.rate(ident).strength }

// rate returns the strength of ident and the rule that gives it.
func (d *detector) rate(ident string) *knownStrength {
	h := uint32(0x811c9dc5)
	for i := range len(ident) {
		h = (h ^ uint32(ident[i])) * 0x01000193
	}
	known := &d.strengths[h>>(32-strengthBits)]
	if known.ident != ident {
		known.ident = strings.Clone(ident)
		known.strength, known.rule = d.computeStrength(ident)
	}
	return known
}

// A rescanLimit keeps the work of a matcher linear where names, prefixes or
// schemes are part of the values of others, as in key=key=key=: each would be
// read to the same end. It covers a stretch of text in which the ranges read
// overlap.
type rescanLimit struct {
	begin, end int
	read       int // bytes, counted each time they are read
}
