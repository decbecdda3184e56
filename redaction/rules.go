package redaction

import (
	_ "embed"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

var (
	//go:embed tokens.txt
	tokensFile string
	//go:embed names.txt
	namesFile string
	//go:embed commands.txt
	commandsFile string
	//go:embed calls.txt
	callsFile string
	//go:embed words.txt
	wordsFile string
)

// entries yields the lines of a data file with fields, and their numbers.
func entries(data string) iter.Seq2[int, []string] {
	return func(yield func(int, []string) bool) {
		n := 0
		for line := range strings.Lines(data) {
			n++
			if f := strings.Fields(line); len(f) > 0 && f[0][0] != '#' && !yield(n, f) {
				return
			}
		}
	}
}

// A tokenFormat is a line of tokens.txt.
type tokenFormat struct {
	class, prefix string
	set           charset
	min           int
	// unanchored formats may follow a letter or digit: the prefix is specific enough.
	unanchored bool
}

// parseTokens reads token formats. Its errors name the line.
func parseTokens(data string) ([]tokenFormat, error) {
	var out []tokenFormat
	for n, f := range entries(data) {
		if len(f) != 5 {
			return nil, fmt.Errorf("token format on line %d has %d fields: want class, prefix, charset, min and sources", n, len(f))
		}
		set, ok := charsets[f[2]]
		least, err := strconv.Atoi(f[3])
		switch {
		case !ok:
			return nil, fmt.Errorf("token format on line %d names the unknown charset %q", n, f[2])
		case err != nil || least < 0:
			return nil, fmt.Errorf("token format on line %d: %q is not a length", n, f[3])
		case len(f[1]) < 2 || !validClass(f[0]):
			return nil, fmt.Errorf("token format on line %d: want a class of lower-case letters, digits and - and a prefix of at least 2 bytes", n)
		}
		out = append(out, tokenFormat{f[0], f[1], set, least, isUnanchored(f[1], least)})
	}
	return out, nil
}

func isUnanchored(prefix string, least int) bool {
	mark := !isAlnum(prefix[len(prefix)-1])
	mixed := strings.ToUpper(prefix) != prefix && strings.ToLower(prefix) != prefix
	return !isAlnum(prefix[0]) || len(prefix) >= 5 && mark || least >= 24 && (mark || mixed && len(prefix) >= 4)
}

func validClass(s string) bool {
	return len(s) > 0 && len(s) <= 32 && allIn(s, &classSet)
}

// A strength is how reliably a name says that its value is a secret.
type strength uint8

const (
	noName strength = iota
	vendorName
	weakName
	mediumName
	strongName
)

var strengths = map[string]strength{"strong": strongName, "medium": mediumName, "weak": weakName, "vendor": vendorName}

// A nameStem is a stem of names.txt.
type nameStem struct {
	stem     string
	strength strength
	// A whole stem has to be a word of the identifier, an ending one the end of a word.
	whole, ending bool
}

func parseNames(data string) ([]nameStem, error) {
	var out []nameStem
	for n, f := range entries(data) {
		st, ok := strengths[f[0]]
		if !ok {
			return nil, fmt.Errorf("names on line %d have the unknown strength %q", n, f[0])
		}
		for _, w := range f[1:] {
			stem, whole := strings.CutPrefix(w, "=")
			stem, ending := strings.CutSuffix(strings.ReplaceAll(stem, "~", " "), "$")
			whole = whole || st == vendorName && len(stem) <= 5
			out = append(out, nameStem{stem, st, whole, ending})
		}
	}
	return out, nil
}

// parseLists reads the lists of words.txt by their heading.
func parseLists(data string) (ordered map[string][]string, sets map[string]map[string]bool) {
	ordered, sets = map[string][]string{}, map[string]map[string]bool{}
	var heading string
	for _, f := range entries(data) {
		if f[0][0] == '[' {
			heading = strings.Trim(f[0], "[]")
			sets[heading] = map[string]bool{}
			continue
		}
		for _, w := range f {
			w = strings.ReplaceAll(w, "~", " ")
			ordered[heading] = append(ordered[heading], w)
			sets[heading][w] = true
		}
	}
	return ordered, sets
}

// A matcher looks for secrets at the trigger s[begin:end]. index is the number
// of the rule that the trigger belongs to.
type matcher func(d *detector, index, begin, end int)

// A trigger is a word and what to call where it occurs.
type trigger struct {
	word  string // folded
	match matcher
	index int
	// contextFree triggers find secrets that need no context. isName is set for
	// the stems of names.txt.
	contextFree, isName bool
}

// triggers returns the trigger words of all rules.
func (e *engine) triggers(cfg Config) []trigger {
	var out []trigger
	with := func(contextFree bool) func(match matcher, index int, words ...string) {
		return func(match matcher, index int, words ...string) {
			for _, w := range words {
				out = append(out, trigger{word: strings.ToLower(w), match: match, index: index, contextFree: contextFree})
			}
		}
	}
	add, contextFree := with(false), with(true)
	contextFree((*detector).placeholder, 0, placeholderHead)
	contextFree((*detector).uri, 0, "://")
	add((*detector).userinfo, 0, "@")
	add((*detector).windowsHashes, 0, ":::")
	add((*detector).dsn, 0, "@tcp(", "@unix(", "@udp(")
	add((*detector).oracle, 0, "jdbc:oracle:thin:", "jdbc:oracle:oci:", "sqlplus ", "connect ", "conn ", "userid=")
	add((*detector).insert, 0, "insert into ")
	for kind, mark := range documentMarks {
		add((*detector).document, kind, mark)
	}
	add((*detector).promptAnswer, 0, "send ", "sendline(")
	contextFree((*detector).pem, beginLine, "-----begin", "---- begin")
	contextFree((*detector).pem, endLine, "----end")
	add((*detector).ppk, 0, "private-lines:")
	add((*detector).der, 0, derVersions...)
	contextFree((*detector).jwt, 0, "eyj", "zxlk")
	contextFree((*detector).azureSecret, 0, "q~")
	add((*detector).pemInBase64, 0, pemBase64)
	add((*detector).scheme, bearerScheme, "bearer", "ssws")
	add((*detector).scheme, basicScheme, "basic", "auth plain")
	add((*detector).scheme, digestScheme, "digest")
	for i, head := range keyHeads {
		add((*detector).bareKey, i, head)
	}
	for i, c := range e.commands {
		add((*detector).command, i, c.word)
	}
	add((*detector).pgpass, 0, ":5432:", ":5433:", ":5434:", ":6432:", ":*:")
	add((*detector).saslPasswd, 0, "]:25 ", "]:465 ", "]:587 ")
	for i, c := range e.functions {
		add((*detector).call, i, c.word)
	}
	for i, t := range e.tokens {
		with(len(t.prefix) >= 4)((*detector).token, i, t.prefix)
	}
	for i, n := range e.names {
		t := trigger{word: n.stem, match: (*detector).name, index: i, isName: true}
		if !allIn(n.stem, &identSet) {
			t.match, t.isName = (*detector).nonASCIIName, false
		}
		out = append(out, t)
	}
	if cfg.Emails {
		add((*detector).email, 0, "@")
	}
	add((*detector).host, 0, cfg.HostSuffixes...)
	return slices.Clip(out)
}
