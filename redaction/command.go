package redaction

import (
	"fmt"
	"slices"
	"strings"
)

// A command is a line of commands.txt: a program and where it takes a secret.
type command struct {
	word  string // folded
	how   string // one of commandForms, described at the top of commands.txt
	flags []string
}

var commandForms = []string{"flag", "glued", "stuck", "pair", "gluedpair", "next", "word", "last", "pipe", "lines", "second"}

func parseCommands(data string) ([]command, error) {
	var out []command
	for n, f := range entries(data) {
		colon := len(f) - 1
		for colon > 0 && f[colon] != ":" {
			colon--
		}
		if colon < 2 || !slices.Contains(commandForms, f[0]) {
			return nil, fmt.Errorf("commands on line %d: want \"how command : flag...\", got %q", n, f)
		}
		out = append(out, command{strings.ToLower(strings.Join(f[1:colon], " ")), f[0], f[colon+1:]})
	}
	return out, nil
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

// maxCommand and maxContinued bound a command, in bytes and in lines.
const (
	maxCommand   = 1 << 10
	maxContinued = 6
)

// flagValue masks the values of a flag in line, the rest of a command that ends
// at base.
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
	end := v
	for end < len(line) && !flagStops.has(line[end]) {
		end++
	}
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
	d.report("password", c.rule(), base+lit.start, base+lit.start+len(text))
}

func (c *command) rule() string { return "command " + c.word }

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
	d.report("password", c.rule(), base+lit.start, base+lit.end)
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
		d.report("password", c.rule(), base+final.start, base+final.end)
	}
}
