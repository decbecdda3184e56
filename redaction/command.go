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

var commandForms = []string{"flag", "glued", "stuck", "pair", "gluedpair", "next", "word", "last", "pipe", "lines", "second"}

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
	if d.contextFree || begin > 0 && (isAlnum(d.s[begin-1]) || d.s[begin-1] == '_') || !c.isAt(d.s, begin, end) || begin < d.commandEnd[index] {
		return
	}
	switch c.how {
	case "pipe":
		d.piped(c, begin, end, false)
		return
	case "lines":
		d.piped(c, begin, end, true)
		d.pairLines(c, index, end)
		return
	}
	line := d.commandLine(index, end)
	switch c.how {
	case "next", "word":
		d.nextWord(c, line, end)
	case "last":
		d.lastArgument(c, line, end)
	case "second":
		if v := skipBlanks(line, run(line, skipBlanks(line, 0), &notBlank, maxName)); v < len(line) && line[v] != '+' {
			d.flagSecret(c, line, v, end, false)
		}
	default:
		for _, flag := range c.flags {
			d.flagValue(c, flag, line, end)
		}
	}
}

// isAt reports whether s[begin:end] is the command and no part of a longer word.
// Commands with unusual flags also match the begin of a word, such as mysqldump.
func (c *command) isAt(s string, begin, end int) bool {
	if !strings.EqualFold(s[begin:end], c.word) {
		return false
	}
	return c.how == "glued" || end == len(s) || !identSet.has(s[end]) || strings.HasPrefix(s[end:], ".exe ")
}

// commandLine returns the rest of the line of the command that ends at end, with
// the lines that continue it. Each line is read once per command.
func (d *detector) commandLine(index, end int) string {
	stop, most := end, min(len(d.s), end+maxCommand)
	for range maxContinued {
		stop = lineEnd(d.s[:most], stop)
		if stop-2 < end || d.s[stop-2] != '\\' && d.s[stop-2] != '`' || stop >= len(d.s) {
			break
		}
	}
	d.commandEnd[index] = stop
	line, _, _ := strings.Cut(d.s[end:stop], " && ")
	return line
}

// flagValue masks the values of a flag in line, the rest of a command after base.
func (d *detector) flagValue(c *command, flag, line string, base int) {
	mayGlue := c.how == "glued" || c.how == "stuck" || c.how == "gluedpair"
	at := 0
	for at < len(line) {
		i := strings.Index(line[at:], flag)
		if i < 0 {
			return
		}
		i += at
		at = i + len(flag)
		if i == 0 || !spaceSet.has(line[i-1]) && !quoteSet.has(line[i-1]) {
			continue
		}
		if quoted := at+1 < len(line) && quoteSet.has(line[at]) && line[at] == line[i-1]; quoted && line[at+1] == ',' {
			if v := skipBlanks(line, at+2); v < len(line) && quoteSet.has(line[v]) {
				d.flagSecret(c, line, v, base, false) // an element of a list of arguments
			}
			continue
		}
		if at >= len(line) || c.how == "stuck" && blankSet.has(line[at]) || !mayGlue && !blankSet.has(line[at]) && line[at] != '=' {
			continue
		}
		glued := !blankSet.has(line[at]) && line[at] != '=' && isAlnum(lastByte(flag))
		d.flagSecret(c, line, run(line, at, &flagGap, 4), base, glued)
	}
}

// argumentAt reads the argument at line[v]: in quotes, or up to a blank.
func argumentAt(line string, v int, glued bool) (literal, bool) {
	if v < len(line) && quoteSet.has(line[v]) && !glued {
		return quotedAt(line, v)
	}
	end := run(line, v, &flagSet, len(line))
	return literal{v, end, false, end}, true
}

// flagSecret masks the value at line[v] if it is a secret.
func (d *detector) flagSecret(c *command, line string, v, base int, glued bool) {
	lit, ok := argumentAt(line, v, glued)
	if !ok {
		return
	}
	text := strings.TrimSpace(line[lit.start:lit.end])
	if c.how == "pair" || c.how == "gluedpair" { // user:secret
		i := strings.IndexAny(text, ":%,")
		if i < 0 || strings.HasPrefix(text[i+1:], "//") {
			return
		}
		lit.start += i + 1
		text = text[i+1:]
	}
	text = strings.Trim(text, `"'`)
	if !isArgument(text) || glued && shapeOf(text).digit == 0 && !isGibberish(text) {
		return
	}
	d.report("password", c.name, base+lit.start, base+lit.start+len(text))
}

// isArgument reports whether text, which is where a command takes a secret, is
// one: no flag, no reference, no path, no word for a secret.
func isArgument(text string) bool {
	if len(text) < 2 || text[0] == '-' || isPlaceholder(text) && len(text) > 4 || isReference(text) || isCommonWords(text, 0) || isSource(text) {
		return false
	}
	return (strings.IndexByte("/.~", text[0]) < 0 || len(text) == 40 && isVeryRandom(text)) && (strings.Trim(text, digits+":") != "" || !strings.Contains(text, ":"))
}

// nextWord masks what follows the command, after its type if it has one.
func (d *detector) nextWord(c *command, line string, base int) {
	v := run(line, 0, &flagGap, maxGap)
	if v == 0 {
		return
	}
	if c.how == "word" {
		v = afterType(line, v)
	}
	lit, ok := argumentAt(line, v, false)
	if !ok {
		return
	}
	text := line[lit.start:lit.end]
	if c.how == "next" && !lit.quoted && !isRandom(text) || c.how == "word" && !isCommunity(text) || !isArgument(text) {
		return
	}
	d.report("password", c.name, base+lit.start, base+lit.end)
}

// isCommunity reports whether the name of an SNMP community, or another word that
// a router takes as a secret, is not a default.
func isCommunity(text string) bool {
	return len(text) >= 4 && !lists["community"][strings.ToLower(text)]
}

// afterType skips the digit that says how the secret of a router is encrypted.
func afterType(s string, v int) int {
	if v+2 < len(s) && isDigit(s[v]) && blankSet.has(s[v+1]) {
		return skipBlanks(s, v+1)
	}
	return v
}

// lastArgument masks the last of at least two arguments that are no flags.
func (d *detector) lastArgument(c *command, line string, base int) {
	var final literal
	n, flagged := 0, len(c.flags) == 0
	for v := run(line, 0, &argumentGap, maxGap); v < len(line) && strings.IndexByte("\n;|&>#", line[v]) < 0; v = run(line, v, &argumentGap, maxGap) {
		lit, ok := argumentAt(line, v, false)
		if !ok || lit.next <= v {
			break
		}
		v = lit.next
		switch text := line[lit.start:lit.end]; {
		case text == "":
		case !lit.quoted && text[0] == '-':
			flagged = flagged || strings.Contains(text, c.flags[0])
		case !lit.quoted && text[0] == '/' && strings.IndexByte(text[1:], '/') < 0:
		default:
			final, n = lit, n+1
		}
	}
	if text := line[final.start:final.end]; flagged && n >= 2 && isArgument(text) && text[0] != '\\' && text[0] != '*' && lastByte(text) != ':' && isCommunity(text) {
		d.report("password", c.name, base+final.start, base+final.end)
	}
}

// piped masks what an echo, a printf, a literal before the bar, or a word after <<<
// writes into the command at s[begin:end]. pair is set if that is user:secret.
func (d *detector) piped(c *command, begin, end int, pair bool) {
	stop := lineEndWithin(d.s, end, maxPipe)
	rest := d.s[end:stop]
	if len(c.flags) > 0 && !strings.Contains(rest, c.flags[0]) {
		return
	}
	if i := strings.Index(rest, "<<<"); i >= 0 {
		d.pipedArgument(c, skipBlanks(d.s, end+i+len("<<<")), stop, pair)
		return
	}
	if i := strings.Index(rest, "<(echo "); i >= 0 {
		if n := strings.IndexByte(rest[i:], ')'); n > 0 {
			d.pipedArgument(c, skipBlanks(d.s, end+i+len("<(echo ")), end+i+n, pair)
		}
		return
	}
	from := max(lineBegin(d.s, begin), begin-maxPipe)
	before := d.s[from:begin]
	bar := strings.LastIndexByte(before, '|')
	if bar < 0 {
		return
	}
	producer := strings.TrimRight(before[:bar], " \t)")
	at := -1
	for _, word := range []string{"echo ", "printf ", "Write-Output "} {
		if i := strings.LastIndex(producer, word); i >= 0 {
			at = max(at, i+len(word))
		}
	}
	if at < 0 && producer != "" && quoteSet.has(lastByte(producer)) {
		at = strings.LastIndexByte(producer[:len(producer)-1], lastByte(producer))
	}
	if at >= 0 {
		d.pipedArgument(c, from+at, from+len(producer), pair)
	}
}

// pipedArgument masks the argument at at, before stop, behind flags such as -n.
func (d *detector) pipedArgument(c *command, at, stop int, pair bool) {
	for at < stop && d.s[at] == '-' {
		at = skipBlanks(d.s, run(d.s, at, &wordSet, 8))
	}
	if at >= stop {
		return
	}
	lit, ok := argumentAt(d.s[:stop], at, false)
	if !ok || !quoteSet.has(d.s[at]) && lit.next < stop && strings.TrimSpace(d.s[lit.next:stop]) != "" {
		return
	}
	if pair {
		user, _, both := strings.Cut(d.text(lit), ":")
		if !both {
			return
		}
		lit.start += len(user) + 1
	}
	if text := d.text(lit); len(text) >= 4 && isArgument(text) && !isProse(text) {
		d.report("password", c.name, lit.start, lit.end)
	}
}

// pairLines masks the secrets of the lines user:secret below a chpasswd.
func (d *detector) pairLines(c *command, index, end int) {
	at := lineEndWithin(d.s, end, maxPipe)
	for n := 0; at < len(d.s) && d.s[at-1] == '\n'; n++ {
		stop := lineEndWithin(d.s, at, maxPipe)
		begin := run(d.s, at, &listMark, maxGap)
		line := strings.TrimRight(d.s[begin:max(begin, stop)], " \t\r\n\"'")
		at = stop
		user, text, ok := strings.Cut(line, ":")
		if !ok || user == "" || !allIn(user, &identSet) || text == "" || strings.ContainsAny(text, " \t") {
			if n > 2 {
				return
			}
			continue
		}
		if isArgument(text) {
			d.report("password", c.name, begin+len(user)+1, begin+len(line))
		}
		d.commandEnd[index] = at
	}
}

// promptAnswer masks the literal after the trigger, as in send "...\r", if it
// answers a prompt for a password shortly before.
func (d *detector) promptAnswer(_, begin, end int) {
	at := skipWord(d.s, skipBlanks(d.s, end), "-- ")
	if d.contextFree || at >= len(d.s) || !quoteSet.has(d.s[at]) {
		return
	}
	from := sectionBegin(d.s, begin, maxPrompt)
	prompt := strings.LastIndex(strings.ToLower(d.s[from:begin]), "assw")
	if prompt < 0 || strings.Contains(d.s[from+prompt:begin], "send") {
		return
	}
	lit, ok := quotedAt(d.s, at)
	if !ok {
		return
	}
	text := strings.TrimSuffix(strings.TrimSuffix(d.text(lit), `\n`), `\r`)
	if isArgument(text) && !isProse(text) {
		d.report("password", "answer to a prompt", lit.start, lit.start+len(text))
	}
}
