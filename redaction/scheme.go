package redaction

import (
	"encoding/base64"
	"strings"
)

var bearerSet = setOf(digits, letters, "_-.~+/=|:!")

// scheme looks at the credentials after the word of an authorization scheme:
// bearer tokens (which 0), basic ones (1), digests (2).
func (d *detector) scheme(which, begin, end int) {
	if d.certain || begin > 0 && isAlnum(d.s[begin-1]) || end >= len(d.s) {
		return
	}
	at := run(d.s, end, &schemeGap, 8)
	if n := len(d.finds); at == end || n > 0 && d.finds[n-1].start == at {
		return // nothing follows, or it was found as the value of a header
	}
	stop := run(d.s, at, &bearerSet, maxToken)
	if d.schemes.crowded(at, stop) {
		d.unseen("bearer-token", at, stop)
		return
	}
	for stop > at && strings.IndexByte(".,:|", d.s[stop-1]) >= 0 {
		stop--
	}
	text := d.s[at:stop]
	switch which {
	case 0:
		if d.inAuthorization(begin) && isCredential(text, 4) {
			d.found("bearer-token", "authorization", at, stop)
			return
		}
		if len(text) >= 8 && (random(text) || veryRandom(text)) && !isSource(text) && !isPath(text) && !dullWords(text, 1) {
			d.found("bearer-token", "authorization", at, stop)
		}
	case 1:
		// In a header it may be cut off, and then encodes no whole pair.
		cut := d.inAuthorization(begin) && isCredential(text, 8)
		if cut || len(text) >= 8 && (encodesPair(text) || len(text) >= 20 && veryRandom(text)) {
			d.found("basic-credentials", "authorization", at, stop)
		}
	case 2:
		// p4 and others print digests of files after the word.
		if d.inAuthorization(begin) {
			d.digestResponse(at)
		}
	}
}

// digestResponse masks the response of a digest in a header, from which
// a password can be guessed.
func (d *detector) digestResponse(at int) {
	const field = `response="`
	line := d.s[at:lineEndWithin(d.s, at, maxCommand)]
	if i := strings.Index(line, field); i >= 0 {
		begin := at + i + len(field)
		if end := run(d.s, begin, &hexSet, 128); end-begin >= 32 {
			d.found("digest-response", "authorization", begin, end)
		}
	}
}

// inAuthorization reports whether the scheme at i stands in an Authorization
// header, where what follows is a credential whatever it looks like.
func (d *detector) inAuthorization(i int) bool {
	return strings.Contains(strings.ToLower(d.s[max(0, i-maxHeaderGap):i]), "authorization")
}

const maxHeaderGap = 24

// isCredential reports whether text behind a scheme in a header is one, and not
// what stands for it or speaks of it.
func isCredential(text string, least int) bool {
	return len(text) >= least && !standsFor(text) && !isSource(text) && !plainScheme[strings.ToLower(text)] && (text != strings.ToUpper(text) || !dullWords(text, 0))
}

// plainScheme are words that follow a scheme where it is only spoken of.
var plainScheme = map[string]bool{
	"token": true, "tokens": true, "auth": true, "authentication": true, "authorization": true,
	"header": true, "scheme": true, "null": true, "undefined": true,
}

var schemeGap = setOf(" \t:")

// encodesPair reports whether text is the base64 of user:password.
func encodesPair(text string) bool {
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
