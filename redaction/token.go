package redaction

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// token masks a token of a format of tokens.txt, whose prefix is s[begin:end].
func (d *detector) token(index, begin, end int) {
	t := &d.tokens[index]
	if d.s[begin:end] != t.prefix || !t.unanchored && (followsAlnum(d.s, begin) || inBase64(d.s, begin)) {
		return
	}
	stop := run(d.s, end, &t.set, maxToken)
	if d.exceeded(&d.runs, t.class, begin, stop) {
		return
	}
	body := strings.TrimRight(d.s[end:stop], ".,:?&")
	stop = end + len(body)
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

// inBase64 reports whether a long run of base64 goes on at i.
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

// awsSecretAfter masks the secret shortly after the id of a key: 40 bytes of base64.
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
	if d.exceeded(&d.runs, "jwt", begin, end) {
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
	return containsAny(strings.ToLower(string(data)), heads["secretfield"])
}

// azureSecret masks client secrets of Entra ID: 3 bytes, a digit, Q~, 31 to 34 bytes.
func (d *detector) azureSecret(_, begin, _ int) {
	start, stop := runBack(d.s, begin, &azureSet, 5), run(d.s, begin, &azureSet, 48)
	if d.s[begin] == 'Q' && begin-start == 4 && isDigit(d.s[begin-1]) && stop-begin >= 28 {
		d.report("azure-key", "azure client secret", start, stop)
	}
}

// The kinds of authorization schemes.
const (
	bearerScheme = iota
	basicScheme
	digestScheme
)

// scheme masks the credentials after the authorization scheme s[begin:end].
func (d *detector) scheme(kind, begin, end int) {
	if d.contextFree || begin > 0 && isAlnum(d.s[begin-1]) || end >= len(d.s) {
		return
	}
	at := run(d.s, end, &schemeGap, 8)
	if n := len(d.detections); at == end || n > 0 && d.detections[n-1].start == at {
		return // nothing follows, or it was found as the value of a header
	}
	stop := run(d.s, at, &bearerSet, maxToken)
	if d.exceeded(&d.schemes, "bearer-token", at, stop) {
		return
	}
	text := strings.TrimRight(d.s[at:stop], ".,:|")
	stop = at + len(text)
	switch kind {
	case bearerScheme:
		if d.inAuthorization(begin) && isCredential(text, 4) ||
			len(text) >= 8 && (isRandom(text) || isVeryRandom(text)) && !isSource(text) && !isPath(text) && !isCommonWords(text, 1) {
			d.report("bearer-token", "authorization", at, stop)
		}
	case basicScheme:
		// In a header the credentials may be cut off and encode no whole pair.
		if d.inAuthorization(begin) && isCredential(text, 8) ||
			len(text) >= 8 && (isEncodedPair(text) || len(text) >= 20 && isVeryRandom(text)) {
			d.report("basic-credentials", "authorization", at, stop)
		}
	case digestScheme:
		// p4 and other programs print digests of files after the word.
		if d.inAuthorization(begin) {
			d.digestResponse(at)
		}
	}
}

// digestResponse masks the response of a digest: it lets a password be guessed.
func (d *detector) digestResponse(at int) {
	const field = `response="`
	line := d.s[at:lineEndWithin(d.s, at, maxCommand)]
	if i := strings.Index(line, field); i >= 0 {
		begin := at + i + len(field)
		if end := run(d.s, begin, &hexSet, 128); end-begin >= 32 {
			d.report("digest-response", "authorization", begin, end)
		}
	}
}

// inAuthorization reports whether the scheme at i is in an Authorization header,
// where any text after it is a credential.
func (d *detector) inAuthorization(i int) bool {
	const gap = 24
	return strings.Contains(strings.ToLower(d.s[max(0, i-gap):i]), "authorization")
}

// isCredential reports whether text after a scheme is no reference and no prose.
func isCredential(text string, least int) bool {
	return len(text) >= least && !isReference(text) && !isSource(text) && !lists["schemeword"][strings.ToLower(text)] && (text != strings.ToUpper(text) || !isCommonWords(text, 0))
}

// isEncodedPair reports whether text is the base64 of user:password.
func isEncodedPair(text string) bool {
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	isBinary := func(r rune) bool { return r < ' ' && r != 0 || r >= 0x7f }
	return err == nil && len(data) >= 3 && bytes.ContainsAny(data, ":\x00") && bytes.IndexFunc(data, isBinary) < 0
}
