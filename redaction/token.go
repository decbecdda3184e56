package redaction

import (
	"encoding/base64"
	"strings"
)

// maxToken bounds a token; the longest known have some thousand bytes.
const maxToken = 8 << 10

// token looks at a prefix of a known format; a negative index names a format
// that takes more than a prefix and a charset to know.
func (d *detector) token(index, begin, end int) {
	switch index {
	case -1:
		d.jwt(begin)
		return
	case -2:
		d.azureSecret(begin)
		return
	}
	t := &d.tokens[index]
	if d.s[begin:end] != t.prefix || !t.free && (followsAlnum(d.s, begin) || inBase64(d.s, begin)) {
		return
	}
	stop := run(d.s, end, &t.set, maxToken)
	if d.runs.crowded(begin, stop) {
		d.unseen(t.class, begin, stop)
		return
	}
	for stop > end && strings.IndexByte(".,:=?&", d.s[stop-1]) >= 0 && d.s[stop-1] != '=' {
		stop--
	}
	body := d.s[end:stop]
	if len(body) < t.min || !t.free && strings.IndexByte("+/=", last(body)) < 0 && continues(d.s, stop) {
		return
	}
	if t.needsProof() && (!random(body) && !gibberish(body) || allIn(body, &decimalSet)) || allIn(t.prefix+body, &hexSet) {
		return
	}
	start := d.tokenBegin(t, begin)
	if stop-start <= len(t.prefix) {
		return
	}
	d.found(t.class, "token "+t.prefix, start, stop)
	if t.class == "aws-key" {
		d.awsSecretAfter(stop)
	}
}

var decimalSet = setOf(digits, ".")

// inBase64 reports whether the byte before i is of a run of base64 too long to
// be anything but the begin of what goes on at i.
func inBase64(s string, i int) bool {
	return i > 0 && (s[i-1] == '/' || s[i-1] == '+') && i-runBack(s, i, &plain64, 24) >= 20
}

// needsProof formats have prefixes that identifiers and CSS classes have too.
func (t *tokenFormat) needsProof() bool {
	return t.min < 40 && len(t.prefix) < 4 && t.prefix != "SG." && t.class != "aws-key" || t.class == "model-key"
}

var digitSet = setOf(digits)

// tokenBegin moves the begin back where a format's mark stands in the middle.
func (d *detector) tokenBegin(t *tokenFormat, begin int) int {
	switch {
	case strings.Contains(t.prefix, "/"):
		return runBack(d.s, begin, &urlSet, 80)
	case t.min == 0:
		begin = runBack(d.s, begin, &mailHost, 90)
		return begin - len(schemeBefore(d.s[:begin]))
	case t.prefix[0] == '.' || t.prefix[0] == '=' || t.prefix == "AZDO":
		return runBack(d.s, begin, &base64Set, 90)
	}
	return begin
}

// awsSecretAfter masks the secret access key that stands shortly after a key's
// id: a run of exactly 40 bytes of base64.
func (d *detector) awsSecretAfter(at int) {
	limit := min(len(d.s), at+60)
	for at < limit {
		begin := at
		for begin < limit && !plain64.has(d.s[begin]) {
			begin++
		}
		at = run(d.s, begin, &plain64, maxToken)
		if at-begin == 40 && mixedCase(d.s[begin:at]) {
			d.found("aws-key", "secret after key id", begin, at)
			return
		}
	}
}

// schemeBefore is the "https://" or the like that s ends in.
func schemeBefore(s string) string {
	for _, scheme := range []string{"https://", "http://"} {
		if strings.HasSuffix(s, scheme) {
			return scheme
		}
	}
	return ""
}

var mailHost = setOf(digits, letters, "-_.@")

var urlSet = setOf(digits, letters, "-_.:/")

func last(s string) byte {
	if s == "" {
		return 0
	}
	return s[len(s)-1]
}

// continues reports whether the run that ended at i goes on as a longer word.
func continues(s string, i int) bool { return i < len(s) && isAlnum(s[i]) }

// followsAlnum reports whether the byte before i is of the same word. The
// letter of an escape such as \n is not.
func followsAlnum(s string, i int) bool {
	if i == 0 || !isAlnum(s[i-1]) {
		return false
	}
	return i < 2 || s[i-2] != '\\'
}

func distinct(s string) int {
	var seen charset
	n := 0
	for i := range len(s) {
		if !seen.has(s[i]) {
			seen[s[i]>>6] |= 1 << (s[i] & 63)
			n++
		}
	}
	return n
}

var (
	urlBase64 = setOf(digits, letters, "_-")
	jwtSet    = setOf(digits, letters, "_-.+/=")
)

// jwt looks for a JSON web token at its header, in base64 or twice so.
func (d *detector) jwt(begin int) {
	s := d.s
	if !strings.HasPrefix(s[begin:], "eyJ") && !strings.HasPrefix(s[begin:], "ZXlK") && !strings.HasPrefix(s[begin:], "ZXlJ") || followsAlnum(s, begin) {
		return
	}
	head := run(s, begin, &base64Set, maxToken)
	end := run(s, begin, &jwtSet, maxToken)
	if d.runs.crowded(begin, end) {
		d.unseen("jwt", begin, end)
		return
	}
	end = begin + len(strings.TrimRight(s[begin:end], "."))
	switch {
	case end-begin < 40:
	case head < end && s[head] == '.' && end-head > 10:
		d.found("jwt", "jwt", begin, end)
	case s[begin] == 'Z' && head-begin >= 60:
		d.found("jwt", "jwt in base64", begin, head)
	case tellingJSON(s[begin:head]):
		d.found("token", "json in base64", begin, head)
	}
}

// tellingJSON reports whether base64 text holds JSON with a field of a secret.
func tellingJSON(s string) bool {
	s = strings.TrimRight(s, "=")
	data, err := base64.RawStdEncoding.DecodeString(s[:len(s)&^3])
	if err != nil {
		data, err = base64.RawURLEncoding.DecodeString(s[:len(s)&^3])
	}
	if err != nil {
		return false
	}
	text := strings.ToLower(string(data))
	for _, w := range []string{"secret", "token", "password", "private", "\"d\":", "\"k\":", "key", "alg"} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

var azureSet = setOf(digits, letters, "_~.-")

// azureSecret looks for the client secrets of Entra ID: 3 bytes, a digit, Q~
// and 31 to 34 more.
func (d *detector) azureSecret(begin int) {
	start, stop := runBack(d.s, begin, &azureSet, 5), run(d.s, begin, &azureSet, 48)
	if d.s[begin] == 'Q' && begin-start == 4 && isDigit(d.s[begin-1]) && stop-begin >= 28 {
		d.found("azure-key", "azure client secret", start, stop)
	}
}
