package redaction

import (
	"encoding/base64"
	"strings"
)

// ppk masks the private lines of a PuTTY key file, whose number is at i.
func (d *detector) ppk(i int) {
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
		d.found("private-key", "putty key", begin, stop)
		at = end
	}
}

// der masks the base64 of a private key or of a store of keys in DER without
// its armour: a sequence of up to 64 kB that begins with the version which is
// at i. It is in capitals or not as base64 has it.
func (d *detector) der(i int) {
	const head = len("MIIEvQ")
	if i < head || d.s[i-head:i-head+3] != "MII" || !allIn(d.s[i-head:i], &plain64) || i > head && plain64.has(d.s[i-head-1]) {
		return
	}
	if strings.HasPrefix(d.s[i:], "IBAzCC") || strings.HasPrefix(d.s[i:], "IBADANBgkqhkiG9w0BAQEFAAS") || strings.HasPrefix(d.s[i:], "IBAAKC") {
		d.store(i - head)
	}
}

// storeHeads begin keys without armour, in SEC 1 and PKCS 8 of P-256 and of
// Ed25519, and stores of Java.
var storeHeads = []string{"MHcCAQEEI", "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg", "MC4CAQAwBQYDK2VwBCIEI", "/u3+7QAAAA"}

// store masks the base64 that begins at i: of a key or of a store of keys.
func (d *detector) store(i int) {
	end := run(d.s, i, &keySet, maxKey)
	if i < d.keyEnd || end-i < minStore || i > 0 && plain64.has(d.s[i-1]) {
		return
	}
	if d.inArmour(i) {
		return // it says what it is
	}
	d.found("private-key", "key without armour", i, end)
	if end-i <= maxKeyWidth { // the first of several lines
		d.keyForward(i)
	}
	d.keyEnd = max(d.keyEnd, end)
}

// inArmour reports whether the line before the one at i is one of an armour.
func (d *detector) inArmour(i int) bool {
	before := strings.TrimRight(d.s[max(0, i-maxGap):i], " \t\r\n\"'`+\\n")
	return strings.HasSuffix(before, "-----")
}

// maxKeyWidth is the most that a line of a key has in armours and certificates.
const maxKeyWidth = 76

// minStore is the least that is shown of a key or a store of keys.
const minStore = 48

// pemInBase64 masks base64 of a PEM block unless the block is a public one.
func (d *detector) pemInBase64(begin int) {
	if !strings.HasPrefix(d.s[begin:], "LS0tLS1CRUdJ") {
		return
	}
	end := run(d.s, begin, &base64Set, maxKey)
	if d.runs.crowded(begin, end) {
		d.unseen("private-key", begin, end)
		return
	}
	head := d.s[begin:min(end, begin+64)]
	label, err := base64.StdEncoding.DecodeString(head[:len(head)&^3])
	if err == nil && !strings.Contains(string(label), "PRIVATE") {
		return
	}
	d.found("private-key", "key block in base64", begin, end)
}
