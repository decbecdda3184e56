package redaction

import (
	_ "embed"
	"fmt"
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

// ruleData is everything beside the code that decides what is masked.
func ruleData() string { return tokensFile + namesFile + commandsFile + callsFile + wordsFile }

// A tokenFormat is a line of tokens.txt.
type tokenFormat struct {
	class, prefix string
	set           charset
	min           int
	// free formats may follow a letter or digit: the prefix is telling enough.
	free bool
}

// parseTokens reads token formats; its errors name the line.
func parseTokens(data string) ([]tokenFormat, error) {
	var out []tokenFormat
	n := 0
	for line := range strings.Lines(data) {
		n++
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 5 {
			return nil, fmt.Errorf("token format on line %d has %d fields: want class, prefix, charset, min and sources", n, len(f))
		}
		set, ok := charsets[f[2]]
		if !ok {
			return nil, fmt.Errorf("token format on line %d names the unknown charset %q", n, f[2])
		}
		least, err := strconv.Atoi(f[3])
		if err != nil || least < 0 {
			return nil, fmt.Errorf("token format on line %d: %q is not a length", n, f[3])
		}
		if len(f[1]) < 2 || !validClass(f[0]) {
			return nil, fmt.Errorf("token format on line %d: want a class of lower-case letters, digits and - and a prefix of at least 2 bytes", n)
		}
		out = append(out, tokenFormat{f[0], f[1], set, least, isFree(f[1], least)})
	}
	return out, nil
}

func isFree(prefix string, least int) bool {
	mark := !isAlnum(prefix[len(prefix)-1])
	mixed := strings.ToUpper(prefix) != prefix && strings.ToLower(prefix) != prefix
	return !isAlnum(prefix[0]) || len(prefix) >= 5 && mark || least >= 24 && (mark || mixed && len(prefix) >= 4)
}

func validClass(s string) bool {
	return len(s) > 0 && len(s) <= 32 && allIn(s, &classSet)
}

var classSet = setOf(lowers, digits, "-")

// A strength says how much a name promises of its value.
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
	// whole stems must be a word of the identifier, ending ones end one.
	whole, ending bool
}

func parseNames(data string) ([]nameStem, error) {
	var out []nameStem
	for line := range strings.Lines(data) {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		st, ok := strengths[f[0]]
		if !ok {
			return nil, fmt.Errorf("names: unknown strength %q", f[0])
		}
		for _, w := range f[1:] {
			stem, whole := strings.CutPrefix(w, "=")
			stem, ending := strings.CutSuffix(stem, "$")
			whole = whole || st == vendorName && len(stem) <= 5
			out = append(out, nameStem{stem, st, whole, ending})
		}
	}
	return out, nil
}

// parseLists reads words.txt: lists of words by their heading.
func parseLists(data string) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	var heading string
	for line := range strings.Lines(data) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			heading = strings.Trim(line, "[]")
			out[heading] = map[string]bool{}
		default:
			for w := range strings.FieldsSeq(line) {
				out[heading][w] = true
			}
		}
	}
	return out
}

// triggers lists the words of all rules for the automaton.
func triggers(tokens []tokenFormat, names []nameStem, commands []command, functions []function, cfg Config) []trigger {
	out := []trigger{
		{"[redacted:", onPlaceholder, 0},
		{"://", onURI, 0}, {"@", onUserinfo, 0}, {":::", onHashes, 0}, {"@tcp(", onDSN, 0}, {"@unix(", onDSN, 0}, {"@udp(", onDSN, 0},
		{"jdbc:oracle:thin:", onOracle, 0}, {"jdbc:oracle:oci:", onOracle, 0}, {"sqlplus ", onOracle, 0},
		{"connect ", onOracle, 0}, {"conn ", onOracle, 0}, {"userid=", onOracle, 0},
		{"insert into ", onInsert, 0},
		{"kty", onDocument, documentJWK}, {"kind", onDocument, documentSecret}, {"<rsakeyvalue>", onDocument, documentXMLKey}, {"$ansible_vault;", onDocument, documentVault},
		{"send ", onPrompt, 0}, {"sendline(", onPrompt, 0},
		{"-----begin", onPEM, 0}, {"----end", onPEM, 1}, {"---- begin", onPEM, 0},
		{"private-lines:", onPPK, 0},
		{"ibazcc", onDER, 0}, {"ibadanbgkqhkig9w0baqefaas", onDER, 0}, {"ibaakc", onDER, 0},
		{"eyj", onToken, -1}, {"zxlk", onToken, -1},
		{"q~", onToken, -2},
		{"ls0tls1crudj", onBasic64, 0},
		{"bearer", onScheme, 0}, {"basic", onScheme, 1}, {"auth plain", onScheme, 1}, {"ssws", onScheme, 0}, {"digest", onScheme, 2},
	}
	for i, head := range storeHeads {
		out = append(out, trigger{strings.ToLower(head), onStore, i})
	}
	for i, c := range commands {
		out = append(out, trigger{c.word, onCommand, i})
	}
	for _, port := range []string{":5432:", ":5433:", ":5434:", ":6432:", ":*:"} {
		out = append(out, trigger{port, onPgpass, 0})
	}
	for _, port := range []string{"]:25 ", "]:465 ", "]:587 "} {
		out = append(out, trigger{port, onRelay, 0})
	}
	for _, word := range foreignNames {
		out = append(out, trigger{word, onForeign, 0})
	}
	for i, c := range functions {
		out = append(out, trigger{c.word, onCall, i})
	}
	for i, t := range tokens {
		out = append(out, trigger{strings.ToLower(t.prefix), onToken, i})
	}
	for i, s := range names {
		out = append(out, trigger{s.stem, onName, i})
	}
	if cfg.Emails {
		out = append(out, trigger{"@", onMail, 0})
	}
	for i, h := range cfg.HostSuffixes {
		out = append(out, trigger{strings.ToLower(strings.TrimLeft(h, ".*")), onHost, i})
	}
	return slices.Clip(out)
}
