package redaction

import (
	"fmt"
	"slices"
	"strings"
)

// A command is a program and where it takes a secret.
type command struct {
	name  string
	word  string // folded
	how   string // one of commandForms, described at the top of rules/commands.rules
	flags []string
}

var commandForms = []string{"flag", "glued", "pair", "gluedpair", "next", "word", "last", "pipe", "pipepair", "second"}

// parseCommand reads "command HOW WORD... : FLAG...".
func parseCommand(rs *ruleset, f []string) ([]named, error) {
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
	subjects := []string{c.word}
	if len(c.flags) > 0 {
		subjects = nil
		for _, flag := range c.flags {
			subjects = append(subjects, c.word+" "+flag)
		}
	}
	rs.commands = append(rs.commands, c)
	return []named{{name, subjects, ""}}, nil
}

// command looks for the secrets that the command at s[begin:end] takes.
func (d *detector) command(index, begin, end int) {
	c := &d.commands[index]
	before := byteAt(d.s, begin-1)
	if d.contextFree || begin < d.commandEnd[index] || isAlnum(before) || before == '_' || !c.isAt(d.s, begin, end) {
		return
	}
	n := nameRef{begin: begin, end: end, strength: strongName, rule: c.name}
	if c.how == "pipe" || c.how == "pipepair" {
		d.piped(c, n)
		return
	}
	line := d.commandLine(index, end)
	if quoteSet.has(byteAt(line, end)) && byteAt(line, end+1) == ',' { // an element of a list
		end++
	}
	args := words(line, end)
	switch c.how {
	case "next", "word", "second", "last":
		if lit, ok := d.positional(c, args); ok && wordGap.has(byteAt(line, end)) {
			d.secret(n, argument, lit)
		}
	default:
		for i := range args {
			d.flagValue(c, n, args[i:])
		}
	}
}

// positional returns the argument that may be the secret of a command that takes it
// without a flag.
func (d *detector) positional(c *command, args []literal) (lit literal, ok bool) {
	i := 0
	switch {
	case c.how == "last":
		args = d.withoutFlags(c, args)
		i = max(1, len(args)-1)
	case c.how == "second", len(args) > 1 && lists["digit"][d.text(args[0])]: // how the secret is encrypted
		i = 1
	}
	if i >= len(args) {
		return literal{}, false
	}
	lit = args[i]
	text := d.text(lit)
	if c.how == "next" {
		return lit, lit.quoted || isRandom(text)
	}
	return lit, isCommunity(text) && strings.IndexByte(`\*+`, text[0]) < 0 && lastByte(text) != ':'
}

// withoutFlags returns the arguments that are no flags, or nothing if c names the letter of
// a flag and no flag has it.
func (d *detector) withoutFlags(c *command, args []literal) []literal {
	flagged := len(c.flags) == 0
	args = slices.DeleteFunc(args, func(lit literal) bool {
		text := d.text(lit)
		isFlag := !lit.quoted && strings.HasPrefix(text, "-")
		flagged = flagged || isFlag && strings.Contains(text, c.flags[0])
		return text == "" || isFlag || !lit.quoted && text[0] == '/' && strings.IndexByte(text[1:], '/') < 0
	})
	if !flagged {
		return nil
	}
	return args
}

// isAt reports whether s[begin:end] is the command and no part of a longer word.
// Commands with unusual flags also match the begin of a word, such as mysqldump.
func (c *command) isAt(s string, begin, end int) bool {
	if !strings.EqualFold(s[begin:end], c.word) {
		return false
	}
	return c.how == "glued" || end == len(s) || !identSet.has(s[end]) || strings.HasPrefix(s[end:], ".exe ")
}

// commandLine returns s up to the end of the line of the command that ends at end, with
// the lines that continue it. Each line is read once per command.
func (d *detector) commandLine(index, end int) string {
	line := d.s[:min(len(d.s), end+maxCommand)]
	stop := lineEnd(line, end)
	for range maxContinued {
		if stop-2 < end || stop == len(line) || line[stop-2] != '\\' && line[stop-2] != '`' {
			break
		}
		stop = lineEnd(line, stop)
	}
	d.commandEnd[index] = stop
	command, _, _ := strings.Cut(line[end:stop], " && ")
	return line[:end+len(command)]
}

// words returns the words of a command in line from at on, as a shell splits them, or
// as the elements of a list of arguments.
func words(line string, at int) (out []literal) {
	for {
		at = run(line, at, &wordGap, maxGap)
		at = run(line, skipWord(line, at, "\\\r\n", "\\\n", "`\r\n", "`\n"), &wordGap, maxGap)
		if at >= len(line) || strings.IndexByte("\n;|&>#", line[at]) >= 0 {
			return out
		}
		lit, ok := argumentAt(line, at)
		if !ok || lit.next <= at {
			return out
		}
		out = append(out, lit)
		at = lit.next
	}
}

// argumentAt reads the argument at line[v]: in quotes, or up to a blank.
func argumentAt(line string, v int) (literal, bool) {
	if v < len(line) && quoteSet.has(line[v]) {
		return quotedAt(line, v)
	}
	end := run(line, v, &flagSet, len(line))
	return literal{v, end, false, end}, true
}

// flagValue masks the value of the flag that is the first of args.
func (d *detector) flagValue(c *command, n nameRef, args []literal) {
	text := d.text(args[0])
	for _, flag := range c.flags {
		rest, ok := strings.CutPrefix(text, flag)
		if !ok {
			continue
		}
		value := literal{args[0].end - len(rest), args[0].end, false, 0}
		switch {
		case rest == "" || rest == "=": // the value is the next word
			if ok = len(args) > 1; ok {
				value = args[1]
			}
		case rest[0] == '=':
			value.start++
		default:
			ok = strings.HasPrefix(c.how, "glued") && (!isAlnum(lastByte(flag)) || shapeOf(rest).digit > 0 || isGibberish(rest))
		}
		if ok && d.cutPair(c, &value) {
			d.secret(n, argument, value)
		}
	}
}

// cutPair removes the user from a literal such as user:secret, if c takes such. It
// reports whether there is a secret.
func (d *detector) cutPair(c *command, lit *literal) bool {
	if !strings.HasSuffix(c.how, "pair") {
		return true
	}
	text := d.text(*lit)
	i := strings.IndexAny(text, ":%,")
	lit.start += i + 1
	return i >= 0 && !strings.HasPrefix(text[i+1:], "//")
}

// isCommunity reports whether the name of an SNMP community, or another word that
// a router takes as a secret, is not a default.
func isCommunity(text string) bool {
	return len(text) >= 4 && !lists["community"][strings.ToLower(text)]
}

// piped masks what an echo, a printf, a literal before the bar, or a word after <<<
// writes into the command n.
func (d *detector) piped(c *command, n nameRef) {
	stop := lineEndWithin(d.s, n.end, maxPipe)
	rest := d.s[n.end:stop]
	if len(c.flags) > 0 && !strings.Contains(rest, c.flags[0]) {
		return
	}
	for _, mark := range []string{"<<<", "<(echo "} {
		if i := strings.Index(rest, mark); i >= 0 {
			d.pipedArgument(c, n, n.end+i+len(mark), stop)
			return
		}
	}
	from := max(lineBegin(d.s, n.begin), n.begin-maxPipe)
	bar := strings.LastIndexByte(d.s[from:n.begin], '|')
	if bar < 0 {
		return
	}
	producer, at := strings.TrimRight(d.s[from:from+bar], " \t)"), -1
	for _, word := range []string{"echo ", "printf ", "Write-Output "} {
		if i := strings.LastIndex(producer, word); i >= 0 {
			at = max(at, i+len(word))
		}
	}
	if at < 0 && producer != "" && quoteSet.has(lastByte(producer)) {
		at = strings.LastIndexByte(producer[:len(producer)-1], lastByte(producer))
	}
	if at >= 0 {
		d.pipedArgument(c, n, from+at, from+len(producer))
	}
}

// pipedArgument masks the only argument in s[at:stop] behind flags such as -n.
func (d *detector) pipedArgument(c *command, n nameRef, at, stop int) {
	args := words(d.s[:stop], at)
	for len(args) > 0 && d.s[args[0].start] == '-' {
		args = args[1:]
	}
	if len(args) == 0 || len(args) > 1 && !args[0].quoted || !d.cutPair(c, &args[0]) {
		return
	}
	d.secret(n, argument, args[0])
}
