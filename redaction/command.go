package redaction

import (
	"fmt"
	"strings"
)

// A command is a line of commands.txt: a program, and where it takes a secret.
type command struct {
	word  string // folded
	how   commandForm
	flags []string
}

// A commandForm says where a command takes its secret: the head of commands.txt has
// what each means.
type commandForm uint8

const (
	formFlag commandForm = iota
	formGlued
	formStuck
	formPair
	formGluedPair
	formNext
	formWord
	formLast
	formPipe
	formLines
	formSecond
)

var commandForms = map[string]commandForm{
	"flag": formFlag, "glued": formGlued, "stuck": formStuck, "pair": formPair, "gluedpair": formGluedPair, "next": formNext,
	"word": formWord, "last": formLast, "pipe": formPipe, "lines": formLines, "second": formSecond,
}

func parseCommands(data string) ([]command, error) {
	var out []command
	for line := range strings.Lines(data) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		i := strings.LastIndex(line+" ", " : ")
		if i < 0 {
			return nil, fmt.Errorf("commands: want \"how command : flag...\", got %q", line)
		}
		head, flags := line[:i], (line + " ")[i+len(" : "):]
		how, word, _ := strings.Cut(head, " ")
		form, known := commandForms[how]
		if word = strings.TrimSpace(word); !known || word == "" {
			return nil, fmt.Errorf("commands: want \"how command : flag...\", got %q", line)
		}
		out = append(out, command{strings.ToLower(word), form, strings.Fields(flags)})
	}
	return out, nil
}

// takesPair reports whether a flag's value is user:secret, not only a secret.
func (c *command) takesPair() bool { return c.how == formPair || c.how == formGluedPair }

// mayGlue reports whether a value may follow its flag without a blank.
func (c *command) mayGlue() bool {
	return c.how == formGlued || c.how == formStuck || c.how == formGluedPair
}

// command looks for the secrets that the command at s[begin:end] takes.
func (d *detector) command(index, begin, end int) {
	c := &d.commands[index]
	if d.certain || begin > 0 && (isAlnum(d.s[begin-1]) || d.s[begin-1] == '_') || !c.spelt(d.s, begin, end) {
		return
	}
	if begin < d.commandEnd[index] {
		return
	}
	switch c.how {
	case formPipe:
		d.piped(c, begin, end, false)
		return
	case formLines:
		d.piped(c, begin, end, true)
		d.pairLines(c, index, end)
		return
	}
	line := d.commandLine(index, end)
	switch c.how {
	case formNext, formWord:
		d.nextWord(c, line, end)
	case formLast:
		d.lastArgument(c, line, end)
	case formSecond:
		if v := gap(line, run(line, gap(line, 0), &notBlank, maxName)); v < len(line) && line[v] != '+' {
			d.flagSecret(c, line, v, end, false)
		}
	default:
		for _, flag := range c.flags {
			d.flagValue(c, flag, line, end)
		}
	}
}

// spelt reports whether s[begin:end] is the command and no part of a longer
// word. Those whose flags are like no others begin more, as in mysqldump.
func (c *command) spelt(s string, begin, end int) bool {
	if !strings.EqualFold(s[begin:end], c.word) {
		return false
	}
	return c.how == formGlued || end == len(s) || !identSet.has(s[end]) || strings.HasPrefix(s[end:], ".exe ")
}

// commandLine is the rest of the line of the command that ends at end, with the
// lines that continue it. What is read once for a command is not read again.
func (d *detector) commandLine(index, end int) string {
	stop, most := end, min(len(d.s), end+maxCommand)
	for range maxContinued {
		stop = lineEnd(d.s[:most], stop)
		if stop-2 < end || d.s[stop-2] != '\\' && d.s[stop-2] != '`' || stop >= len(d.s) {
			break
		}
	}
	d.commandEnd[index] = stop
	line := d.s[end:stop]
	if i := strings.Index(line, " && "); i >= 0 {
		line = line[:i]
	}
	return line
}

// maxCommand and maxContinued bound a command, in bytes and in lines.
const (
	maxCommand   = 1 << 10
	maxContinued = 6
)

// flagValue masks the values of a flag in line, the rest of a command that ends at
// base.
func (d *detector) flagValue(c *command, flag, line string, base int) {
	at := 0
	for at < len(line) {
		i := strings.Index(line[at:], flag)
		if i < 0 {
			return
		}
		i += at
		at = i + len(flag)
		if i > 0 && !spaceSet.has(line[i-1]) && !quoteSet.has(line[i-1]) || i == 0 {
			continue
		}
		if quoted := i > 0 && at+1 < len(line) && quoteSet.has(line[at]) && line[at] == line[i-1]; quoted && line[at+1] == ',' {
			if v := gap(line, at+2); v < len(line) && quoteSet.has(line[v]) {
				d.flagSecret(c, line, v, base, false) // an element of a list of arguments
			}
			continue
		}
		if at >= len(line) || c.how == formStuck && blankSet.has(line[at]) || !c.mayGlue() && !blankSet.has(line[at]) && line[at] != '=' {
			continue
		}
		glued := !blankSet.has(line[at]) && line[at] != '=' && isAlnum(last(flag))
		d.flagSecret(c, line, run(line, at, &flagGap, 4), base, glued)
	}
}

var (
	flagGap   = setOf(" \t=")
	flagStops = setOf(" \t\r\n\"'`;|)")
)

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
	if c.takesPair() {
		i := strings.IndexAny(text, ":%,")
		if i < 0 || strings.HasPrefix(text[i+1:], "//") {
			return
		}
		lit.start += i + 1
		text = text[i+1:]
	}
	text = strings.Trim(text, `"'`)
	if !isArgument(text) || glued && shapeOf(text).digit == 0 && !gibberish(text) {
		return
	}
	d.found("password", c.rule(), base+lit.start, base+lit.start+len(text))
}

func (c *command) rule() string { return "command " + c.word }

// isArgument reports whether text, which stands where a command takes a secret,
// is one: no flag, no reference, no path, no word that says what is to be there.
func isArgument(text string) bool {
	if len(text) < 2 || text[0] == '-' || isPlaceholder(text) && len(text) > 4 || standsFor(text) || dullWords(text, 0) || isSource(text) {
		return false
	}
	return (strings.IndexByte("/.~", text[0]) < 0 || len(text) == 40 && veryRandom(text)) && (strings.Trim(text, digits+":") != "" || !strings.Contains(text, ":"))
}

// nextWord masks what follows the command, and the type that may stand before it.
func (d *detector) nextWord(c *command, line string, base int) {
	v := run(line, 0, &flagGap, maxGap)
	if v == 0 {
		return
	}
	if c.how == formWord {
		v = afterType(line, v)
	}
	lit, ok := argumentAt(line, v, false)
	if !ok {
		return
	}
	text := line[lit.start:lit.end]
	if c.how == formNext && !lit.quoted && !random(text) || c.how == formWord && !isCommunity(text) || !isArgument(text) {
		return
	}
	d.found("password", c.rule(), base+lit.start, base+lit.end)
}

// isCommunity reports whether the name of an SNMP community, or another word
// that a router takes for a secret, is none that everybody has.
func isCommunity(text string) bool {
	switch strings.ToLower(text) {
	case "public", "private", "community", "string", "index", "trap", "version":
		return false
	}
	return len(text) >= 4
}

// afterType skips the digit that says how a router's secret is encrypted.
func afterType(s string, v int) int {
	if v+2 < len(s) && isDigit(s[v]) && blankSet.has(s[v+1]) {
		return gap(s, v+1)
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
	if text := line[final.start:final.end]; flagged && n >= 2 && isArgument(text) && text[0] != '\\' && text[0] != '*' && last(text) != ':' && isCommunity(text) {
		d.found("password", c.rule(), base+final.start, base+final.end)
	}
}

// argumentGap are what stands between arguments, also those of a procedure.
var argumentGap = setOf(" \t,")
