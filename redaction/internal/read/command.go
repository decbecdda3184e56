package read

import (
	"fmt"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A command is a program and where it takes a secret.
type command struct {
	name  string
	word  string // in small letters
	how   string // one of commandForms, described at the top of rules/commands.rules
	flags []string
}

var commandForms = []string{"flag", "glued", "pair", "gluedpair", "next", "word", "last", "pipe", "pipepair", "second"}

// AddCommand reads "command HOW WORD... : FLAG..." without the first word.
func (r *Rules) AddCommand(f []string) ([]judge.Subject, error) {
	colon := len(f) - 1
	for colon > 0 && f[colon] != ":" {
		colon--
	}
	if colon < 2 || !slices.Contains(commandForms, f[0]) {
		return nil, fmt.Errorf("want \"command HOW WORD... : FLAG...\" with HOW one of %s", strings.Join(commandForms, ", "))
	}
	c := command{word: strings.ToLower(strings.Join(f[1:colon], " ")), how: f[0], flags: f[colon+1:]}
	name := strings.TrimSuffix(strings.Join(f[1:], " "), " :")
	c.name = "command " + name
	r.commands = append(r.commands, c)
	subjects := []judge.Subject{{Rule: name, Text: c.word}}
	for i, flag := range c.flags {
		if i > 0 {
			subjects = append(subjects, judge.Subject{Rule: name})
		}
		subjects[i].Text = c.word + " " + flag
	}
	return subjects, nil
}

// A shell reads the arguments of a command.
type shell struct {
	*reader
	*command
	n judge.Name
}

// command looks for the secrets that the command of the hit takes.
func (d *reader) command(rg *region, h hit) {
	c := &d.commands[h.index]
	before := lex.ByteAt(d.s, h.begin-1)
	if h.begin < d.commandEnd[h.index] || lex.IsAlnum(before) || before == '_' ||
		c.how != "glued" && h.end < len(d.s) && lex.IdentSet.Has(d.s[h.end]) && !strings.HasPrefix(d.s[h.end:], ".exe ") { // mysql also begins mysqldump
		return
	}
	sh := shell{d, c, judge.Name{Begin: h.begin, End: h.end, Strength: judge.Strong, Rule: c.name}}
	if c.how == "pipe" || c.how == "pipepair" {
		sh.piped(rg)
		return
	}
	at := rg.cursorAt(h.end)
	if outer, ok := at.leave(); ok { // an element of a list
		at = outer
	}
	args, end := shellWords(d, at)
	d.commandEnd[h.index] = end
	switch c.how {
	case "next", "word", "second", "last":
		if at.offset() > h.end || wordGap.Has(lex.ByteAt(d.s, h.end)) {
			sh.positional(args)
		}
	default:
		for i := range args {
			sh.flagValue(args[i:])
		}
	}
}

var (
	wordGap   = lex.SetOf(" \t,=[]\"'\\`")
	wordStops = lex.SetOf(";|)&>#")
)

// shellWords returns the words of the command line at c, as a shell splits them, or as the
// elements of a list. A line that ends in a backslash or a backquote continues.
func shellWords(d *reader, c cursor) (words []literal, end int) {
	for {
		d.work++
		t, ok := c.token()
		switch text := c.text(); {
		case !ok:
			return words, c.offset()
		case t.Kind == lex.Blank || text == "," || text == "[" || text == "]" || text == "=":
			c = c.next()
			continue
		case (text == `\` || text == "`") && c.next().skip(false).isKind(lex.Newline):
			c = c.next().skip(false).next()
			continue
		case t.Kind == lex.Newline, t.Kind == lex.Comment, t.Kind == lex.Mark && wordStops.Has(text[0]):
			return words, int(t.Start)
		}
		begin := c
		for c = c.next(); ; c = c.next() {
			d.work++
			after, ok := c.token()
			text := c.text()
			if !ok || after.Kind == lex.Blank || after.Kind == lex.Newline || after.Kind == lex.Comment ||
				after.Kind == lex.Mark && (strings.IndexByte(";|)", text[0]) >= 0 || t.Kind == lex.Literal && (text == "," || text == "]")) {
				break
			}
		}
		lit := literal{int(t.Start), c.offset(), false, c}
		if t.Kind == lex.Literal && c == begin.next() {
			lit = literal{int(t.Inner), int(t.InnerEnd), true, c}
		}
		words = append(words, lit)
	}
}

// positional masks the argument that is the secret of a command that takes it without a flag.
func (sh shell) positional(args []literal) {
	i := 0
	switch {
	case sh.how == "last":
		flagged := len(sh.flags) == 0
		args = slices.DeleteFunc(args, func(lit literal) bool {
			text := sh.s[lit.start:lit.end]
			isFlag := !lit.quoted && strings.HasPrefix(text, "-")
			flagged = flagged || isFlag && strings.Contains(text, sh.flags[0])
			return text == "" || isFlag || !lit.quoted && text[0] == '/' && strings.IndexByte(text[1:], '/') < 0
		})
		if i = max(1, len(args)-1); !flagged {
			return
		}
	case sh.how == "second", len(args) > 1 && judge.Words("digit")[sh.s[args[0].start:args[0].end]]: // how the secret is encrypted
		i = 1
	}
	if i >= len(args) {
		return
	}
	lit := args[i]
	text := sh.s[lit.start:lit.end]
	if sh.how == "next" && (lit.quoted || judge.IsRandom(text)) || sh.how != "next" && judge.IsCommunity(text) && strings.IndexByte(`\*+`, text[0]) < 0 && lex.LastByte(text) != ':' {
		sh.secret(sh.n, "", judge.Argument, lit, "")
	}
}

// flagValue masks the value of the flag that is the first of args.
func (sh shell) flagValue(args []literal) {
	text := sh.s[args[0].start:args[0].end]
	for _, flag := range sh.flags {
		rest, ok := strings.CutPrefix(text, flag)
		if !ok {
			continue
		}
		value := args[0]
		value.start = value.end - len(rest)
		switch {
		case rest == "" || rest == "=": // the value is the next word
			if len(args) == 1 {
				return
			}
			value = args[1]
		case rest[0] == '=':
			value.start++
		case !strings.HasPrefix(sh.how, "glued") || lex.IsAlnum(lex.LastByte(flag)) && !strings.ContainsAny(rest, lex.Digits) && !judge.IsGibberish(rest):
			continue
		}
		sh.mask(value)
	}
}

// mask masks the value of a flag, or the part of it behind the user, if the command takes such a pair.
func (sh shell) mask(lit literal) {
	lit = unquoted(sh.s, lit)
	if strings.HasSuffix(sh.how, "pair") {
		text := sh.s[lit.start:lit.end]
		i := strings.IndexAny(text, ":%,")
		if i < 0 || strings.HasPrefix(text[i+1:], "//") {
			return
		}
		lit.start += i + 1
	}
	sh.secret(sh.n, "", judge.Argument, unquoted(sh.s, lit), "")
}

// unquoted removes the quotes around a part of a word.
func unquoted(s string, lit literal) literal {
	if text := s[lit.start:lit.end]; len(text) > 2 && lex.QuoteSet.Has(text[0]) && text[len(text)-1] == text[0] {
		return literal{lit.start + 1, lit.end - 1, true, lit.next}
	}
	return lit
}

// piped masks what an echo, a printf, a literal before the bar, or a word after <<<
// writes into the command.
func (sh shell) piped(rg *region) {
	s, n := sh.s, sh.n
	from, stop := max(rg.from, lex.LineBegin(s, n.Begin)), min(rg.to, lex.LineEndWithin(s, n.End, 4<<10))
	rest := s[n.End:stop]
	if len(sh.flags) > 0 && !strings.Contains(rest, sh.flags[0]) {
		return
	}
	at, bar := -1, strings.LastIndexByte(s[from:n.Begin], '|')
	for _, mark := range []string{"<<<", "<(echo "} {
		if i := strings.Index(rest, mark); i >= 0 {
			at, bar = n.End+i+len(mark), -1
			break
		}
	}
	if bar >= 0 {
		producer := strings.TrimRight(s[from:from+bar], " \t)")
		stop = from + len(producer)
		for _, word := range []string{"echo ", "printf ", "Write-Output "} {
			if i := strings.LastIndex(producer, word); i >= 0 {
				at = max(at, from+i+len(word))
			}
		}
		if at < 0 && producer != "" && lex.QuoteSet.Has(lex.LastByte(producer)) {
			at = from + max(0, strings.LastIndexByte(producer[:len(producer)-1], lex.LastByte(producer)))
		}
	}
	if at < 0 {
		return
	}
	args, _ := shellWords(sh.reader, rg.cursorAt(at))
	args = slices.DeleteFunc(args, func(lit literal) bool { return lit.end > stop || s[lit.start] == '-' }) // flags such as -n
	if len(args) == 1 || len(args) > 1 && args[0].quoted {
		sh.mask(args[0])
	}
}
