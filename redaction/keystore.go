package redaction

import (
	"encoding/base64"
	"strings"
)

// ppk masks the private lines of a PuTTY key file, whose number begins at i.
func (d *detector) ppk(_, _, i int) {
	at := lineEndWithin(d.s, i, maxName)
	if at < d.ppkEnd || d.s[at-1] != '\n' {
		return
	}
	for at < len(d.s) {
		end := lineEnd(d.s, at)
		d.ppkEnd = end
		begin, stop := keyLine(d.s, at, end)
		if stop-begin < 4 {
			return
		}
		d.report("private-key", "putty key", begin, stop)
		at = end
	}
}

// derVersions begin, in base64, the content of a private key or a store of keys in
// DER: the version, and for PKCS 8 the algorithm RSA.
var derVersions = []string{"IBAzCC", "IBADANBgkqhkiG9w0BAQEFAAS", "IBAAKC"}

// der masks the base64 of a private key or of a store of keys in DER without its
// BEGIN line: a sequence of up to 64 kB whose content begins at i.
func (d *detector) der(_, i, _ int) {
	const head = len("MIIEvQ")
	if i < head || d.s[i-head:i-head+3] != "MII" || !allIn(d.s[i-head:i], &plain64) || i > head && plain64.has(d.s[i-head-1]) {
		return
	}
	if beginsWith(d.s[i:], derVersions) {
		d.keyStore(i - head)
	}
}

// keyHeads begin keys without a BEGIN line, in SEC 1 and PKCS 8 for P-256 and in
// PKCS 8 for Ed25519, and Java key stores.
var keyHeads = []string{"MHcCAQEEI", "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg", "MC4CAQAwBQYDK2VwBCIEI", "/u3+7QAAAA"}

// bareKey masks a key that begins with one of keyHeads at i.
func (d *detector) bareKey(index, i, _ int) {
	if strings.HasPrefix(d.s[i:], keyHeads[index]) {
		d.keyStore(i)
	}
}

// keyStore masks the base64 of a key or of a store of keys that begins at i.
func (d *detector) keyStore(i int) {
	end := run(d.s, i, &keySet, maxKey)
	if i < d.keyEnd || end-i < minStore || i > 0 && plain64.has(d.s[i-1]) {
		return
	}
	// After a BEGIN line, the label of the block decides.
	if before := strings.TrimRight(d.s[max(0, i-maxGap):i], " \t\r\n\"'`+\\n"); strings.HasSuffix(before, "-----") {
		return
	}
	d.report("private-key", "key without armour", i, end)
	if end-i <= maxKeyWidth { // the first of several lines
		d.keyForward(i)
	}
	d.keyEnd = max(d.keyEnd, end)
}

// pemBase64 is the base64 of "-----BEGI".
const pemBase64 = "LS0tLS1CRUdJ"

// pemInBase64 masks base64 of a PEM block unless the block is a public one.
func (d *detector) pemInBase64(_, begin, _ int) {
	if !strings.HasPrefix(d.s[begin:], pemBase64) {
		return
	}
	end := run(d.s, begin, &base64Set, maxKey)
	if d.exceeded(&d.tokenRuns, "private-key", begin, end) {
		return
	}
	head := d.s[begin:min(end, begin+64)]
	label, err := base64.StdEncoding.DecodeString(head[:len(head)&^3])
	if err == nil && !strings.Contains(string(label), "PRIVATE") {
		return
	}
	d.report("private-key", "key block in base64", begin, end)
}
