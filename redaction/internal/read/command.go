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

// command looks for the secrets that the command of the hit takes.
func (d *reader) command(rg *region, h hit) {
	c := &d.commands[h.index]
	before := lex.ByteAt(d.s, h.begin-1)
	if h.begin < d.commandEnd[h.index] || lex.IsAlnum(before) || before == '_' || !c.isAt(d.s, h.begin, h.end) {
		return
	}
	n := judge.Name{Begin: h.begin, End: h.end, Strength: judge.Strong, Rule: c.name}
	if c.how == "pipe" || c.how == "pipepair" {
		d.piped(c, n, rg)
		return
	}
	at := rg.cursorAt(h.end)
	if outer, ok := at.leave(); ok { // an element of a list
		at = outer
	}
	args, end := d.shellWords(at)
	d.commandEnd[h.index] = end
	switch c.how {
	case "next", "word", "second", "last":
		if lit, ok := d.positional(c, args); ok && (d.offset(at) > h.end || wordGap.Has(lex.ByteAt(d.s, h.end))) {
			d.secret(n, "", judge.Argument, lit, "")
		}
	default:
		for i := range args {
			d.flagValue(c, n, args[i:])
		}
	}
}

// isAt reports whether s[begin:end] is the command and no part of a longer word.
// Commands with unusual flags also match the begin of a word, such as mysqldump.
func (c *command) isAt(s string, begin, end int) bool {
	if !strings.EqualFold(s[begin:end], c.word) {
		return false
	}
	return c.how == "glued" || end == len(s) || !lex.IdentSet.Has(s[end]) || strings.HasPrefix(s[end:], ".exe ")
}

var (
	wordGap   = lex.SetOf(" \t,=[]\"'\\`")
	wordStops = lex.SetOf(";|)&>#")
)

// shellWords returns the words of the command line at c, as a shell splits them, or as the
// elements of a list. A line that ends in a backslash or a backquote continues.
func (d *reader) shellWords(c cursor) (words []literal, end int) {
	for {
		d.work++
		t, ok := c.token()
		if !ok {
			return words, d.offset(c)
		}
		text := d.text(t)
		switch {
		case t.Kind == lex.Blank || text == "," || text == "[" || text == "]" || text == "=":
			c = c.next()
			continue
		case (text == `\` || text == "`") && d.isNewline(c.next()):
			c = c.next().next()
			continue
		case text == `\` && d.s[t.End:min(len(d.s), int(t.End)+2)] == "\r\n":
			c = c.next().skip(false).next()
			continue
		case t.Kind == lex.Newline, t.Kind == lex.Comment, t.Kind == lex.Mark && wordStops.Has(text[0]):
			return words, int(t.Start)
		}
		first, begin := t, c
		for c = c.next(); ; c = c.next() {
			d.work++
			t, ok := c.token()
			if !ok || t.Kind == lex.Blank || t.Kind == lex.Newline || t.Kind == lex.Comment {
				break
			}
			if text := d.text(t); t.Kind == lex.Mark && (text[0] == ';' || text[0] == '|' || text[0] == ')' || text == "," && first.Kind == lex.Literal || text == "]" && first.Kind == lex.Literal) {
				break
			}
		}
		lit := literal{int(first.Start), d.offset(c), false, c}
		if first.Kind == lex.Literal && c == begin.next() {
			lit = literal{int(first.Inner), int(first.InnerEnd), true, c}
		}
		words = append(words, lit)
	}
}

// positional returns the argument that may be the secret of a command that takes it
// without a flag.
func (d *reader) positional(c *command, args []literal) (lit literal, ok bool) {
	i := 0
	switch {
	case c.how == "last":
		args = d.withoutFlags(c, args)
		i = max(1, len(args)-1)
	case c.how == "second", len(args) > 1 && judge.Words("digit")[d.s[args[0].start:args[0].end]]: // how the secret is encrypted
		i = 1
	}
	if i >= len(args) {
		return literal{}, false
	}
	lit = args[i]
	text := d.s[lit.start:lit.end]
	if c.how == "next" {
		return lit, lit.quoted || judge.IsRandom(text)
	}
	return lit, judge.IsCommunity(text) && strings.IndexByte(`\*+`, text[0]) < 0 && lex.LastByte(text) != ':'
}

// withoutFlags returns the arguments that are not flags, or nothing if c names the letter of
// a flag and no flag has it.
func (d *reader) withoutFlags(c *command, args []literal) []literal {
	flagged := len(c.flags) == 0
	args = slices.DeleteFunc(args, func(lit literal) bool {
		text := d.s[lit.start:lit.end]
		isFlag := !lit.quoted && strings.HasPrefix(text, "-")
		flagged = flagged || isFlag && strings.Contains(text, c.flags[0])
		return text == "" || isFlag || !lit.quoted && text[0] == '/' && strings.IndexByte(text[1:], '/') < 0
	})
	if !flagged {
		return nil
	}
	return args
}

// flagValue masks the value of the flag that is the first of args.
func (d *reader) flagValue(c *command, n judge.Name, args []literal) {
	text := d.s[args[0].start:args[0].end]
	for _, flag := range c.flags {
		rest, ok := strings.CutPrefix(text, flag)
		if !ok {
			continue
		}
		value := args[0]
		value.start = value.end - len(rest)
		switch {
		case rest == "" || rest == "=": // the value is the next word
			if ok = len(args) > 1; ok {
				value = args[1]
			}
		case rest[0] == '=':
			value.start++
		default:
			ok = strings.HasPrefix(c.how, "glued") && (!lex.IsAlnum(lex.LastByte(flag)) || strings.ContainsAny(rest, lex.Digits) || judge.IsGibberish(rest))
		}
		if value = d.unquoted(value); ok && d.cutPair(c, &value) {
			d.secret(n, "", judge.Argument, d.unquoted(value), "")
		}
	}
}

// unquoted removes the quotes around a part of a word.
func (d *reader) unquoted(lit literal) literal {
	if text := d.s[lit.start:lit.end]; len(text) > 2 && lex.QuoteSet.Has(text[0]) && text[len(text)-1] == text[0] {
		return literal{lit.start + 1, lit.end - 1, true, lit.next}
	}
	return lit
}

// cutPair removes the user from a literal such as user:secret, if c takes such. It
// reports whether there is a secret.
func (d *reader) cutPair(c *command, lit *literal) bool {
	if !strings.HasSuffix(c.how, "pair") {
		return true
	}
	text := d.s[lit.start:lit.end]
	i := strings.IndexAny(text, ":%,")
	lit.start += i + 1
	return i >= 0 && !strings.HasPrefix(text[i+1:], "//")
}

// piped masks what an echo, a printf, a literal before the bar, or a word after <<<
// writes into the command n.
func (d *reader) piped(c *command, n judge.Name, rg *region) {
	const most = 4 << 10
	stop := min(rg.to, lex.LineEndWithin(d.s, n.End, most))
	rest := d.s[n.End:stop]
	if len(c.flags) > 0 && !strings.Contains(rest, c.flags[0]) {
		return
	}
	for _, mark := range []string{"<<<", "<(echo "} {
		if i := strings.Index(rest, mark); i >= 0 {
			d.pipedArgument(c, n, rg, n.End+i+len(mark), stop)
			return
		}
	}
	from := max(rg.from, lex.LineBegin(d.s, n.Begin))
	bar := strings.LastIndexByte(d.s[from:n.Begin], '|')
	if bar < 0 {
		return
	}
	producer, at := strings.TrimRight(d.s[from:from+bar], " \t)"), -1
	for _, word := range []string{"echo ", "printf ", "Write-Output "} {
		if i := strings.LastIndex(producer, word); i >= 0 {
			at = max(at, i+len(word))
		}
	}
	if at < 0 && producer != "" && lex.QuoteSet.Has(lex.LastByte(producer)) {
		at = strings.LastIndexByte(producer[:len(producer)-1], lex.LastByte(producer))
	}
	if at >= 0 {
		d.pipedArgument(c, n, rg, from+at, from+len(producer))
	}
}

// pipedArgument masks the only argument in s[at:stop] behind flags such as -n.
func (d *reader) pipedArgument(c *command, n judge.Name, rg *region, at, stop int) {
	args, _ := d.shellWords(rg.cursorAt(at))
	args = slices.DeleteFunc(args, func(lit literal) bool { return lit.end > stop })
	for len(args) > 0 && d.s[args[0].start] == '-' {
		args = args[1:]
	}
	if len(args) == 0 || len(args) > 1 && !args[0].quoted || !d.cutPair(c, &args[0]) {
		return
	}
	d.secret(n, "", judge.Argument, args[0], "")
}
