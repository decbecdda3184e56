package token

import (
	"regexp"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// longRuns finds tokens of rules without an anchor: it looks at each run of token bytes that is long enough, which
// covers one of every 34 bytes.
func (c *scan) longRuns() {
	const least = 34 // bytes of a Twilio id
	for i := least - 1; i < len(c.s); i += least {
		if inRun[c.s[i]] == 0 {
			continue
		}
		begin, end := i, i+1
		for begin > 0 && inRun[c.s[begin-1]] != 0 && i-begin < maxToken {
			begin--
		}
		for end < len(c.s) && inRun[c.s[end]] != 0 && end-i < maxToken {
			end++
		}
		if end-begin >= least {
			c.longRun(begin, end)
		}
		i += (end - 1 - i) / least * least
	}
}

// inRun is 1 for the bytes of a run.
var inRun = lex.SetOf(lex.Digits, lex.Letters, "_-+/=.:!")

// longRun masks the tokens in the run s[begin:end].
func (c *scan) longRun(begin, end int) {
	if ends := end == len(c.s) || lex.SpaceSet.Has(c.s[end]) || lex.QuoteSet.Has(c.s[end]); ends && c.s[end-ticketLen-1] == ':' && ticketLine.MatchString(c.s[begin:end]) {
		c.report("p4-ticket", "p4 ticket", "", end-ticketLen, end)
		return
	}
	found := len(c.found)
	for at := begin; at < end; at++ {
		if at > begin && lex.IsAlnum(c.s[at-1]) {
			continue
		}
		for _, t := range c.runs {
			if first, last, ok := t.match(c.s, at, new(int)); ok {
				c.reportToken(t, first, last, at)
				at = last - 1
				break
			}
		}
	}
	if len(c.found) == found && c.isGeneric(begin, end) {
		last := begin + len(strings.TrimRight(c.s[begin:end], ".:!"))
		c.report("token", Generic, "random", begin, last)
	}
}

// ticketLine matches a line of a .p4tickets file, host:port=user:TICKET, or of the output of p4 tickets.
var ticketLine = regexp.MustCompile(`[=:].*:[0-9A-F]{32}$`)

const ticketLen = 32

// Generic is the rule of random tokens of no known format.
const Generic = "generic random token"

// isGeneric reports whether the run s[begin:end] is a random token of no known format: in quotes, behind
// an operator or between blanks, of capitals, small letters and digits without words. A digest, the name
// of a block of data, and the line of such a block are not.
func (c *scan) isGeneric(begin, end int) bool {
	const least, most, shown = 36, 200, 100
	text := strings.TrimRight(c.s[begin:end], ".:!=")
	if len(text) < least || len(text) > most || !lex.AllIn(text, &genericSet) || lex.BeginsWith(text, []string{"_Z", "--"}) || !judge.IsMixedCase(text) || !judge.IsVeryRandom(text) || strings.Count(text, "/") > 2+len(text)/24 {
		return false
	}
	before, after := lex.ByteAt(c.s, begin-1), lex.ByteAt(c.s, end)
	quoted := lex.QuoteSet.Has(before) && after == before
	if !quoted && (strings.IndexByte(" \t=:\n\x00", before) < 0 || strings.IndexByte(" \t\r\n,;\x00", after) < 0) {
		return false
	}
	from := max(lex.LineBegin(c.s, begin), begin-shown)
	line := strings.ToLower(c.s[from : begin+8]) // a digest may begin with the name of its algorithm
	if name := strings.Trim(line[:begin-from], " \t\"'`+-,\\#/*;"); (name == "" || name == "echo") && len(text) >= 48 || lex.ContainsAny(line, judge.Heads("digestbefore")) {
		return false
	}
	upper, digit := lex.CountIn(text, &upperSet), lex.CountIn(text, &lex.DigitSet)
	return upper*6 >= len(text) && digit*10 >= len(text) && !judge.IsWordy(text)
}

var (
	genericSet = lex.SetOf(lex.Digits, lex.Letters, "+/_-")
	upperSet   = lex.SetOf(lex.Uppers)
)
