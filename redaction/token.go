package redaction

import (
	"encoding/base64"
	"strings"
)

// maxToken bounds a token. The longest known ones have a few thousand bytes.
const maxToken = 8 << 10

// token masks a token of a format of tokens.txt, whose prefix is s[begin:end].
func (d *detector) token(index, begin, end int) {
	t := &d.tokens[index]
	if d.s[begin:end] != t.prefix || !t.unanchored && (followsAlnum(d.s, begin) || inBase64(d.s, begin)) {
		return
	}
	stop := run(d.s, end, &t.set, maxToken)
	if d.runs.exceeded(begin, stop) {
		d.maskUnparsed(t.class, begin, stop)
		return
	}
	for stop > end && strings.IndexByte(".,:?&", d.s[stop-1]) >= 0 {
		stop--
	}
	body := d.s[end:stop]
	if len(body) < t.min || !t.unanchored && strings.IndexByte("+/=", lastByte(body)) < 0 && continuesWord(d.s, stop) {
		return
	}
	if t.needsRandomBody() && (!isRandom(body) && !isGibberish(body) || allIn(body, &decimalSet)) || allIn(t.prefix+body, &hexSet) {
		return
	}
	start := d.tokenBegin(t, begin)
	if stop-start <= len(t.prefix) {
		return
	}
	d.report(t.class, "token "+t.prefix, start, stop)
	if t.class == "aws-key" {
		d.awsSecretAfter(stop)
	}
}

// inBase64 reports whether the byte before i belongs to a long run of base64 that
// continues at i.
func inBase64(s string, i int) bool {
	return i > 0 && (s[i-1] == '/' || s[i-1] == '+') && i-runBack(s, i, &plain64, 24) >= 20
}

// needsRandomBody reports whether identifiers and CSS classes have the prefix too.
func (t *tokenFormat) needsRandomBody() bool {
	return t.min < 40 && len(t.prefix) < 4 && t.prefix != "SG." && t.class != "aws-key" || t.class == "model-key"
}

// tokenBegin returns where a token begins whose prefix is in its middle.
func (d *detector) tokenBegin(t *tokenFormat, begin int) int {
	switch {
	case strings.Contains(t.prefix, "/"):
		return runBack(d.s, begin, &urlSet, 80)
	case t.min == 0:
		begin = runBack(d.s, begin, &mailHost, 90)
		for _, scheme := range []string{"https://", "http://"} {
			if strings.HasSuffix(d.s[:begin], scheme) {
				return begin - len(scheme)
			}
		}
	case t.prefix[0] == '.' || t.prefix[0] == '=' || t.prefix == "AZDO":
		return runBack(d.s, begin, &base64Set, 90)
	}
	return begin
}

// awsSecretAfter masks the secret access key shortly after the id of a key: a run
// of exactly 40 bytes of base64.
func (d *detector) awsSecretAfter(at int) {
	limit := min(len(d.s), at+60)
	for at < limit {
		begin := at
		for begin < limit && !plain64.has(d.s[begin]) {
			begin++
		}
		at = run(d.s, begin, &plain64, maxToken)
		if at-begin == 40 && isMixedCase(d.s[begin:at]) {
			d.report("aws-key", "secret after key id", begin, at)
			return
		}
	}
}

// jwt masks a JSON web token, found by its header in base64 or twice in base64.
func (d *detector) jwt(_, begin, _ int) {
	s := d.s
	if !beginsWith(s[begin:], []string{"eyJ", "ZXlK", "ZXlJ"}) || followsAlnum(s, begin) {
		return
	}
	head := run(s, begin, &base64Set, maxToken)
	end := run(s, begin, &jwtSet, maxToken)
	if d.runs.exceeded(begin, end) {
		d.maskUnparsed("jwt", begin, end)
		return
	}
	end = begin + len(strings.TrimRight(s[begin:end], "."))
	switch {
	case end-begin < 40:
	case head < end && s[head] == '.' && end-head > 10:
		d.report("jwt", "jwt", begin, end)
	case s[begin] == 'Z' && head-begin >= 60:
		d.report("jwt", "jwt in base64", begin, head)
	case hasSecretField(s[begin:head]):
		d.report("token", "json in base64", begin, head)
	}
}

// hasSecretField reports whether base64 text holds JSON with a field of a secret.
func hasSecretField(s string) bool {
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

// azureSecret masks client secrets of Entra ID: 3 bytes, a digit, Q~ and 31 to 34
// more bytes.
func (d *detector) azureSecret(_, begin, _ int) {
	start, stop := runBack(d.s, begin, &azureSet, 5), run(d.s, begin, &azureSet, 48)
	if d.s[begin] == 'Q' && begin-start == 4 && isDigit(d.s[begin-1]) && stop-begin >= 28 {
		d.report("azure-key", "azure client secret", start, stop)
	}
}
