package redaction

import "strings"

// maxPipe bounds how far a program may be behind what is written into it.
const maxPipe = 256

// piped masks what is written into the command at s[begin:end]: the argument of
// an echo or a printf or a literal before the bar, or a word after <<<. pair is
// set if that is user:secret.
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
		d.report("password", c.rule(), lit.start, lit.end)
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
			d.report("password", c.rule(), begin+len(user)+1, begin+len(line))
		}
		d.commandEnd[index] = at
	}
}

// promptAnswer masks the literal after the trigger, as in send "...\r", if it
// answers a prompt for a password shortly before.
func (d *detector) promptAnswer(_, begin, end int) {
	at := skipBlanks(d.s, end)
	if at < len(d.s) && strings.HasPrefix(d.s[at:], "-- ") {
		at += len("-- ")
	}
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

// maxPrompt is how far an answer may be from its prompt.
const maxPrompt = 120
