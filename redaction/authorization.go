package redaction

import (
	"encoding/base64"
	"strings"
)

// The kinds of authorization schemes.
const (
	bearerScheme = iota
	basicScheme
	digestScheme
)

// scheme masks the credentials after the name s[begin:end] of an authorization
// scheme.
func (d *detector) scheme(kind, begin, end int) {
	if d.contextFree || begin > 0 && isAlnum(d.s[begin-1]) || end >= len(d.s) {
		return
	}
	at := run(d.s, end, &schemeGap, 8)
	if n := len(d.detections); at == end || n > 0 && d.detections[n-1].start == at {
		return // nothing follows, or it was found as the value of a header
	}
	stop := run(d.s, at, &bearerSet, maxToken)
	if d.schemes.exceeded(at, stop) {
		d.maskUnparsed("bearer-token", at, stop)
		return
	}
	for stop > at && strings.IndexByte(".,:|", d.s[stop-1]) >= 0 {
		stop--
	}
	text := d.s[at:stop]
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

// digestResponse masks the response of a digest in a header, from which a
// password can be guessed.
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

// isCredential reports whether text after a scheme in a header is a credential
// and neither a reference nor prose.
func isCredential(text string, least int) bool {
	return len(text) >= least && !isReference(text) && !isSource(text) && !lists["schemeword"][strings.ToLower(text)] && (text != strings.ToUpper(text) || !isCommonWords(text, 0))
}

// isEncodedPair reports whether text is the base64 of user:password.
func isEncodedPair(text string) bool {
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil || len(data) < 3 {
		return false
	}
	mark := false
	for _, c := range data {
		if c < ' ' && c != 0 || c >= 0x7f {
			return false
		}
		mark = mark || c == ':' || c == 0
	}
	return mark
}
