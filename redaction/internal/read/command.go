package read

import (
	"fmt"
	"regexp"
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

var commandForms = []string{"flag", "glued", "pair", "next", "word", "second", "last", "only", "login", "pipe", "pipepair"}

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

// command masks the secrets that the command of the hit takes.
func (d *reader) command(rg *region, h lex.Hit) {
	c := &d.commands[h.Index]
	if before := lex.ByteAt(d.s, h.Begin-1); h.Begin < d.commandEnd[h.Index] || lex.IsAlnum(before) || before == '_' {
		return
	}
	if line := d.s[max(rg.from, lex.LineBegin(d.s, h.Begin)):h.Begin]; c.how == "login" && (strings.TrimSpace(line) != "" || !isFTP(d.s, h.Begin)) {
		return
	}
	n := judge.Name{Begin: h.Begin, End: h.End, Strength: judge.Strong, Rule: c.name}
	found := func(lit literal) {
		if strings.HasSuffix(c.how, "pair") { // the secret is behind the user
			i := strings.IndexAny(d.s[lit.start:lit.end], ":%,=") + 1
			if lit.start += i; i == 0 || strings.HasPrefix(d.s[lit.start:], "//") {
				return
			}
		}
		d.secret(n, "", judge.Argument, lit, "")
	}
	at := rg.cursorAt(h.End)         // mysql also begins mysqldump
	if outer, ok := at.leave(); ok { // an element of a list
		at = outer
	}
	args, end := shellWords(d, at)
	switch c.how {
	case "pipe", "pipepair":
		if lit, ok := d.piped(rg, c, n); ok {
			found(lit)
		}
		return
	case "flag", "glued", "pair":
		for i := range args {
			c.flagValues(d.s, args[i:], found)
		}
	default:
		if at.offset() == h.End && !wordGap.Has(lex.ByteAt(d.s, h.End)) {
			break
		}
		if lit, ok := c.positional(d.s, args); ok {
			found(lit)
		}
	}
	d.commandEnd[h.Index] = end
}

// ftpScript is what begins a script of ftp: the command with an option or a here document, or what opens its
// host. The letters alone are also in a text about ftp, in sftp and in a URL.
var ftpScript = regexp.MustCompile(`(?im)(?:^|[\s;|&"'(/\x60])l?ftp(?:\.exe)?(?:(?:[ \t]+[^ \t\n]+)?[ \t]+-[a-z]|[ \t][^\n]*<<)` +
	`|\bspawn[ \t]+l?ftp[ \t]|^[ \t]*open[ \t]+(?:ftp://\S|[\w.-]*ftp[\w-]*\.\w)`)

// isFTP reports whether a line at i is one of a script of ftp, which begins above.
func isFTP(s string, i int) bool {
	const far = 512
	return ftpScript.MatchString(s[max(0, i-far):i])
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
			lit = literal{t.Inner(), t.InnerEnd(), true, c}
		}
		words = append(words, lit)
	}
}

// flagValues calls found for the value of the flag that is the first of args: the rest of it, as in -px1, or the next
// word. A value that follows a letter directly has a digit or is gibberish, unlike another flag that begins so.
func (c *command) flagValues(s string, args []literal, found func(literal)) {
	text := s[args[0].start:args[0].end]
	for _, flag := range c.flags {
		rest, ok := strings.CutPrefix(text, flag)
		if !ok {
			continue
		}
		value := args[0]
		value.start = value.end - len(rest)
		switch {
		case rest == "" || rest == "=":
			if len(args) == 1 || c.how == "glued" {
				return
			}
			value = args[1]
		case rest[0] == '=':
			value.start++
		case lex.IsAlnum(lex.LastByte(flag)) && !strings.ContainsAny(rest, lex.Digits) && !judge.IsGibberish(rest):
			continue
		}
		if inner := s[value.start:value.end]; len(inner) > 2 && lex.QuoteSet.Has(inner[0]) && inner[len(inner)-1] == inner[0] { // --pw='x'
			value = literal{value.start + 1, value.end - 1, true, value.next}
		}
		found(value)
	}
}

// positional returns the argument that is the secret of a command that takes it without a flag.
func (c *command) positional(s string, args []literal) (lit literal, ok bool) {
	i, text := 0, func(lit literal) string { return s[lit.start:lit.end] }
	switch {
	case c.how == "last", c.how == "only": // of those that are not flags
		flagged := len(c.flags) == 0
		if k := slices.IndexFunc(args, func(lit literal) bool { return text(lit) == "<" }); k >= 0 {
			args = args[:k]
		}
		args = slices.DeleteFunc(args, func(lit literal) bool {
			isFlag := !lit.quoted && strings.HasPrefix(text(lit), "-")
			flagged = flagged || isFlag && strings.Contains(text(lit), c.flags[0])
			return text(lit) == "" || isFlag || !lit.quoted && text(lit)[0] == '/' && strings.IndexByte(text(lit)[1:], '/') < 0
		})
		if i = len(args) - 1; !flagged || i < 0 || i == 0 && c.how == "last" {
			return literal{}, false
		}
	case c.how == "login" && len(args) != 2:
		return literal{}, false
	case c.how == "second", c.how == "login", len(args) > 1 && judge.Words("digit")[text(args[0])]: // how the secret is encrypted
		i = 1
	}
	if i >= len(args) {
		return literal{}, false
	}
	word := text(args[i])
	switch c.how {
	case "login":
		return args[i], strings.ContainsAny(word, lex.Digits) || judge.IsHumanMade(word)
	case "next":
		return args[i], args[i].quoted || judge.IsMixed(word) || len(word) >= 8 && judge.IsMixedCase(word)
	}
	return args[i], judge.IsCommunity(word) && strings.IndexByte(`\*+`, word[0]) < 0 && lex.LastByte(word) != ':'
}

// piped returns what an echo, a printf, or a literal before the bar, or a word after <<< writes into the command n.
func (d *reader) piped(rg *region, c *command, n judge.Name) (lit literal, ok bool) {
	from, stop := max(rg.from, lex.LineBegin(d.s, n.Begin)), min(rg.to, lex.LineEndWithin(d.s, n.End, 4<<10))
	before, rest := d.s[from:n.Begin], d.s[n.End:stop]
	if len(c.flags) > 0 && !strings.Contains(rest, c.flags[0]) {
		return literal{}, false
	}
	at := -1
	for _, mark := range []string{"<<<", "<(echo "} {
		if i := strings.Index(rest, mark); i >= 0 {
			at = n.End + i + len(mark)
			break
		}
	}
	if bar := strings.LastIndexByte(before, '|'); at < 0 && bar >= 0 {
		producer := strings.TrimRight(before[:bar], " \t)")
		stop = from + len(producer)
		for _, word := range []string{"echo ", "printf ", "yes ", "Write-Output "} {
			if i := strings.LastIndex(producer, word); i >= 0 {
				at = max(at, from+i+len(word))
			}
		}
		if at < 0 && producer != "" && lex.QuoteSet.Has(lex.LastByte(producer)) {
			at = from + max(0, strings.LastIndexByte(producer[:len(producer)-1], lex.LastByte(producer)))
		}
	}
	if at < 0 {
		return literal{}, false
	}
	args, _ := shellWords(d, rg.cursorAt(at))
	args = slices.DeleteFunc(args, func(lit literal) bool { return lit.end > stop || d.s[lit.start] == '-' }) // flags such as -n
	if len(args) > 1 && strings.Contains(d.s[args[0].start:args[0].end], "%s") {
		args = args[1:2]
	}
	if len(args) == 0 || len(args) > 1 && !args[0].quoted {
		return literal{}, false
	}
	return args[0], true
}
