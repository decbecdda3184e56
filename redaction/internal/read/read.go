// Package read finds values in a text and the names that they are bound to, and asks package judge
// whether a value is a secret.
//
// [Rules.Read] is the spine. A text is read once, from its beginning: package lex divides it into
// tokens, a literal or comment that holds a name is divided again as a text of its own, and the
// readers below start at the names, calls and commands that the rules list:
//
//   - form.go matches forms, which are written as the text looks, on the tokens beside a name;
//   - value.go reads the value at a place: a literal, a text without quotes, the branches of a condition;
//   - tree.go reads what is in brackets, block.go what is indented, both as values with their path of
//     names, which document.go has judged; it reads elements of XML itself;
//   - table.go reads columns: CSV, Markdown, INSERT, COPY; call.go and command.go read arguments.
package read

import (
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// Rules are the rules for names, forms, calls and commands.
type Rules struct {
	Names    *judge.Names
	forms    []form
	calls    []function
	commands []command
	index    formIndex
	buffers  sync.Pool // of *buffer
}

// A buffer is used again for the next text.
type buffer struct {
	tokens []lex.Token
	cache  judge.Cache
}

// A Result is what was read.
type Result struct {
	// Found are the secrets, in any order; Left is what a rule matched and the judge left.
	Found, Left []judge.Span
	// Open are containers of secrets whose end is missing, and what is behind the limit of work: what they
	// hold is masked to the end of the text.
	Open []judge.Span
}

const (
	maxDepth = 4   // literals within literals
	maxName  = 256 // an identifier, on each side of the stem that was found in it

	// maxWork bounds the words, and the places and tokens beside them, that are read. The rest of a text that
	// needs more is masked.
	maxWork  = 4 << 20
	hitWork  = 16 // of one word
	tooDense = "limit of work"
)

// The kinds of words.
const (
	callWord uint8 = iota
	commandWord
	insertWord
	nameWord
	otherName // not of ASCII letters: the word itself is the name
)

// Index returns the words at which the text is read: of names, calls, commands and statements. It has to be called
// after the last rule was added.
func (r *Rules) Index() (words []lex.Word) {
	r.indexForms()
	for i, c := range r.calls {
		words = append(words, lex.Word{Text: c.word, Index: i, Kind: callWord})
	}
	for i, c := range r.commands {
		words = append(words, lex.Word{Text: c.word, Index: i, Kind: commandWord})
	}
	for _, w := range []string{"insert into ", "replace into ", "insert ignore into ", "copy "} {
		words = append(words, lex.Word{Text: w, Kind: insertWord})
	}
	for _, w := range r.Names.Words() {
		kind := nameWord
		if !lex.AllIn(w, &lex.IdentSet) {
			kind = otherName
		}
		words = append(words, lex.Word{Text: w, Kind: kind})
	}
	return words
}

// Drop removes the rules that off reports. It has to be called before [Rules.Index].
func (r *Rules) Drop(off func(rule string) bool) {
	r.forms = slices.DeleteFunc(r.forms, func(f form) bool { return off(f.name) })
	r.calls = slices.DeleteFunc(r.calls, func(f function) bool { return off(f.name) })
	r.commands = slices.DeleteFunc(r.commands, func(c command) bool { return off(c.name) })
}

// Read reads a text of a language, in which hits are the words of the rules. isWhole is set if lines are missing
// neither in it nor behind it.
func (r *Rules) Read(text string, l *lex.Language, hits []lex.Hit, isWhole bool) Result {
	b, ok := r.buffers.Get().(*buffer)
	if !ok {
		b = &buffer{}
	}
	defer r.buffers.Put(b)
	d := &reader{Rules: r, s: text, lang: l, cache: &b.cache, commandEnd: make([]int, len(r.commands)), budget: len(text)}
	if len(hits) == 0 && !strings.Contains(text, "sensitive") {
		return d.Result
	}
	b.tokens = lex.Append(slices.Grow(b.tokens[:0], len(text)/4), text, 0, len(text), l)
	root := &region{s: text, toks: b.tokens, to: len(text), isText: isWhole && l != lex.Unknown, bare: l.Kind != lex.Code && l.Kind != lex.Markup, code: l.Kind == lex.Code, data: l.Kind == lex.Config || l.Kind == lex.Shell}
	d.inData = root.data
	d.judgeAll(d.document(root), inDocument)
	d.region(root, hits, 0)
	return d.Result
}

// A reader is the state of reading one text.
type reader struct {
	*Rules
	Result
	s     string
	lang  *lex.Language
	cache *judge.Cache
	// The ends of the last name, list, table, row of branches and statement that were
	// read: each is read once, although it may hold many names.
	nameEnd, listEnd, elementEnd, tableEnd, branchEnd, insertEnd int
	// bareEnd is the end of the last text without quotes, bareDepth how many names in it had a value.
	bareEnd, bareDepth int
	commandEnd         []int
	// inCode is set while the name in hand is one of code, inData while the value is one of data.
	inCode, inData bool
	// budget is how many more tokens of arguments may be read than a few for each.
	budget int
	// work is what was done so far, as in maxWork.
	work int
}

// region reads around the hits, which are in the region, in order.
func (d *reader) region(rg *region, hits []lex.Hit, depth int) {
	at := 0
	for len(hits) > 0 {
		h := hits[0]
		if d.work >= maxWork {
			d.stop(h.Begin, judge.Name{Rule: tooDense}, tooDense)
			return
		}
		for at < len(rg.toks) && int(rg.toks[at].End) <= h.Begin {
			at++
		}
		if at == len(rg.toks) {
			return
		}
		t := rg.toks[at]
		inner := t.Kind == lex.Literal || t.Kind == lex.Comment
		if !inner || h.Begin < t.Inner() || h.End > t.InnerEnd() || depth == maxDepth {
			if hits = hits[1:]; d.inPlaceholder(h.Begin) {
				continue
			}
			d.work += hitWork
			d.inCode, d.inData = rg.code, rg.data || h.Kind == commandWord
			switch h.Kind {
			case callWord:
				d.call(rg, h)
			case commandWord:
				d.command(rg, h)
			case insertWord:
				insert(d, rg, h)
			default:
				d.name(rg, at, h)
			}
			continue
		}
		n := sort.Search(len(hits), func(i int) bool { return hits[i].Begin >= t.InnerEnd() })
		sub := &region{s: d.s, from: t.Inner(), to: t.InnerEnd(), bare: true}
		if t.Kind == lex.Literal {
			sub.outer, sub.at, sub.data = rg, at, rg.data && d.lang.Kind == lex.Shell
		}
		sub.toks = lex.Lex(d.s, sub.from, sub.to, lex.Unknown)
		d.region(sub, hits[:n], depth+1)
		hits = hits[n:]
	}
}

// stop masks the text from begin on, and reports it as hidden.
func (d *reader) stop(begin int, n judge.Name, reason string) {
	if slices.ContainsFunc(d.Open, func(s judge.Span) bool { return s.Start <= begin }) {
		return
	}
	s := judge.Span{Start: begin, End: len(d.s), Reason: judge.Reason{Class: n.Class(), Rule: n.Rule}, Hidden: reason}
	d.Found, d.Open = append(d.Found, s), append(d.Open, s)
}

// name reads the identifier around the stem, and what is bound to it.
func (d *reader) name(rg *region, at int, h lex.Hit) {
	if h.Begin < d.nameEnd {
		return
	}
	a, b := h.Begin, h.End
	if h.Kind == nameWord {
		a = max(rg.from, lex.RunBack(d.s, a, &lex.IdentSet, maxName))
		b = min(rg.to, lex.Run(d.s, b, &lex.IdentSet, maxName))
		d.nameEnd = b
		for b > h.End && (d.s[b-1] == '.' || d.s[b-1] == '-' || d.s[b-1] == '$') { // of a sentence
			b--
		}
		if i := strings.LastIndexByte(d.s[a:b], '.'); i > 0 && lex.ByteAt(d.s, b) == '(' && judge.Words("method")[strings.ToLower(d.s[a+i+1:b])] {
			b = a + i
		}
	}
	n := d.cache.Of(d.Names, d.s[a:b])
	if n.Begin, n.End = a, b; n.Strength == judge.NoName {
		return
	}
	before, after := cursor{rg, at}, cursor{rg, at}
	for before.i > 0 && int(rg.toks[before.i-1].End) > a {
		before.i--
	}
	for after.i < len(rg.toks) && int(rg.toks[after.i].Start) < b {
		after.i++
	}
	if n.Strength >= judge.Medium {
		table(d, rg, n)
	}
	match(d, n, before, after)
}

// secret masks the literal if it is a secret. own is the name of the member or column itself.
func (d *reader) secret(n judge.Name, place string, bind judge.Binding, lit literal, own string) bool {
	if lit.start >= lit.end {
		return false
	}
	next := lit.end
	if lit.next.rg != nil {
		next = lit.next.offset()
	}
	c := judge.Candidate{Names: d.Names, Name: n, Bind: bind, S: d.s, Start: lit.start, End: lit.end, Quoted: lit.quoted, Next: next, Own: own, InCode: d.inCode, InData: d.inData || bind == judge.Cell || bind == judge.Element}
	secret, why := c.Judge()
	s := judge.Span{Start: lit.start, End: lit.end, Reason: judge.Reason{Class: n.Class(), Rule: n.Rule, Place: place, Why: why}}
	if secret {
		d.Found = append(d.Found, s)
		return true
	}
	s.Class = ""
	d.Left = append(d.Left, s)
	return false
}

// inPlaceholder reports whether the offset i is in the class of a placeholder.
func (d *reader) inPlaceholder(i int) bool {
	const longest = len(judge.PlaceholderHead) + 32
	from := max(0, i-longest)
	k := strings.LastIndex(d.s[from:i], judge.PlaceholderHead)
	return k >= 0 && from+k+d.Names.PlaceholderLen(d.s[from+k:]) > i
}
