package redaction

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// engineVersion changes with every change of what the code masks; the data
// files are hashed beside it.
const engineVersion = "5"

// An engine finds secrets in one text. It holds the rules and no state.
type engine struct {
	tokens    []tokenFormat
	names     []nameStem
	commands  []command
	functions []function
	hosts     []string
	ips       bool
	// all looks for everything, sure only for what is nothing else.
	all, sure *automaton
	// workspaces are what detectors work in, to be used again.
	workspaces sync.Pool
}

func newEngine(cfg Config) (*engine, error) {
	tokens, err := parseTokens(tokensFile)
	if err != nil {
		return nil, err
	}
	own, err := parseTokens(cfg.Rules)
	if err != nil {
		return nil, fmt.Errorf("read configured rules: %w", err)
	}
	names, err := parseNames(namesFile)
	if err != nil {
		return nil, err
	}
	commands, err := parseCommands(commandsFile)
	if err != nil {
		return nil, err
	}
	functions, err := parseFunctions(callsFile)
	if err != nil {
		return nil, err
	}
	e := &engine{tokens: append(tokens, own...), names: names, commands: commands, functions: functions, ips: cfg.InternalIPs}
	for _, h := range cfg.HostSuffixes {
		h = strings.ToLower(strings.TrimLeft(h, "*."))
		if h == "" {
			return nil, fmt.Errorf("internal host suffix is empty")
		}
		e.hosts = append(e.hosts, h)
	}
	cfg.HostSuffixes = e.hosts
	all := triggers(e.tokens, names, commands, functions, cfg)
	e.all = newAutomaton(all)
	e.sure = newAutomaton(slices.DeleteFunc(all, func(t trigger) bool { return !t.certain(e) }))
	return e, nil
}

// certain reports whether what t finds needs no context to be a secret.
func (t trigger) certain(e *engine) bool {
	switch t.kind {
	case onPlaceholder, onURI, onPEM:
		return true
	case onToken:
		return t.index < 0 || len(e.tokens[t.index].prefix) >= 4
	}
	return false
}

// scan returns the ranges of raw to mask: sorted, disjoint, each within a line.
func (e *engine) scan(raw string, f form) []span {
	l := layouts.Get().(*layout)
	defer l.release()
	c := collector{raw: raw}
	workspace := e.workspace()
	defer e.workspaces.Put(workspace)
	for _, v := range l.views(raw, f) {
		c.take(v, e.detect(v, workspace))
		if alt, ok := alternate(v); ok {
			c.take(alt, e.detect(alt, workspace))
		}
	}
	return withoutPlaceholders(raw, c.finish())
}

// certain returns the rule that masks something in s with no context needed,
// or "".
func (e *engine) certain(s string) string { return e.certainIn(whole(s)) }

// certainString is certain for s as it is and without its disguises.
func (e *engine) certainString(s string) string {
	v := whole(s)
	if rule := e.certainIn(v); rule != "" {
		return rule
	}
	if alt, ok := alternate(v); ok {
		return e.certainIn(alt)
	}
	return ""
}

func (e *engine) certainIn(v view) string {
	workspace := e.workspace()
	defer e.workspaces.Put(workspace)
	workspace.clear()
	d := detector{engine: e, workspace: workspace, view: v, s: v.text, certain: true}
	d.trip(e.sure)
	if len(d.finds) > 0 {
		return d.finds[0].rule
	}
	return ""
}

// detect returns the finds in one view, in its offsets and in any order. They
// are good until workspace is used again.
func (e *engine) detect(v view, workspace *workspace) []find {
	workspace.clear()
	d := detector{engine: e, workspace: workspace, view: v, s: v.text}
	d.keyBodyAtCut()
	d.trip(e.all)
	d.longRuns()
	if e.ips {
		d.internalIPs()
	}
	return d.finds
}

// A detector is the state of one pass over one view.
type detector struct {
	*engine
	*workspace
	view view
	s    string
	// certain is set for the guard: no rule that weighs context.
	certain bool
	// after is the end of the last placeholder: what lies in one is no secret.
	after int
	// named is the end of the last identifier that was looked at.
	named int
	// keyEnd is the end of the last key block, so that it is read once; ppkEnd,
	// uriEnd and insertEnd are those of the last PuTTY key, URI, SQL statement.
	keyEnd, ppkEnd, uriEnd, insertEnd int
	// documentEnd, tableEnd and listEnd are those of what is read at once: the
	// last document of each kind, table, list of values.
	documentEnd       [documentKinds]int
	tableEnd, listEnd int
	choiceEnd         int
	// masked is the end of the last text that was masked unseen.
	masked int
	// values, runs and schemes are the looks at values, at tokens, and at what
	// follows the name of an authorization scheme.
	values, runs, schemes looks
}

// trip calls the matcher of every word the automaton meets.
func (d *detector) trip(a *automaton) {
	a.each(d.s, func(t trigger, begin, end int) {
		switch {
		case begin < d.after || begin < d.masked:
		case d.close > maxClose && d.dense(begin):
			d.extend(end)
		default:
			d.match(t, begin, end)
		}
	})
}

// match looks closer at the word s[begin:end].
func (d *detector) match(t trigger, begin, end int) {
	switch t.kind {
	case onPlaceholder:
		if n := placeholderLen(d.s[begin:]); n > 0 {
			d.after = begin + n
		}
	case onToken:
		d.token(t.index, begin, end)
	case onName:
		d.name(begin, end)
	case onURI:
		d.uri(begin, end)
	case onDSN:
		d.dsn(begin)
	case onOracle:
		d.oracle(end)
	case onInsert:
		d.insert(end)
	case onPgpass:
		d.pgpass(begin, end)
	case onPEM:
		d.pem(t.index, begin, end)
	case onPPK:
		d.ppk(end)
	case onDER:
		d.der(begin)
	case onStore:
		if strings.HasPrefix(d.s[begin:], storeHeads[t.index]) {
			d.store(begin)
		}
	case onScheme:
		d.scheme(t.index, begin, end)
	case onCommand:
		d.command(t.index, begin, end)
	case onCall:
		d.call(&d.functions[t.index], begin, end)
	case onDocument:
		d.document(t.index, begin, end)
	case onPrompt:
		d.promptAnswer(begin, end)
	case onForeign:
		d.foreign(t.word, begin, end)
	case onRelay:
		d.relay(end)
	case onUserinfo:
		d.userinfo(begin)
	case onHashes:
		d.hashes(begin)
	case onBasic64:
		d.pemInBase64(begin)
	case onHost:
		d.host(begin, end)
	case onMail:
		d.mail(begin)
	}
}

// unseen masks s[start:end] and has no matcher look at it again.
func (d *detector) unseen(class string, start, end int) {
	d.found(class, "too crowded to look closer", start, end)
	d.masked = max(d.masked, end)
}

// found records s[start:end] as a secret.
func (d *detector) found(class, rule string, start, end int) {
	if start >= end {
		return
	}
	if d.dense(start) {
		d.extend(end)
		return
	}
	d.finds = append(d.finds, find{start, end, class, rule})
}
