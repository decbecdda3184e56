package redaction

import "strings"

// maxPipe bounds how far a program may stand behind what is written into it.
const maxPipe = 256

// piped masks what is written into the command at s[begin:end]: the argument of
// an echo or a printf or a literal before the bar, or a word after <<<. pair is
// set where that is user:secret.
func (d *detector) piped(c *command, begin, end int, pair bool) {
	stop := lineEndWithin(d.s, end, maxPipe)
	rest := d.s[end:stop]
	if len(c.flags) > 0 && !strings.Contains(rest, c.flags[0]) {
		return
	}
	if i := strings.Index(rest, "<<<"); i >= 0 {
		d.written(c, gap(d.s, end+i+len("<<<")), stop, pair)
		return
	}
	if i := strings.Index(rest, "<(echo "); i >= 0 {
		if n := strings.IndexByte(rest[i:], ')'); n > 0 {
			d.written(c, gap(d.s, end+i+len("<(echo ")), end+i+n, pair)
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
	if at < 0 && producer != "" && quoteSet.has(last(producer)) {
		at = strings.LastIndexByte(producer[:len(producer)-1], last(producer))
	}
	if at >= 0 {
		d.written(c, from+at, from+len(producer), pair)
	}
}

// written masks the argument at at, before stop, behind flags such as -n.
func (d *detector) written(c *command, at, stop int, pair bool) {
	for at < stop && d.s[at] == '-' {
		at = gap(d.s, run(d.s, at, &wordSet, 8))
	}
	if at >= stop {
		return
	}
	lit, ok := argumentAt(d.s[:stop], at, false)
	text := d.s[lit.start:lit.end]
	if !ok || !quoteSet.has(d.s[at]) && lit.next < stop && strings.TrimSpace(d.s[lit.next:stop]) != "" {
		return
	}
	if pair {
		user, _, both := strings.Cut(text, ":")
		if !both {
			return
		}
		lit.start += len(user) + 1
		text = d.s[lit.start:lit.end]
	}
	if len(text) >= 4 && isArgument(text) && !isProse(text) {
		d.found("password", c.rule(), lit.start, lit.end)
	}
}

// pairLines masks the secrets of the lines user:secret below a chpasswd.
func (d *detector) pairLines(c *command, index, end int) {
	at := lineEndWithin(d.s, end, maxPipe)
	for n := 0; at < len(d.s) && d.s[at-1] == '\n'; n++ {
		stop := lineEndWithin(d.s, at, maxPipe)
		begin := run(d.s, at, &listMark, maxGap)
		line := strings.TrimRight(d.s[begin:max(begin, stop)], " \t\r\n\"'")
		user, text, ok := strings.Cut(line, ":")
		if !ok || user == "" || !allIn(user, &identSet) || text == "" || strings.ContainsAny(text, " \t") {
			if n > 2 {
				return
			}
			at = stop
			continue
		}
		if isArgument(text) {
			d.found("password", c.rule(), begin+len(user)+1, begin+len(line))
		}
		at = stop
		d.commandEnd[index] = at
	}
}

// listMark is what stands before an entry of a list.
var listMark = setOf(" \t-\"'")

// promptAnswer masks the literal that ends the call or command at s[:end], such
// as send "...\r", if it answers a prompt for a password shortly before.
func (d *detector) promptAnswer(begin, end int) {
	at := gap(d.s, end)
	if at < len(d.s) && strings.HasPrefix(d.s[at:], "-- ") {
		at += len("-- ")
	}
	if d.certain || at >= len(d.s) || !quoteSet.has(d.s[at]) {
		return
	}
	from := max(0, begin-maxPrompt)
	if i := strings.LastIndex(d.s[from:begin], sectionEnd); i >= 0 {
		from += i
	}
	asked := strings.LastIndex(strings.ToLower(d.s[from:begin]), "assw")
	if asked < 0 || strings.Contains(d.s[from+asked:begin], "send") {
		return
	}
	lit, ok := quotedAt(d.s, at)
	if !ok {
		return
	}
	text := d.s[lit.start:lit.end]
	for _, key := range []string{`\n`, `\r`} {
		text = strings.TrimSuffix(text, key)
	}
	if isArgument(text) && !isProse(text) {
		d.found("password", "answer to a prompt", lit.start, lit.start+len(text))
	}
}

// maxPrompt is how far an answer may stand from its prompt.
const maxPrompt = 120
